// Rows 12 to 16, 27 and 28: between tokens' rows and heads' matrices, no shared memory. S 1024, H 8, D 64.
#include "plain.cuh"

INLINE Quad turned(Quad v, const Quad &t, float sign) {
    UNROLL for (int at = 0; at < 4; at += 2) {
        float c = t.x[at], s = sign * t.x[at + 1], even = v.x[at], odd = v.x[at + 1];
        v.x[at] = fmaf(even, c, -__fmul_rn(odd, s)), v.x[at + 1] = fmaf(odd, c, __fmul_rn(even, s));
    }
    return v;
}

IMAGE(128) qk_rope(half_t *q, half_t *k, const float *qkv, const float *table) {
    uint32_t flat = blockIdx.x * 128 + threadIdx.x, group = blockIdx.y, piece = flat & 15, position = flat >> 4;
    Quad t = load4(table + (size_t)flat * 4), v[2][4];
    const float *source = qkv + (size_t)(position * 384 + group * 64 + piece) * 4;
    UNROLL for (int p = 0; p < 2; p++) UNROLL for (int h = 0; h < 4; h++) v[p][h] = load4(source + p * 512 + h * 64);
    size_t index = (size_t)(group * 65536 + flat) * 4;
    UNROLL for (int h = 0; h < 4; h++) *(uint2 *)(q + index + h * 65536) = pack(turned(v[0][h], t, 1.f).v);
    UNROLL for (int h = 0; h < 4; h++) *(uint2 *)(k + index + h * 65536) = pack(turned(v[1][h], t, 1.f).v);
}

IMAGE(128) inverse_rope_qkv(half_t *dqkv, const float *dq, const float *dk, const float *dv, const float *table) {
    uint32_t flat = blockIdx.x * 128 + threadIdx.x, group = blockIdx.y, piece = flat & 15, position = flat >> 4;
    size_t index = (size_t)(group * 65536 + flat) * 4;
    Quad t = load4(table + (size_t)flat * 4), v[3][4];
    const float *parts[3] = {dq + index, dk + index, dv + index};
    UNROLL for (int p = 0; p < 3; p++) UNROLL for (int h = 0; h < 4; h++) v[p][h] = load4(parts[p] + h * 65536);
    half_t *out = dqkv + (size_t)(position * 384 + group * 64 + piece) * 4;
    UNROLL for (int p = 0; p < 3; p++)
        UNROLL for (int h = 0; h < 4; h++)
            *(uint2 *)(out + p * 512 + h * 64) = pack((p < 2 ? turned(v[p][h], t, -1.f) : v[p][h]).v);
}

IMAGE(512) value_transpose(half_t *vt, const float *qkv) {
    uint32_t t = threadIdx.x;
    uint32_t columns = blockIdx.y * 16 + ((t & 3) | (t >> 5 & 3) << 2);
    uint32_t positions = blockIdx.x * 32 + ((t >> 2 & 7) | (t >> 7 & 3) << 3);
    const float *source = qkv + (size_t)(positions * 1536 + columns + 256) * 4;
    Quad line[4];
    UNROLL for (int i = 0; i < 4; i++) line[i] = load4(source + i * 1536);
    half_t *out = vt + (size_t)(columns * 1024 + positions) * 4;
    UNROLL for (int c = 0; c < 4; c++)
        *(uint2 *)(out + c * 1024) = make_uint2(pack(line[0].x[c], line[1].x[c]), pack(line[2].x[c], line[3].x[c]));
}

IMAGE(256) head_to_token(half_t *out, const half_t *heads) {
    uint32_t group = threadIdx.x >> 6, flat = blockIdx.x * 64 + (threadIdx.x & 63), piece = flat & 7, position = flat >> 3;
    const half_t *source = heads + (size_t)(group * 16384 + flat) * 8;
    uint4 v[2];
    UNROLL for (int h = 0; h < 2; h++) v[h] = *(const uint4 *)(source + h * 65536);
    half_t *to = out + (size_t)(position * 64 + group * 16 + piece) * 8;
    UNROLL for (int h = 0; h < 2; h++) *(uint4 *)(to + h * 64) = v[h];
}

IMAGE(256) token_to_head(half_t *out, const float *tokens) {
    uint32_t group = threadIdx.x >> 7, flat = blockIdx.x * 128 + (threadIdx.x & 127), piece = flat & 15, position = flat >> 4;
    const float *source = tokens + (size_t)(position * 128 + group * 64 + piece) * 4;
    Quad v[4];
    UNROLL for (int h = 0; h < 4; h++) v[h] = load4(source + h * 64);
    half_t *to = out + (size_t)(group * 65536 + flat) * 4;
    UNROLL for (int h = 0; h < 4; h++) *(uint2 *)(to + h * 65536) = pack(v[h].v);
}

template <int ROWS, int COLUMNS> INLINE void transpose(half_t *out, const half_t *source) {
    uint32_t t = threadIdx.x, row = (t >> 2 & 7) * 8, column = (t >> 5) * 16 + (t & 3) * 4;
    if (ROWS == 64) column += blockIdx.x * 64;
    else row += blockIdx.x * 64;
    const half_t *from = source + (blockIdx.y * (ROWS * COLUMNS) + row * COLUMNS + column);
    half_t *to = out + (blockIdx.y * (ROWS * COLUMNS) + column * ROWS + row);
    uint2 line[8];
    UNROLL for (int i = 0; i < 8; i++) line[i] = *(const uint2 *)(from + i * COLUMNS);
    UNROLL for (int c = 0; c < 4; c++) {
        uint32_t v[4], selector = c & 1 ? 0x7632 : 0x5410;
        UNROLL for (int p = 0; p < 4; p++)
            v[p] = c < 2 ? __byte_perm(line[2 * p].x, line[2 * p + 1].x, selector)
                         : __byte_perm(line[2 * p].y, line[2 * p + 1].y, selector);
        *(uint4 *)(to + c * ROWS) = make_uint4(v[0], v[1], v[2], v[3]);
    }
}
IMAGE(128) transpose_g8_r1024_c64(half_t *out, const half_t *source) { transpose<1024, 64>(out, source); }
IMAGE(128) transpose_g8_r64_c1024(half_t *out, const half_t *source) { transpose<64, 1024>(out, source); }
