// The three streaming attention kernels in plain CUDA, as ours work: a warp 16 rows, fragments straight from global
// memory, no shared memory; bf16.  The compiler chooses order, registers and what it loads early.
#include "../images/plain.cuh"
constexpr int S = 1024, D = 64, THREADS = 128, STEPS = D / 16;

INLINE void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where a lane stands: lane 4 g + t; `first`: its warp's first row.
struct Lane {
    int head, first, g, t;
    INLINE Lane(bool longest_last) {
        int lane = threadIdx.x & 31, block = longest_last ? gridDim.y - 1 - blockIdx.y : blockIdx.y;
        head = blockIdx.x, first = block * 64 + (threadIdx.x >> 5) * 16, g = lane >> 2, t = lane & 3;
    }
    INLINE const half_t *rows(const half_t *x) const { return x + (size_t)head * S * D; }
};
INLINE uint32_t pair(const half_t *p) { return *(const uint32_t *)p; }

// 16 rows of D halves as first operands
INLINE void load_rows(uint32_t (&a)[STEPS][4], const half_t *x, const Lane &l) {
    UNROLL for (int s = 0; s < STEPS; s++)
        UNROLL for (int i = 0; i < 4; i++)
            a[s][i] = pair(x + (l.first + l.g + 8 * (i & 1)) * D + 16 * s + 2 * l.t + 8 * (i >> 1));
}
// c[j] = a (rows of the matrix from `at` on)^T
template <int TILES> INLINE void scores(float (&c)[TILES][4], const uint32_t (&a)[STEPS][4], const half_t *x, int at, const Lane &l) {
    UNROLL for (int j = 0; j < TILES; j++) {
        const half_t *row = x + (at + 8 * j + l.g) * D + 2 * l.t;
        c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
        UNROLL for (int s = 0; s < STEPS; s++) multiply(c[j], a[s], pair(row + 16 * s), pair(row + 16 * s + 8));
    }
}
// sums += p (columns `at` on of the transposed matrix)^T
template <int TILES> INLINE void accumulate(float (&sums)[8][4], const float (&p)[TILES][4], const half_t *xt, int at, const Lane &l) {
    UNROLL for (int i = 0; i < TILES / 2; i++) {
        uint32_t a[4];
        UNROLL for (int h = 0; h < 2; h++)
            a[2 * h] = pack(p[2 * i + h][0], p[2 * i + h][1]), a[2 * h + 1] = pack(p[2 * i + h][2], p[2 * i + h][3]);
        UNROLL for (int n = 0; n < 8; n++) {
            const half_t *row = xt + (8 * n + l.g) * S + at + 16 * i + 2 * l.t;
            multiply(sums[n], a, pair(row), pair(row + 8));
        }
    }
}
INLINE float over_lanes(float v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }
INLINE float most_of_lanes(float v) {
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
INLINE void store_sums(float *out, const float (&sums)[8][4], float factor, const Lane &l) {
    UNROLL for (int n = 0; n < 8; n++)
        UNROLL for (int h = 0; h < 2; h++)
            *(float2 *)(out + ((size_t)l.head * S + l.first + l.g + 8 * h) * D + 8 * n + 2 * l.t) =
                make_float2(sums[n][2 * h] * factor, sums[n][2 * h + 1] * factor);
}

IMAGE(THREADS) attention_forward(half_t *out, float *lse, const half_t *q, const half_t *k, const half_t *vt, float scale) {
    constexpr int TILES = 8;
    const Lane l(true);
    uint32_t a[STEPS][4];
    load_rows(a, l.rows(q), l);
    float sums[8][4] = {}, top[2] = {-3.4e38f, -3.4e38f}, total[2] = {};
    const float c = scale * LOG2_E;
    for (int at = 0; at < l.first + 16; at += 8 * TILES) {
        float p[TILES][4];
        scores(p, a, l.rows(k), at, l);
        UNROLL for (int h = 0; h < 2; h++) {
            float high = top[h];
            UNROLL for (int j = 0; j < TILES; j++)
                UNROLL for (int e = 0; e < 2; e++) {
                    if (at + 8 * j + 2 * l.t + e > l.first + l.g + 8 * h) p[j][2 * h + e] = -__int_as_float(0x7f800000);
                    high = fmaxf(high, p[j][2 * h + e]);
                }
            high = most_of_lanes(high);
            const float shrink = exp2_bare((top[h] - high) * c);
            top[h] = high, total[h] *= shrink;
            UNROLL for (int n = 0; n < 8; n++) sums[n][2 * h] *= shrink, sums[n][2 * h + 1] *= shrink;
            UNROLL for (int j = 0; j < TILES; j++)
                UNROLL for (int e = 0; e < 2; e++)
                    total[h] += p[j][2 * h + e] = exp2_bare((p[j][2 * h + e] - high) * c);
        }
        accumulate(sums, p, l.rows(vt), at, l);
    }
    UNROLL for (int h = 0; h < 2; h++) {
        const float whole = over_lanes(total[h]), factor = reciprocal(whole);
        const size_t row = (size_t)l.head * S + l.first + l.g + 8 * h;
        UNROLL for (int n = 0; n < 8; n++)
            *(uint32_t *)(out + row * D + 8 * n + 2 * l.t) = pack(sums[n][2 * h] * factor, sums[n][2 * h + 1] * factor);
        if (!l.t) lse[row] = top[h] * scale + log2_bare(whole) * LN_2;
    }
}

IMAGE(THREADS) attention_query(float *dq, float *delta, const half_t *q, const half_t *k, const half_t *kt, const half_t *v,
                               const half_t *out, const half_t *dout, const float *lse, float scale) {
    constexpr int TILES = 4;
    const Lane l(true);
    uint32_t a[STEPS][4], b[STEPS][4];
    load_rows(a, l.rows(q), l);
    load_rows(b, l.rows(dout), l);
    float sums[8][4] = {}, less[2], low[2];
    UNROLL for (int h = 0; h < 2; h++) {
        const size_t row = (size_t)l.head * S + l.first + l.g + 8 * h;
        float x = 0;
        UNROLL for (int n = 0; n < 16; n++) {
            const int at = row * D + 16 * l.t + n;
            x += widen(out[at]) * widen(dout[at]);
        }
        less[h] = over_lanes(x), low[h] = lse[row] * LOG2_E;
        if (!l.t) delta[row] = less[h];
    }
    const float c = scale * LOG2_E;
    for (int at = 0; at < l.first + 16; at += 8 * TILES) {
        float p[TILES][4], d[TILES][4];
        scores(p, a, l.rows(k), at, l);
        scores(d, b, l.rows(v), at, l);
        UNROLL for (int j = 0; j < TILES; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                const int h = e >> 1;
                const bool masked = at + 8 * j + 2 * l.t + (e & 1) > l.first + l.g + 8 * h;
                p[j][e] = masked ? 0 : exp2_bare(fmaf(p[j][e], c, -low[h])) * (d[j][e] - less[h]);
            }
        accumulate(sums, p, l.rows(kt), at, l);
    }
    store_sums(dq, sums, scale, l);
}

IMAGE(THREADS) attention_key(float *dk, float *dv, const half_t *q, const half_t *qt, const half_t *k, const half_t *v,
                             const half_t *dout, const half_t *doutt, const float *lse, const float *delta, float scale) {
    constexpr int TILES = 4;
    const Lane l(false);
    uint32_t a[STEPS][4], b[STEPS][4];
    load_rows(a, l.rows(k), l);
    load_rows(b, l.rows(v), l);
    float keys[8][4] = {}, values[8][4] = {};
    const float c = scale * LOG2_E;
    for (int at = l.first & -8 * TILES; at < S; at += 8 * TILES) {
        float p[TILES][4], g[TILES][4];
        scores(p, a, l.rows(q), at, l);
        scores(g, b, l.rows(dout), at, l);
        UNROLL for (int j = 0; j < TILES; j++)
            UNROLL for (int e = 0; e < 4; e++) {
                const int query = at + 8 * j + 2 * l.t + (e & 1), row = l.head * S + query;
                const bool masked = query < l.first + l.g + 8 * (e >> 1);
                p[j][e] = masked ? 0 : exp2_bare(fmaf(p[j][e], c, -lse[row] * LOG2_E));
                g[j][e] = masked ? 0 : p[j][e] * (g[j][e] - delta[row]);
            }
        accumulate(values, p, l.rows(doutt), at, l);
        accumulate(keys, g, l.rows(qt), at, l);
    }
    store_sums(dk, keys, scale, l);
    store_sums(dv, values, 1, l);
}
