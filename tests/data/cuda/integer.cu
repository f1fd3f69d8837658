// Integer arithmetic. out is [operation][n]: operation k of element i at out[k*n + i].
#define GUARD                                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return;                            \
    int k = 0;
#define PUT(v) out[k++ * n + i] = (v)

// add, sub, mul, mad, mulhi s/u, mul24 s/u, abs, neg, min/max s/u, averages, sad, usad
extern "C" __global__ void arithmetic_s32(int *out, const int *xs, const int *ys, const int *zs, int n) {
    GUARD int x = xs[i], y = ys[i], z = zs[i];
    PUT(x + y);
    PUT(x - y);
    PUT(x * y);
    PUT(x * y + z);
    PUT(__mulhi(x, y));
    PUT(__umulhi(x, y));
    PUT(__mul24(x, y));
    PUT(__umul24(x, y));
    PUT(abs(x));
    PUT(-x);
    PUT(min(x, y));
    PUT(max(x, y));
    PUT(min((unsigned)x, (unsigned)y));
    PUT(max((unsigned)x, (unsigned)y));
    PUT(__hadd(x, y));
    PUT(__rhadd(x, y));
    PUT(__uhadd(x, y));
    PUT(__sad(x, y, z));
    PUT(__usad(x, y, z));
    PUT(x * 12 + y * 8 + z);
    PUT((x + y) * 5 - (z << 4));
}

// quotient and remainder: signed, unsigned, by constants 7 (signed) and 10 (unsigned); y is never zero
extern "C" __global__ void division_s32(int *out, const int *xs, const int *ys, int n) {
    GUARD int x = xs[i], y = ys[i];
    PUT(x / y);
    PUT(x % y);
    PUT((unsigned)x / (unsigned)y);
    PUT((unsigned)x % (unsigned)y);
    PUT(x / 7);
    PUT(x % 7);
    PUT((unsigned)x / 10);
    PUT(x / 16);
    PUT(x % 16);
}

// 64-bit: add, sub, mul, mulhi s/u, quotient and remainder s/u, shifts, min, max, compare, abs, neg
extern "C" __global__ void arithmetic_s64(long long *out, const long long *xs, const long long *ys, int n) {
    GUARD long long x = xs[i], y = ys[i];
    unsigned long long u = x, w = y;
    PUT(x + y);
    PUT(x - y);
    PUT(x * y);
    PUT(__mul64hi(x, y));
    PUT(__umul64hi(u, w));
    PUT(x / y);
    PUT(x % y);
    PUT(u / w);
    PUT(u % w);
    PUT(x << (y & 63));
    PUT(x >> (y & 63));
    PUT(u >> (w & 63));
    PUT(min(x, y));
    PUT(max(u, w));
    PUT(x < y ? 1 : u < w ? 2 : 3);
    PUT(llabs(x));
    PUT(-x);
    PUT((long long)(int)x * (int)y);
    PUT((unsigned long long)(unsigned)u * (unsigned)w + w);
    PUT(x / 1000);
}

// and or xor not andn majority parity-of-three, shifts by variable and constant, rotates, selects
extern "C" __global__ void logic_u32(unsigned *out, const unsigned *xs, const unsigned *ys, const unsigned *zs, int n) {
    GUARD unsigned x = xs[i], y = ys[i], z = zs[i];
    PUT(x & y);
    PUT(x | y);
    PUT(x ^ y);
    PUT(~x);
    PUT(x & ~y);
    PUT((x & y) | (y & z) | (x & z));
    PUT(x ^ y ^ z);
    PUT((x & y) | (~x & z));
    PUT(x << (y & 31));
    PUT(x >> (y & 31));
    PUT((int)x >> (y & 31));
    PUT(x << 7);
    PUT((int)x >> 9);
    PUT((x << 13) | (x >> 19));
    PUT(x & 0x00ff00ff);
    PUT((x & 0xf0f0f0f0) ^ (y | 0x12345678));
}

// popc clz ffs brev (32 and 64 bits), bfind, bfe s/u, bfi, fns, funnel shifts, byte permute, lop3 by table
extern "C" __global__ void bits_u32(unsigned *out, const unsigned *xs, const unsigned *ys, int n) {
    GUARD unsigned x = xs[i], y = ys[i], r;
    unsigned long long w = ((unsigned long long)x << 32) | y;
    PUT(__popc(x));
    PUT(__clz(x));
    PUT(__ffs(x));
    PUT(__brev(x));
    PUT(__popcll(w));
    PUT(__clzll(w));
    PUT(__ffsll(w));
    PUT((unsigned)__brevll(w));
    asm("bfind.u32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(x)); PUT(r);
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"((y >> 8) & 31)); PUT(r);
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 31), "r"((y >> 8) & 31)); PUT(r);
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(y & 31), "r"((y >> 8) & 31)); PUT(r);
    asm("bfe.s32 %0, %1, 5, 11;" : "=r"(r) : "r"(x)); PUT(r);
    asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(r) : "r"(x & 31), "r"(y & 31)); PUT(r);
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(x & 63), "r"(y & 63)); PUT(r);
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y & 31)); PUT(r);
    PUT(__funnelshift_l(x, y, x ^ y));
    PUT(__funnelshift_r(x, y, x ^ y));
    PUT(__funnelshift_lc(x, y, x & 63));
    PUT(__funnelshift_rc(x, y, x & 63));
    PUT(__byte_perm(x, y, 0x5410));
    PUT(__byte_perm(x, y, x & 0xffff));
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x & 3)); PUT(r);
    asm("lop3.b32 %0, %1, %2, %3, 0x6b;" : "=r"(r) : "r"(x), "r"(y), "r"(x + y)); PUT(r);
}

// dp4a and dp2a, signed, unsigned and mixed
extern "C" __global__ void dot_products_s32(int *out, const int *xs, const int *ys, const int *zs, int n) {
    GUARD int x = xs[i], y = ys[i], z = zs[i], r;
    PUT(__dp4a(x, y, z));
    PUT(__dp4a((unsigned)x, (unsigned)y, (unsigned)z));
    asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z)); PUT(r);
    PUT(__dp2a_lo(x, y, z));
    PUT(__dp2a_hi(x, y, z));
    PUT(__dp2a_lo((unsigned)x, (unsigned)y, (unsigned)z));
}

// carry chains: 128-bit sum and difference of (x, y) and (y, z); out is eight words an element
extern "C" __global__ void carries_u128(unsigned *out, const uint4 *xs, const uint4 *ys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 x = xs[i], y = ys[i], s, d;
    asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
        : "=r"(s.x), "=r"(s.y), "=r"(s.z), "=r"(s.w) : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y), "r"(y.z), "r"(y.w));
    asm("sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11;"
        : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w) : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "r"(y.x), "r"(y.y), "r"(y.z), "r"(y.w));
    reinterpret_cast<uint4 *>(out)[2 * i] = s;
    reinterpret_cast<uint4 *>(out)[2 * i + 1] = d;
}

// wide multiply-add chains: 64x64 -> 128 bits; out[2i], out[2i+1] = low, high
extern "C" __global__ void multiply_u64_wide(unsigned long long *out, const unsigned long long *xs, const unsigned long long *ys, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 p = (unsigned __int128)xs[i] * ys[i];
    out[2 * i] = (unsigned long long)p;
    out[2 * i + 1] = (unsigned long long)(p >> 64);
}

// video-style byte lanes through the SIMD intrinsics: add, max, average, absolute difference, compare
extern "C" __global__ void byte_lanes_u32(unsigned *out, const unsigned *xs, const unsigned *ys, int n) {
    GUARD unsigned x = xs[i], y = ys[i];
    PUT(__vadd4(x, y));
    PUT(__vmaxu4(x, y));
    PUT(__vavgu4(x, y));
    PUT(__vabsdiffu4(x, y));
    PUT(__vcmpgtu4(x, y));
    PUT(__vadd2(x, y));
    PUT(__vmins2(x, y));
    PUT(__vsadu4(x, y));
    PUT(__viaddmax_s32(x, y, 5));
    PUT(__vimax3_s32(x, y, 7));
}

// xorshift generator, 16 steps a thread; out[i] = the last state
extern "C" __global__ void random_xorshift(unsigned *out, unsigned seed) {
    unsigned s = seed ^ ((blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u);
    for (int step = 0; step < 16; step++) s ^= s << 13, s ^= s >> 17, s ^= s << 5;
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
