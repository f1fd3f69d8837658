// Rows 9 to 11, 17 to 19, 21 and 22: one block a row, the row in registers, reductions by exchanges and shared memory.
#include "plain.cuh"

constexpr uint32_t V = 12288, W = 512, S = 1024;

IMAGE(256) argmax(uint32_t *out, const float *logits) {
    __shared__ __align__(16) float tops[8];
    __shared__ __align__(16) uint32_t indices[8];
    uint32_t t = threadIdx.x, row = blockIdx.x;
    const float *source = logits + (size_t)row * V + t * 4;
    Quad q[12];
    UNROLL for (int j = 0; j < 12; j++) q[j] = load4(source + 1024 * j);
    float top = fmaxf(q[0].x[0], q[0].x[1]);
    UNROLL for (int i = 2; i < 48; i++) top = fmaxf(top, q[i / 4].x[i % 4]);
    top = warp_max(top);
    share(tops, top);
    __syncthreads();
    top = max_shared<8>(tops);
    uint32_t index = ~0u;
    UNROLL for (int i = 47; i >= 0; i--)
        if (q[i / 4].x[i % 4] == top) index = t * 4 + i / 4 * 1024 + i % 4;
    UNROLL for (int d = 16; d; d >>= 1) index = min(index, __shfl_xor_sync(~0u, index, d));
    if ((t & 31) == 0) indices[t >> 5] = index;
    __syncthreads();
    uint4 a = *(uint4 *)indices, b = *(uint4 *)(indices + 4);
    index = min(min(min(a.x, a.y), min(a.z, a.w)), min(min(b.x, b.y), min(b.z, b.w)));
    if (t == 0) out[row] = index == ~0u ? 0 : index;
}

IMAGE(128) gather(float *out, const float *table, const uint32_t *tokens, uint32_t vocabulary) {
    uint32_t column = threadIdx.x * 4, row = blockIdx.x, token = tokens[row];
    float4 v = make_float4(0, 0, 0, 0);
    if (token < vocabulary) v = *(const float4 *)(table + (size_t)token * W + column);
    *(float4 *)(out + (size_t)row * W + column) = v;
}

IMAGE(128) layernorm_forward(half_t *out, float *mean, float *rstd, const float *x, const float *gain,
                             const float *bias, float epsilon) {
    __shared__ __align__(16) float slots[12];
    uint32_t column = threadIdx.x * 4, row = blockIdx.x;
    Quad v = load4(x + (size_t)row * W + column), g = load4(gain + column), b = load4(bias + column);
    share(slots, warp_sum(total(v.x)));
    __syncthreads();
    float rough = sum_shared<4>(slots) * (1.f / W);
    float squares[4];
    UNROLL for (int l = 0; l < 4; l++) v.x[l] -= rough, squares[l] = __fmul_rn(v.x[l], v.x[l]);
    float left = warp_sum(total(v.x)), scatter = warp_sum(total(squares));
    share(slots + 4, left), share(slots + 8, scatter);
    __syncthreads();
    left = sum_shared<4>(slots + 4) * (1.f / W);
    float spread = __fmul_rn(sum_shared<4>(slots + 8), 1.f / W);
    float shifted = fmaf(-left, left, spread) + epsilon;
    bool small = shifted < 0x1p-100f;
    float root = reciprocal_root(small ? shifted * 0x1p64f : shifted);
    if (small) root *= 0x1p32f;
    UNROLL for (int l = 0; l < 4; l++) v.x[l] = fmaf((v.x[l] - left) * root, g.x[l], b.x[l]);
    *(uint2 *)(out + (size_t)row * W + column) = pack(v.v);
    if (threadIdx.x == 0) mean[row] = rough + left, rstd[row] = root;
}

IMAGE(128) layernorm_backward(float *dx, const float *dy, const float *x, const float *mean, const float *rstd,
                              const float *gain) {
    __shared__ __align__(16) float slots[8];
    uint32_t column = threadIdx.x * 4, row = blockIdx.x;
    Quad v = load4(x + (size_t)row * W + column), g = load4(dy + (size_t)row * W + column), a = load4(gain + column);
    float m = mean[row], r = rstd[row], products[4];
    UNROLL for (int l = 0; l < 4; l++) {
        v.x[l] = (v.x[l] - m) * r, g.x[l] = __fmul_rn(g.x[l], a.x[l]);
        products[l] = __fmul_rn(g.x[l], v.x[l]);
    }
    float level = warp_sum(total(g.x)), along = warp_sum(total(products));
    share(slots, level), share(slots + 4, along);
    __syncthreads();
    level = __fmul_rn(sum_shared<4>(slots), 1.f / W), along = __fmul_rn(sum_shared<4>(slots + 4), 1.f / W);
    UNROLL for (int l = 0; l < 4; l++) g.x[l] = fmaf(-v.x[l], along, g.x[l] - level) * r;
    *(float4 *)(dx + (size_t)row * W + column) = g.v;
}

IMAGE(256) softmax_forward(half_t *probs, const float *scores, float scale) {
    __shared__ __align__(16) float slots[16];
    uint32_t t = threadIdx.x, row = blockIdx.x;
    int before = (int)row - 4 * (int)t;
    size_t at = ((size_t)(blockIdx.y * S + row)) * S + 4 * t;
    Quad v = {make_float4(0, 0, 0, 0)};
    if (before >= 0) v = load4(scores + at);
    float scaled[4];
    UNROLL for (int l = 0; l < 4; l++) scaled[l] = before >= l ? v.x[l] * scale : -INFINITY;
    share(slots, warp_max(fmaxf(fmaxf(scaled[0], scaled[1]), fmaxf(scaled[2], scaled[3]))));
    __syncthreads();
    float top = max_shared<8>(slots);
    UNROLL for (int l = 0; l < 4; l++) v.x[l] = before >= l ? power(fmaf(v.x[l], scale, -top), 8.f) : 0.f;
    share(slots + 8, warp_sum(total(v.x)));
    __syncthreads();
    float part = reciprocal(sum_shared<8>(slots + 8));
    UNROLL for (int l = 0; l < 4; l++) if (before >= l) v.x[l] *= part;
    *(uint2 *)(probs + at) = pack(v.v);
}

IMAGE(256) softmax_backward(half_t *dscores, const float *dprobs, const half_t *probs, float scale) {
    __shared__ __align__(16) float slots[8];
    uint32_t t = threadIdx.x, row = blockIdx.x;
    int before = (int)row - 4 * (int)t;
    size_t at = ((size_t)(blockIdx.y * S + row)) * S + 4 * t;
    Quad f = {make_float4(0, 0, 0, 0)};
    uint2 packed = make_uint2(0, 0);
    if (before >= 0) f = load4(dprobs + at), packed = *(const uint2 *)(probs + at);
    float p[4] = {widen(packed.x), widen(packed.x >> 16), widen(packed.y), widen(packed.y >> 16)}, products[4];
    UNROLL for (int l = 0; l < 4; l++) {
        p[l] = before >= l ? p[l] : 0.f, f.x[l] = before >= l ? f.x[l] : 0.f;
        products[l] = __fmul_rn(p[l], f.x[l]);
    }
    share(slots, warp_sum(total(products)));
    __syncthreads();
    float along = sum_shared<8>(slots);
    UNROLL for (int l = 0; l < 4; l++) f.x[l] = before >= l ? (f.x[l] - along) * p[l] * scale : 0.f;
    *(uint2 *)(dscores + at) = pack(f.v);
}

// minus infinity as a level would make NaN of itself
INLINE float level_of(float top) { return top != -INFINITY ? top : 0.f; }
template <int N> INLINE float fold_max(const float *v) {
    if constexpr (N == 1) return v[0];
    else return fmaxf(fold_max<(N + 1) / 2>(v), fold_max<N / 2>(v + (N + 1) / 2));
}
template <int N> INLINE float fold_sum(const float *v) {
    if constexpr (N == 1) return v[0];
    else return fold_sum<(N + 1) / 2>(v) + fold_sum<N / 2>(v + (N + 1) / 2);
}

IMAGE(256) cross_entropy(float *loss, float *lse, const float *logits, const uint32_t *targets) {
    __shared__ __align__(16) float slots[16];
    uint32_t t = threadIdx.x, row = blockIdx.x;
    const float *source = logits + (size_t)row * V + t * 4;
    float top, sum;
    Quad q[3][4];
    UNROLL for (int b = 0; b < 2; b++) UNROLL for (int j = 0; j < 4; j++) q[b][j] = load4(source + 1024 * (4 * b + j));
    UNROLL for (int b = 0; b < 3; b++) {
        float *v = q[b][0].x, most = fold_max<16>(v);
        if (b) most = fmaxf(most, top);
        float level = level_of(most);
        UNROLL for (int i = 0; i < 16; i++) v[i] = power(v[i] - level);
        float own = fold_sum<16>(v);
        sum = b ? fmaf(sum, power(top - level), own) : own;
        top = most;
        if (b == 0) UNROLL for (int j = 0; j < 4; j++) q[2][j] = load4(source + 1024 * (8 + j));
    }
    float most = warp_max(top);
    sum = warp_sum(sum * power(top - level_of(most)));
    share(slots, most), share(slots + 8, sum);
    __syncthreads();
    float tops[8], sums[8];
    UNROLL for (int w = 0; w < 8; w += 4) *(float4 *)(tops + w) = *(float4 *)(slots + w);
    UNROLL for (int w = 0; w < 8; w += 4) *(float4 *)(sums + w) = *(float4 *)(slots + 8 + w);
    most = fold_max<8>(tops);
    float level = level_of(most);
    sum = sums[0] * power(tops[0] - level);
    UNROLL for (int w = 1; w < 8; w++) sum += __fmul_rn(sums[w], power(tops[w] - level));
    if (t) return;
    uint32_t target = targets[row];
    float logit = target < V ? logits[(size_t)row * V + target] : 0.f, logarithm = __fmul_rn(log2_bare(sum), LN_2);
    lse[row] = most + logarithm;
    loss[row] = target < V ? (most - logit) + logarithm : 0.f;
}

IMAGE(256) cross_entropy_backward(half_t *dlogits, const float *logits, const float *lse, const uint32_t *targets,
                                  float scale) {
    uint32_t t = threadIdx.x, row = blockIdx.x, target = targets[row], distance = target - t * 4;
    float level = lse[row];
    const float *source = logits + (size_t)row * V + t * 4;
    half_t *out = dlogits + (size_t)row * V + t * 4;
    bool known = target < V;
    Quad q[4][3];
    UNROLL for (int b = 0; b < 2; b++) UNROLL for (int j = 0; j < 3; j++) q[b][j] = load4(source + 1024 * (3 * b + j));
    UNROLL for (int b = 0; b < 4; b++) {
        UNROLL for (int j = 0; j < 3; j++) {
            UNROLL for (int l = 0; l < 4; l++) {
                float one = distance == 1024 * (3 * b + j) + l ? 1.f : 0.f;
                float g = fmaf(power(q[b][j].x[l] - level, 24.f), 0x1p-24f, -one) * scale;
                q[b][j].x[l] = known ? g : 0.f;
            }
            *(uint2 *)(out + 1024 * (3 * b + j)) = pack(q[b][j].v);
        }
        if (b < 2) UNROLL for (int j = 0; j < 3; j++) q[b + 2][j] = load4(source + 1024 * (3 * (b + 2) + j));
    }
}

IMAGE(256) loss_target_gather(float *correct, const float *logits, const uint32_t *targets, uint32_t rows) {
    uint32_t row = blockIdx.x * 256 + threadIdx.x;
    if (row >= rows) return;
    uint32_t target = targets[row];
    correct[row] = target < V ? logits[(size_t)row * V + target] : 0.f;
}
