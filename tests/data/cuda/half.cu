// Half and bfloat16 arithmetic. out is [operation][n]: operation k of element i at out[k*n + i].
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define GUARD                                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return;                            \
    int k = 0;
#define PUT(v) out[k++ * n + i] = (v)

// add, sub, mul, fma, fma relu, add sat, mul sat, fma sat, neg, abs, min, max, min_nan, max_nan, -(x*y)+z
extern "C" __global__ void half2_arithmetic(__half2 *out, const __half2 *xs, const __half2 *ys, const __half2 *zs, int n) {
    GUARD __half2 x = xs[i], y = ys[i], z = zs[i];
    PUT(__hadd2(x, y));
    PUT(__hsub2(x, y));
    PUT(__hmul2(x, y));
    PUT(__hfma2(x, y, z));
    PUT(__hfma2_relu(x, y, z));
    PUT(__hadd2_sat(x, y));
    PUT(__hmul2_sat(x, y));
    PUT(__hfma2_sat(x, y, z));
    PUT(__hneg2(x));
    PUT(__habs2(x));
    PUT(__hmin2(x, y));
    PUT(__hmax2(x, y));
    PUT(__hmin2_nan(x, y));
    PUT(__hmax2_nan(x, y));
    PUT(__hfma2(__hneg2(x), y, z));
}

// the same for bf16 pairs, without the saturating ones
extern "C" __global__ void bf162_arithmetic(__nv_bfloat162 *out, const __nv_bfloat162 *xs, const __nv_bfloat162 *ys, const __nv_bfloat162 *zs, int n) {
    GUARD __nv_bfloat162 x = xs[i], y = ys[i], z = zs[i];
    PUT(__hadd2(x, y));
    PUT(__hsub2(x, y));
    PUT(__hmul2(x, y));
    PUT(__hfma2(x, y, z));
    PUT(__hfma2_relu(x, y, z));
    PUT(__hneg2(x));
    PUT(__habs2(x));
    PUT(__hmin2(x, y));
    PUT(__hmax2(x, y));
    PUT(__hmin2_nan(x, y));
    PUT(__hmax2_nan(x, y));
}

// eq ne lt le gt ge, then unordered eq ne lt le gt ge: 1.0 or 0.0 a lane
extern "C" __global__ void half2_compare_values(__half2 *out, const __half2 *xs, const __half2 *ys, int n) {
    GUARD __half2 x = xs[i], y = ys[i];
    PUT(__heq2(x, y));
    PUT(__hne2(x, y));
    PUT(__hlt2(x, y));
    PUT(__hle2(x, y));
    PUT(__hgt2(x, y));
    PUT(__hge2(x, y));
    PUT(__hequ2(x, y));
    PUT(__hneu2(x, y));
    PUT(__hltu2(x, y));
    PUT(__hleu2(x, y));
    PUT(__hgtu2(x, y));
    PUT(__hgeu2(x, y));
    PUT(__hisnan2(x));
}

// masks of comparisons (0xffff a lane): half eq lt geu, bf16 eq lt geu on the same bits
extern "C" __global__ void half_compare_masks(unsigned *out, const unsigned *xs, const unsigned *ys, int n) {
    GUARD unsigned x = xs[i], y = ys[i];
    __half2 hx = *reinterpret_cast<__half2 *>(&x), hy = *reinterpret_cast<__half2 *>(&y);
    __nv_bfloat162 bx = *reinterpret_cast<__nv_bfloat162 *>(&x), by = *reinterpret_cast<__nv_bfloat162 *>(&y);
    PUT(__heq2_mask(hx, hy));
    PUT(__hlt2_mask(hx, hy));
    PUT(__hgeu2_mask(hx, hy));
    PUT(__heq2_mask(bx, by));
    PUT(__hlt2_mask(bx, by));
    PUT(__hgeu2_mask(bx, by));
}

// scalar half with branches and selects: out = x < y ? x*y : (all lanes equal ? 1 : x - y)
extern "C" __global__ void half_predicates(__half *out, const __half2 *xs, const __half2 *ys, int n) {
    GUARD __half2 x = xs[i], y = ys[i];
    __half a = __low2half(x), b = __high2half(y);
    PUT(__hlt(a, b) ? __hmul(a, b) : __hsub(a, b));
    PUT(__hbeq2(x, y) ? __float2half(1.0f) : a);
    PUT(__hbltu2(x, y) ? __float2half(2.0f) : b);
    PUT(__hisinf(a) ? __float2half(3.0f) : __hadd(a, b));
}

// exp2 exp10 exp log2 log10 log sin cos sqrt rsqrt rcp of half pairs, then tanh by instruction and ex2 by instruction
extern "C" __global__ void half2_functions(__half2 *out, const __half2 *xs, int n) {
    GUARD __half2 x = xs[i];
    PUT(h2exp2(x));
    PUT(h2exp10(x));
    PUT(h2exp(x));
    PUT(h2log2(x));
    PUT(h2log10(x));
    PUT(h2log(x));
    PUT(h2sin(x));
    PUT(h2cos(x));
    PUT(h2sqrt(x));
    PUT(h2rsqrt(x));
    PUT(h2rcp(x));
    unsigned r, u = *reinterpret_cast<unsigned *>(&x);
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(r) : "r"(u));
    PUT(*reinterpret_cast<__half2 *>(&r));
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(r) : "r"(u));
    PUT(*reinterpret_cast<__half2 *>(&r));
}

// exp2 log2 sqrt rsqrt rcp sin of bf16 pairs, tanh by instruction
extern "C" __global__ void bf162_functions(__nv_bfloat162 *out, const __nv_bfloat162 *xs, int n) {
    GUARD __nv_bfloat162 x = xs[i];
    PUT(h2exp2(x));
    PUT(h2log2(x));
    PUT(h2sqrt(x));
    PUT(h2rsqrt(x));
    PUT(h2rcp(x));
    PUT(h2sin(x));
    float lo = __low2float(x), hi = __high2float(x);
    asm("tanh.approx.f32 %0, %0;" : "+f"(lo));
    asm("tanh.approx.f32 %0, %0;" : "+f"(hi));
    PUT(__floats2bfloat162_rn(lo, hi));
}

// rounding: ceil floor trunc rint of half pairs; lanes swapped, low twice, high twice, lows, highs
extern "C" __global__ void half2_rounding_and_lanes(__half2 *out, const __half2 *xs, const __half2 *ys, int n) {
    GUARD __half2 x = xs[i], y = ys[i];
    PUT(h2ceil(x));
    PUT(h2floor(x));
    PUT(h2trunc(x));
    PUT(h2rint(x));
    PUT(__lowhigh2highlow(x));
    PUT(__low2half2(x));
    PUT(__high2half2(x));
    PUT(__lows2half2(x, y));
    PUT(__highs2half2(x, y));
    PUT(__hmul2(__low2half2(x), y));
    PUT(__hfma2(__high2half2(x), y, __low2half2(y)));
}

// division of half and of bf16 (through float)
extern "C" __global__ void half_division(__half *out, const __half *xs, const __half *ys, int n) {
    GUARD PUT(__hdiv(xs[i], ys[i]));
    PUT(hsqrt(xs[i]));
}

// dot product by half2 with float accumulation: out[row] over `pairs`, one warp a row
extern "C" __global__ void half2_dot(float *out, const __half2 *x, const __half2 *y, int pairs) {
    float sum = 0;
    for (int i = threadIdx.x; i < pairs; i += 32) {
        float2 a = __half22float2(x[blockIdx.x * pairs + i]), b = __half22float2(y[blockIdx.x * pairs + i]);
        sum = fmaf(a.x, b.x, fmaf(a.y, b.y, sum));
    }
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
