// Rows 20, 23 and 24: sums down the columns, rows added in the order of their positions, the optimiser's step.
#include "plain.cuh"

IMAGE(512) layernorm_parameters(float *dgain, float *dbias, const float *dy, const float *x, const float *mean,
                                const float *rstd, uint32_t rows) {
    __shared__ float sums[32];
    uint32_t t = threadIdx.x, quad = blockIdx.x * 2 + (t & 1), row = t >> 1;
    float v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    const float *dys = dy + quad * 4, *xs = x + quad * 4;
#pragma unroll 1
    for (; (row & ~15u) < rows; row += 512) {
        Quad g[2], n[2];
        float m[2], r[2];
        UNROLL for (int s = 0; s < 2; s++) if (row + 256 * s < rows) {
            size_t at = (size_t)row + 256 * s;
            g[s] = load4(dys + at * 512), n[s] = load4(xs + at * 512), m[s] = mean[at], r[s] = rstd[at];
        }
        UNROLL for (int s = 0; s < 2; s++) if (row + 256 * s < rows)
            UNROLL for (int l = 0; l < 4; l++) {
                v[4 + l] += g[s].x[l];
                v[l] = fmaf(g[s].x[l], (n[s].x[l] - m[s]) * r[s], v[l]);
            }
    }
    UNROLL for (int bit = 1, half = 4; bit < 4; bit++, half /= 2) {
        bool upper = t & 1 << bit;
        UNROLL for (int i = 0; i < half; i++) {
            float given = upper ? v[i] : v[half + i], kept = upper ? v[half + i] : v[i];
            v[i] = kept + __shfl_xor_sync(~0u, given, 1 << bit);
        }
    }
    float own = v[0] + __shfl_xor_sync(~0u, v[0], 16);
    uint32_t sum = t & 15, place = (t >> 8) * 16 + sum, turn = t & 0xF0;
    UNROLL for (int at = 0; at < 8; at++) {
        if (turn == 32 * at) {
            if (at) own = sums[place] + own;
            sums[place] = own;
        }
        __syncthreads();
    }
    own = sums[sum] + own;
    uint32_t column = blockIdx.x * 8 + (t & 1) * 4 + (t >> 2 & 1) * 2 + (t >> 3 & 1), holder = t & (512 - 16 + 2);
    if (holder == 480) dgain[column] = own;
    if (holder == 482) dbias[column] = own;
}

struct Search {
    uint32_t mask, lane;
};
// the next position, taken off the mask; none is above all positions
INLINE uint32_t next(Search &s) {
    uint32_t lowest = s.mask & -s.mask, bit;
    asm("bfind.u32 %0, %1;" : "=r"(bit) : "r"(lowest));
    uint32_t own = bit * 32 + s.lane - (bit & 3) * 31, position = __reduce_min_sync(~0u, own);
    if (own == position) s.mask ^= lowest;
    return position;
}
struct Row {
    Quad v;
    bool there;
};
INLINE void fetch(Row &row, const float *columns, uint32_t position) {
    row.there = position < 1024;
    if (row.there) row.v = load4(columns + (size_t)position * 512);
}

IMAGE(512) embedding_scatter(float *dtable, const float *drows, const uint32_t *tokens) {
    uint32_t t = threadIdx.x, position = blockIdx.x;
    if (t >= 128) return;
    Search s = {0, t * 4 & 127};
    uint32_t token = tokens[position];
    uint4 chunk[8];
    UNROLL for (int c = 0; c < 8; c++) chunk[c] = *(const uint4 *)(tokens + s.lane + 128 * c);
    UNROLL for (int c = 0; c < 8; c++) {
        if (chunk[c].x == token) s.mask |= 1u << 4 * c;
        if (chunk[c].y == token) s.mask |= 2u << 4 * c;
        if (chunk[c].z == token) s.mask |= 4u << 4 * c;
        if (chunk[c].w == token) s.mask |= 8u << 4 * c;
    }
    if (token >= 12288) return;
    uint32_t first = next(s);
    if (first != position) return;
    const float *columns = drows + t * 4;
    float *to = dtable + (size_t)token * 512 + t * 4;
    Quad sum = load4(to);
    Row waiting[5];
    UNROLL for (int i = 0; i < 5; i++) fetch(waiting[i], columns, i ? next(s) : first);
#pragma unroll 1
    do {
        UNROLL for (int i = 0; i < 5; i++) {
            if (i && !waiting[i].there) goto done;
            if (waiting[i].there) UNROLL for (int l = 0; l < 4; l++) sum.x[l] += waiting[i].v.x[l];
            fetch(waiting[i], columns, next(s));
        }
    } while (waiting[0].there);
done:
    *(float4 *)to = sum.v;
}

// an unrounded value, high + low
struct Long {
    float high, low;
};
INLINE Long product(float a, float b) { float h = __fmul_rn(a, b); return {h, fmaf(a, b, -h)}; }
INLINE Long scaled(Long a, float b) { Long p = product(a.high, b); p.low = fmaf(a.low, b, p.low); return p; }
INLINE Long sum(float a, float b) {
    float high = __fadd_rn(a, b), from_b = __fadd_rn(high, -a), from_a = __fadd_rn(high, -from_b);
    return {high, __fadd_rn(__fadd_rn(a, -from_a), __fadd_rn(b, -from_b))};
}
INLINE Long mixed(float old, float beta, Long fresh, float weight) {
    Long kept = product(old, beta), added = scaled(fresh, weight), total = sum(kept.high, added.high);
    total.low = __fadd_rn(__fadd_rn(total.low, added.low), kept.low);
    float high = __fadd_rn(total.high, total.low);
    return {high, __fadd_rn(total.low, -__fadd_rn(high, -total.high))};
}
INLINE Long root(Long a) {
    bool small = a.high < 0x1p-64f;
    if (small) a.high = __fmul_rn(a.high, 0x1p64f), a.low = __fmul_rn(a.low, 0x1p64f);
    float inverse = reciprocal_root(fmaxf(a.high, 0x1p-120f)), r = __fmul_rn(a.high, inverse);
    float left = __fmul_rn(__fadd_rn(fmaf(-r, r, a.high), a.low), __fmul_rn(inverse, 0.5f));
    r = a.high < INFINITY ? r : INFINITY;
    if (small) r = __fmul_rn(r, 0x1p-32f), left = __fmul_rn(left, 0x1p-32f);
    return {r, left};
}

IMAGE(256) adamw(float *p, float *m, float *v, const float *g, half_t *half_copy, float rate, float beta1, float beta2,
                 float epsilon, float decay, float correction1, float correction2, float gradient_scale) {
    float fresh1 = 1.f - beta1, fresh2 = 1.f - beta2;
#pragma unroll 1
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < 31998976 / 4; i += 1024 * 256) {
        size_t at = (size_t)i * 4;
        Quad gs = load4(g + at), ms = load4(m + at), vs = load4(v + at), ps = load4(p + at);
        UNROLL for (int l = 0; l < 4; l++) {
            Long gradient = product(gs.x[l], gradient_scale), square = product(gradient.high, gradient.high);
            square.low = fmaf(__fadd_rn(gradient.high, gradient.high), gradient.low, square.low);
            Long first = mixed(ms.x[l], beta1, gradient, fresh1), second = mixed(vs.x[l], beta2, square, fresh2);
            ms.x[l] = first.high, vs.x[l] = second.high;
            Long top = scaled(first, correction1), spread = root(scaled(second, correction2));
            Long bottom = sum(spread.high, epsilon);
            bottom.low = __fadd_rn(bottom.low, spread.low);
            float inverse = reciprocal(bottom.high), quotient = __fmul_rn(top.high, inverse);
            float left = fmaf(-quotient, bottom.high, top.high);
            left = __fadd_rn(fmaf(-quotient, bottom.low, left), top.low);
            if (fabsf(left) < INFINITY) quotient = fmaf(left, inverse, quotient);
            ps.x[l] = fmaf(fmaf(ps.x[l], decay, quotient), -rate, ps.x[l]);
        }
        *(float4 *)(m + at) = ms.v, *(float4 *)(v + at) = vs.v, *(float4 *)(p + at) = ps.v;
        *(uint2 *)(half_copy + at) = pack(ps.v);
    }
}
