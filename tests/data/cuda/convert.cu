// Conversions. out is [operation][n]: operation k of element i at out[k*n + i].
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define GUARD                                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return;                            \
    int k = 0;
#define PUT(v) out[k++ * n + i] = (v)

// float to int: rn rz ru rd; to unsigned rn rz; saturating bytes and shorts; ftz
extern "C" __global__ void float_to_int(int *out, const float *xs, int n) {
    GUARD float x = xs[i];
    int r;
    PUT(__float2int_rn(x));
    PUT(__float2int_rz(x));
    PUT(__float2int_ru(x));
    PUT(__float2int_rd(x));
    PUT(__float2uint_rn(x));
    PUT(__float2uint_rz(x));
    PUT((signed char)x);
    PUT((unsigned char)x);
    PUT((short)x);
    PUT((unsigned short)x);
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(r) : "f"(x)); PUT(r);
    asm("cvt.rzi.sat.u8.f32 %0, %1;" : "=r"(r) : "f"(x)); PUT(r);
    asm("cvt.rni.ftz.s32.f32 %0, %1;" : "=r"(r) : "f"(x)); PUT(r);
    PUT(__float_as_int(x) ^ 0x80000000);
}

// float to 64-bit: s64 rn rz, u64 rz; double to s64 rn rz, u64 rz
extern "C" __global__ void float_to_long(long long *out, const float *xs, const double *ds, int n) {
    GUARD float x = xs[i];
    double d = ds[i];
    PUT(__float2ll_rn(x));
    PUT(__float2ll_rz(x));
    PUT(__float2ull_rz(x));
    PUT(__double2ll_rn(d));
    PUT(__double2ll_rz(d));
    PUT(__double2ull_rz(d));
    PUT(__double_as_longlong(d));
}

// int to float: s32, u32, s16, u16, s8, u8, s64, u64 in rn, then s32 rz ru rd
extern "C" __global__ void int_to_float(float *out, const int *xs, const long long *ls, int n) {
    GUARD int x = xs[i];
    long long l = ls[i];
    PUT(x);
    PUT((unsigned)x);
    PUT((short)x);
    PUT((unsigned short)x);
    PUT((signed char)x);
    PUT((unsigned char)x);
    PUT((unsigned char)(x >> 8));
    PUT((signed char)(x >> 24));
    PUT(l);
    PUT((unsigned long long)l);
    PUT(__int2float_rz(x));
    PUT(__int2float_ru(x));
    PUT(__int2float_rd(x));
    PUT(__uint2float_rz(x));
    PUT(__ll2float_rz(l));
}

// to double: s32 u32 s64 u64 float; from double to float rn rz ru rd
extern "C" __global__ void double_conversions(double *out, const int *xs, const long long *ls, const float *fs, const double *ds, int n) {
    GUARD PUT(xs[i]);
    PUT((unsigned)xs[i]);
    PUT(ls[i]);
    PUT((unsigned long long)ls[i]);
    PUT(fs[i]);
    PUT(__double2float_rn(ds[i]));
    PUT(__double2float_rz(ds[i]));
    PUT(__double2float_ru(ds[i]));
    PUT(__double2float_rd(ds[i]));
    PUT(__double2int_rn(ds[i]));
    PUT(__double2int_rz(ds[i]));
    PUT(__double2uint_rz(ds[i]));
    PUT(__hiloint2double(__double2hiint(ds[i]), __double2loint(fs[i])));
}

// half from float rn rz ru rd, from int, unsigned, short, long, double; bits as words
extern "C" __global__ void to_half(unsigned short *out, const float *fs, const int *xs, const double *ds, int n) {
    GUARD float f = fs[i];
    int x = xs[i];
    PUT(__half_as_ushort(__float2half_rn(f)));
    PUT(__half_as_ushort(__float2half_rz(f)));
    PUT(__half_as_ushort(__float2half_ru(f)));
    PUT(__half_as_ushort(__float2half_rd(f)));
    PUT(__half_as_ushort(__int2half_rn(x)));
    PUT(__half_as_ushort(__uint2half_rz(x)));
    PUT(__half_as_ushort(__short2half_rn((short)x)));
    PUT(__half_as_ushort(__ll2half_rn((long long)x)));
    PUT(__half_as_ushort(__double2half(ds[i])));
    PUT(__bfloat16_as_ushort(__float2bfloat16_rn(f)));
    PUT(__bfloat16_as_ushort(__float2bfloat16_rz(f)));
    PUT(__bfloat16_as_ushort(__int2bfloat16_rn(x)));
    PUT(__bfloat16_as_ushort(__double2bfloat16(ds[i])));
}

// from half: float, int rn rz ru rd, unsigned, short, long; from bf16: float, int
extern "C" __global__ void from_half(float *out, const __half *hs, const __nv_bfloat16 *bs, int n) {
    GUARD __half h = hs[i];
    __nv_bfloat16 b = bs[i];
    PUT(__half2float(h));
    PUT(__half2int_rn(h));
    PUT(__half2int_rz(h));
    PUT(__half2int_ru(h));
    PUT(__half2int_rd(h));
    PUT(__half2uint_rz(h));
    PUT(__half2short_rn(h));
    PUT((float)__half2ll_rz(h));
    PUT(__bfloat162float(b));
    PUT(__bfloat162int_rz(b));
    PUT((float)(double)__half2float(h));
}

// packing two floats: half rn, rz, relu; bf16 rn, rz, relu; tf32 rounding of x
extern "C" __global__ void pack_pairs(unsigned *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i];
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rz.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x)); PUT(r);
}

// rounding to whole floats: rint trunc ceil floor round nearbyint, and of doubles
extern "C" __global__ void round_whole(double *out, const float *xs, const double *ds, int n) {
    GUARD float x = xs[i];
    double d = ds[i];
    PUT(rintf(x));
    PUT(truncf(x));
    PUT(ceilf(x));
    PUT(floorf(x));
    PUT(roundf(x));
    PUT(rint(d));
    PUT(trunc(d));
    PUT(ceil(d));
    PUT(floor(d));
    PUT(round(d));
}

// integer narrowing with saturation, sign extension, packing by cvt.pack
extern "C" __global__ void narrow_int(int *out, const int *xs, const long long *ls, int n) {
    GUARD int x = xs[i], r;
    asm("cvt.sat.s8.s32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("cvt.sat.s16.s32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("cvt.sat.u16.u32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("cvt.sat.s32.s64 %0, %1;" : "=r"(r) : "l"(ls[i])); PUT(r);
    asm("cvt.sat.u32.s32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    PUT((signed char)x);
    PUT((short)x);
    PUT((unsigned char)(x >> 16));
    asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(x >> 3)); PUT(r);
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(r) : "r"(x), "r"(x >> 3)); PUT(r);
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(x >> 3), "r"(x)); PUT(r);
}
