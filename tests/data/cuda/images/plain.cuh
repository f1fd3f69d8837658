// What the images' plain versions share: bf16, the slow unit's functions bare, reductions in a fixed order.
#pragma once
#include <cuda_bf16.h>
#include <stdint.h>
#define IMAGE(threads) extern "C" __global__ __launch_bounds__(threads) void
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
typedef uint16_t half_t;
constexpr float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

INLINE float exp2_bare(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float log2_bare(float x) { float y; asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float reciprocal(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
INLINE float reciprocal_root(float x) { float y; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
// powers of e: of the difference, and of it with a power of two brought in
INLINE float power(float x) { return exp2_bare(__fmul_rn(x, LOG2_E)); }
INLINE float power(float x, float shift) { return exp2_bare(fmaf(x, LOG2_E, shift)); }

INLINE uint32_t pack(float low, float high) {
    __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *(uint32_t *)&v;
}
INLINE uint2 pack(float4 v) { return make_uint2(pack(v.x, v.y), pack(v.z, v.w)); }
INLINE half_t round_half(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
INLINE float widen(half_t x) { return __uint_as_float((uint32_t)x << 16); }

// four lanes as an array or a vector, whatever the access
union Quad {
    float4 v;
    float x[4];
};
INLINE Quad load4(const float *p) { Quad q; q.v = *(const float4 *)p; return q; }
INLINE float total(const float *x) { return (x[0] + x[1]) + (x[2] + x[3]); }

INLINE float warp_sum(float v) {
    UNROLL for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
INLINE float warp_max(float v) {
    UNROLL for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
// a value a warp in shared memory; all of them after a barrier, in warp order
INLINE void share(float *slot, float v) {
    if ((threadIdx.x & 31) == 0) slot[threadIdx.x >> 5] = v;
}
template <int WARPS> INLINE float sum_shared(const float *slot) {
    float parts[WARPS];
    UNROLL for (int w = 0; w < WARPS; w += 4) *(float4 *)(parts + w) = *(const float4 *)(slot + w);
    float sum = parts[0];
    UNROLL for (int w = 1; w < WARPS; w++) sum += parts[w];
    return sum;
}
template <int WARPS> INLINE float max_shared(const float *slot) {
    float parts[WARPS];
    UNROLL for (int w = 0; w < WARPS; w += 4) *(float4 *)(parts + w) = *(const float4 *)(slot + w);
    float top = parts[0];
    UNROLL for (int w = 1; w < WARPS; w++) top = fmaxf(top, parts[w]);
    return top;
}
