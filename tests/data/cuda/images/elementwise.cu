// Rows 3 to 8, 25 and 26: four elements a thread, 1,024 a block, any count; the last quad one element at a time.
#include "plain.cuh"

#define QUAD                                                  \
    uint32_t i = blockIdx.x * 1024 + threadIdx.x * 4;         \
    if (i >= count) return;                                   \
    uint32_t rest = count - i;
#define TAIL UNROLL for (uint32_t j = 0; j < 3 && j < rest; j++)

IMAGE(256) fill(uint32_t *out, uint32_t count, uint32_t value) {
    QUAD
    if (rest >= 4) *(uint4 *)(out + i) = make_uint4(value, value, value, value);
    else TAIL out[i + j] = value;
}

IMAGE(256) copy(uint32_t *out, const uint32_t *source, uint32_t count) {
    QUAD
    if (rest >= 4) *(uint4 *)(out + i) = *(const uint4 *)(source + i);
    else TAIL out[i + j] = source[i + j];
}

IMAGE(256) cast_down(half_t *out, const float *source, uint32_t count) {
    QUAD
    if (rest >= 4) *(uint2 *)(out + i) = pack(*(const float4 *)(source + i));
    else TAIL out[i + j] = round_half(source[i + j]);
}

IMAGE(256) cast_up(float *out, const half_t *source, uint32_t count) {
    QUAD
    if (rest >= 4) {
        uint2 v = *(const uint2 *)(source + i);
        Quad q = {make_float4(widen(v.x), widen(v.x >> 16), widen(v.y), widen(v.y >> 16))};
        *(float4 *)(out + i) = q.v;
    } else TAIL out[i + j] = widen(source[i + j]);
}

IMAGE(256) add(float *out, const float *a, const float *b, uint32_t count) {
    QUAD
    if (rest >= 4) {
        Quad x = load4(a + i), y = load4(b + i);
        UNROLL for (int l = 0; l < 4; l++) x.x[l] += y.x[l];
        *(float4 *)(out + i) = x.v;
    } else TAIL out[i + j] = a[i + j] + b[i + j];
}

IMAGE(256) scale(float *out, const float *a, float factor, uint32_t count) {
    QUAD
    if (rest >= 4) {
        Quad x = load4(a + i);
        UNROLL for (int l = 0; l < 4; l++) x.x[l] *= factor;
        *(float4 *)(out + i) = x.v;
    } else TAIL out[i + j] = a[i + j] * factor;
}

constexpr float SLOPE = 1.59576912f, CUBIC = 0.044715f, FAR = -100.f, FLAT = 32.f;
struct Logistic {
    float above, below, scale;
};
INLINE Logistic logistic(float x) {
    float p = fmaf(x * x, SLOPE * CUBIC * LOG2_E, SLOPE * LOG2_E) * x;
    bool far = p < FAR;
    float e = exp2_bare(-fabsf(far ? p + 64.f : p)), large = reciprocal(e + 1.f);
    e *= large;
    return {x < 0.f ? e : large, x < 0.f ? large : e, far ? 0x1p-64f : 1.f};
}
INLINE float gelu_forward(float x, float up) {
    Logistic s = logistic(x);
    return x * s.above * up * s.scale;
}

IMAGE(256) gated_gelu_forward(half_t *out, const float *gate, const float *up, uint32_t count) {
    QUAD
    if (rest >= 4) {
        Quad x = load4(gate + i), u = load4(up + i);
        UNROLL for (int l = 0; l < 4; l++) x.x[l] = gelu_forward(x.x[l], u.x[l]);
        *(uint2 *)(out + i) = pack(x.v);
    } else TAIL out[i + j] = round_half(gelu_forward(gate[i + j], up[i + j]));
}

INLINE float2 gelu_backward(float x, float up, float flow) {
    Logistic s = logistic(x);
    float near = fmaxf(fminf(x, FLAT), -FLAT);
    float steep = fmaf(near * near, 3 * CUBIC * SLOPE, SLOPE);
    float slope = fmaf(near * s.below, steep, 1.f) * s.above;
    return make_float2(up * flow * slope * s.scale, flow * (x * s.above) * s.scale);
}

IMAGE(256) gated_gelu_backward(half_t *dgate, half_t *dup, const float *dout, const float *gate, const float *up,
                               uint32_t count) {
    QUAD
    if (rest >= 4) {
        Quad x = load4(gate + i), u = load4(up + i), f = load4(dout + i);
        UNROLL for (int l = 0; l < 4; l++) {
            float2 d = gelu_backward(x.x[l], u.x[l], f.x[l]);
            u.x[l] = d.x, f.x[l] = d.y;
        }
        *(uint2 *)(dgate + i) = pack(u.v), *(uint2 *)(dup + i) = pack(f.v);
    } else TAIL {
        float2 d = gelu_backward(gate[i + j], up[i + j], dout[i + j]);
        dgate[i + j] = round_half(d.x), dup[i + j] = round_half(d.y);
    }
}
