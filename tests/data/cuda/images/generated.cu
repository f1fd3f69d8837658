// Rows 1 and 2: Philox and Box-Muller, four normal numbers a thread; cosine and sine of a position's angles.
#include "plain.cuh"

template <int N> INLINE float polynomial(float x, const float (&c)[N]) {
    float v = c[N - 1];
    UNROLL for (int i = N - 2; i >= 0; i--) v = fmaf(v, x, c[i]);
    return v;
}

INLINE float2 circle(float angle, uint32_t quadrant) {
    const float SINE[] = {-0x1.555546p-3f, 0x1.110778p-7f, -0x1.995408p-13f};
    const float COSINE[] = {-0x1p-1f, 0x1.55554ap-5f, -0x1.6c0c1ap-10f, 0x1.99e0ecp-16f};
    float square = angle * angle;
    float sine = fmaf(polynomial(square, SINE) * square, angle, angle);
    float cosine = fmaf(polynomial(square, COSINE), square, 1.f);
    bool swap = quadrant & 1u << 30;
    uint32_t across = __float_as_uint(swap ? cosine : sine) ^ (quadrant & 1u << 31);
    uint32_t along = __float_as_uint(swap ? sine : cosine) ^ ((quadrant + (1u << 30)) & 1u << 31);
    return make_float2(__uint_as_float(along), __uint_as_float(across));
}

INLINE float radius(uint32_t word, float std) {
    const float LOGARITHM[] = {-0x1.ffffd6p-2f, 0x1.5554fcp-2f, -0x1.001450p-2f, 0x1.99d3a8p-3f,
                               -0x1.503882p-3f, 0x1.1ea94ep-3f, -0x1.3b0e74p-3f, 0x1.1f241ep-3f};
    bool near_one = word >= 0xAAAAAAABu;
    float u = fmaf(__uint2float_rn(near_one ? ~word : word), 0x1p-32f, 0x1p-33f);
    uint32_t exponent = (__float_as_uint(u) - 0x3F2AAAABu) & 0xFF800000u;
    float x = near_one ? -u : __uint_as_float(__float_as_uint(u) - exponent) - 1.f;
    float scaled = near_one ? 0.f : __int2float_rn((int32_t)exponent);
    float logarithm = fmaf(polynomial(x, LOGARITHM) * x, x, x);
    float square = fmaf(scaled, LN_2 * 0x1p-23f, logarithm) * -2.f;
    return reciprocal_root(square) * square * std;
}

INLINE float2 turn(uint32_t word) {
    float angle = __int2float_rn((int32_t)(word << 2 | 2)) * (1.57079633f * 0x1p-32f);
    return circle(angle, word + (1u << 29));
}

IMAGE(256) random_normal(float *out, uint32_t count, float std, uint64_t seed, uint32_t stream) {
    uint32_t first = blockIdx.x * 1024 + threadIdx.x * 4;
    if (first >= count) return;
    uint32_t w[4] = {first >> 2, 0, stream, 0}, low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    UNROLL for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)w[0] * 0xD2511F53u, b = (uint64_t)w[2] * 0xCD9E8D57u;
        w[0] = (uint32_t)(b >> 32) ^ low ^ w[1], w[1] = (uint32_t)b;
        w[2] = (uint32_t)(a >> 32) ^ high ^ w[3], w[3] = (uint32_t)a;
        low += 0x9E3779B9u, high += 0xBB67AE85u;
    }
    Quad q;
    UNROLL for (int pair = 0; pair < 2; pair++) {
        float r = radius(w[2 * pair], std);
        float2 d = turn(w[2 * pair + 1]);
        q.x[2 * pair] = r * d.x, q.x[2 * pair + 1] = r * d.y;
    }
    uint32_t rest = count - first;
    if (rest >= 4) *(float4 *)(out + first) = q.v;
    else UNROLL for (uint32_t j = 0; j < 3 && j < rest; j++) out[first + j] = q.x[j];
}

IMAGE(256) rotary_table(float *out, const float *frequencies, uint32_t positions) {
    uint32_t position = blockIdx.x * 8 + (threadIdx.x >> 5), pair = threadIdx.x & 31;
    if (position >= positions) return;
    float number = __uint2float_rn(position), frequency = frequencies[pair];
    float angle = __fmul_rn(number, frequency), rest = fmaf(number, frequency, -angle);
    float turns = fmaf(angle, 0.636619772f, 12582912.f), quarters = turns - 12582912.f;
    angle = fmaf(quarters, -0x1.921fb6p+0f, angle);
    angle = fmaf(quarters, 0x1.777a5cp-25f, angle);
    angle = fmaf(quarters, 0x1.ee59dap-50f, angle) + rest;
    *(float2 *)(out + (size_t)position * 64 + 2 * pair) = circle(angle, __float_as_uint(turns) << 30);
}
