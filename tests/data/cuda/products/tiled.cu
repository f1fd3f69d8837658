// The tiled product in plain CUDA: cp.async of 16 bytes, ldmatrix, mma.sync; what our main loops are compared with.
//
// Tile, stage ring, places in shared memory, epilogue and the order of products along K are those of our kernel
// (coppelius/kernels/tiled), so that both leave the same bits; instructions, registers and schedule are the compiler's.
// Halves are bf16.  C is ROWS x COLUMNS blocks of the tile, K is ROUNDS turns of the ring, both baked in as in ours.
#include <stdint.h>
#define INLINE __device__ __forceinline__
#define UNROLL _Pragma("unroll")

constexpr int K_STAGE = 32, BLOCKS_M = 2, BLOCKS_N = 2, ROUNDS = 4;

INLINE void copy16(uint32_t to, const uint16_t *from, bool wanted) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16;}"
                 :: "r"(to), "l"(from), "r"((int)wanted) : "memory");
}
INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> INLINE void await_groups() {
    asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
    __syncthreads();
}
template <bool TURNED> INLINE void load_matrices(uint32_t (&r)[4], uint32_t from) {
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from));
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(from));
}
INLINE void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ constexpr int log2_of(int x) { return x > 1 ? 1 + log2_of(x / 2) : 0; }

// One operand: SPAN rows of A or columns of B in a block; CROSSED: which lanes give which matrix (see fragments.py).
template <int SPAN, bool COLUMNS, bool CROSSED, int PIECES, int THREADS, int STRIDE, int STAGES, int STAGE_BYTES, int PLACE>
struct Operand {
    static constexpr int LINES = COLUMNS ? K_STAGE : SPAN, CHUNKS = (COLUMNS ? SPAN : K_STAGE) / 8;
    static constexpr int PASS = THREADS / CHUNKS, COPIES = LINES / PASS;
    const uint16_t *from;
    uint32_t to, base;

    INLINE static uint32_t place(uint32_t line, uint32_t chunk) { return 16 * (chunk * LINES + (line ^ (chunk & 1) * 4)); }

    INLINE Operand(const uint16_t *matrix, uint32_t shared, int block, int warp) {
        uint32_t t = threadIdx.x, lane = t & 31;
        uint32_t chunk = (t & 1) + (t >> 2 & (CHUNKS - 2)), line = (t >> 1 & 3) + 4 * (t >> (2 + log2_of(CHUNKS)));
        from = matrix + (COLUMNS ? line * STRIDE + block * SPAN + chunk * 8 : (block * SPAN + line) * STRIDE + chunk * 8);
        to = shared + PLACE + place(line, chunk);
        uint32_t l = CROSSED ? (lane >> 4) * 8 + (lane & 7) : lane & 15, c = CROSSED ? lane >> 3 & 1 : lane >> 4;
        base = shared + PLACE + (COLUMNS ? place(l, warp * PIECES * 2 + c) : place(warp * PIECES * 16 + l, c));
    }
    INLINE void copy(int slot, bool wanted) {
        UNROLL for (int q = 0; q < COPIES; q++)
            copy16(to + slot * STAGE_BYTES + q * PASS * 16, from + q * PASS * STRIDE, wanted);
        from += COLUMNS ? K_STAGE * STRIDE : K_STAGE;
    }
    INLINE void load(uint32_t (&quad)[4], int slot, int step, int piece) {
        int lines = COLUMNS ? step * 16 : piece * 16, chunks = 2 * (COLUMNS ? piece : step);
        load_matrices<COLUMNS>(quad, base + slot * STAGE_BYTES + lines * 16 + chunks * LINES * 16);
    }
};

template <int WARPS_M, int WARPS_N, int FRAGMENTS_M, int FRAGMENTS_N, int STAGES, bool A_COLUMNS, bool B_COLUMNS>
INLINE void tiled(float *c, const uint16_t *a, const uint16_t *b) {
    constexpr int THREADS = 32 * WARPS_M * WARPS_N, ROWS = WARPS_M * FRAGMENTS_M * 16, COLUMNS = WARPS_N * FRAGMENTS_N * 8;
    constexpr int M = BLOCKS_M * ROWS, N = BLOCKS_N * COLUMNS, K = K_STAGE * STAGES * ROUNDS;
    constexpr int STAGE_BYTES = (ROWS + COLUMNS) * K_STAGE * 2, PIECES_N = FRAGMENTS_N / 2;
    extern __shared__ __align__(16) uint8_t ring[];
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(ring);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, along = warp / WARPS_N, across = warp % WARPS_N;
    Operand<ROWS, A_COLUMNS, A_COLUMNS, FRAGMENTS_M, THREADS, A_COLUMNS ? M : K, STAGES, STAGE_BYTES, 0>
        left(a, shared, blockIdx.y, along);
    Operand<COLUMNS, B_COLUMNS, !B_COLUMNS, PIECES_N, THREADS, B_COLUMNS ? N : K, STAGES, STAGE_BYTES, ROWS * K_STAGE * 2>
        right(b, shared, blockIdx.x, across);
    float sums[FRAGMENTS_M][FRAGMENTS_N][4] = {};
    uint32_t x[2][FRAGMENTS_M][4], y[2][PIECES_N][4];  // a buffer a step

    auto load = [&](int slot, int step) {
        UNROLL for (int i = 0; i < FRAGMENTS_M; i++) left.load(x[step][i], slot, step, i);
        UNROLL for (int p = 0; p < PIECES_N; p++) right.load(y[step][p], slot, step, p);
    };
    auto products = [&](int step) {
        UNROLL for (int i = 0; i < FRAGMENTS_M; i++)
            UNROLL for (int n = 0; n < FRAGMENTS_N; n++) {
                int j = i % 2 ? FRAGMENTS_N - 1 - n : n;
                multiply(sums[i][j], x[step][i], y[step][j / 2][j % 2 * 2], y[step][j / 2][j % 2 * 2 + 1]);
            }
    };

    UNROLL for (int slot = 0; slot < STAGES; slot++) {
        left.copy(slot, true);
        right.copy(slot, true);
        commit();
    }
    await_groups<STAGES - 1>();
    load(0, 0);
    // one in the launch, but not to the compiler, so that few turns stay a loop as many do
    const int rounds = ROUNDS * gridDim.z;
    _Pragma("unroll 1") for (int round = rounds; round > 0; round--) {
        bool more = round > 1;
        UNROLL for (int slot = 0; slot < STAGES; slot++) {
            load(slot, 1);
            products(0);
            await_groups<STAGES - 2>();
            load((slot + 1) % STAGES, 0);
            left.copy(slot, more);
            right.copy(slot, more);
            commit();
            products(1);
        }
    }

    // the last turn's loads of a stage that does not follow end before its place is written
    __syncthreads();
    // 16 rows of the warp at a time through its own part of the ring, turned by 32 bytes a row of four
    constexpr int WIDTH = FRAGMENTS_N * 8, LANES = WIDTH / 4, PASS_ROWS = 32 / LANES;
    uint8_t *own = ring + warp * 16 * WIDTH * 4;
    float *out = c + (size_t)(blockIdx.y * ROWS + along * FRAGMENTS_M * 16) * N + blockIdx.x * COLUMNS + across * WIDTH;
    const int g = lane / 4, t = lane % 4, row = lane / LANES, column = lane % LANES;
    UNROLL for (int i = 0; i < FRAGMENTS_M; i++) {
        UNROLL for (int j = 0; j < FRAGMENTS_N; j++)
            UNROLL for (int half = 0; half < 2; half++)
                *(float2 *)(own + (g + 8 * half) * WIDTH * 4 + ((32 * j + 8 * t) ^ (g & 3) * 32)) =
                    make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
        __syncwarp();
        UNROLL for (int at = 0; at < 16; at += PASS_ROWS) {
            int r = at + row;
            *(float4 *)(out + (size_t)(i * 16 + r) * N + column * 4) =
                *(const float4 *)(own + r * WIDTH * 4 + ((16 * column) ^ (r & 3) * 32));
        }
        __syncwarp();
    }
}

#define TILED(candidate, warps_m, warps_n, fragments_m, fragments_n, stages)                                            \
    KERNEL(candidate##_rr, warps_m, warps_n, fragments_m, fragments_n, stages, false, false)                            \
    KERNEL(candidate##_rc, warps_m, warps_n, fragments_m, fragments_n, stages, false, true)                             \
    KERNEL(candidate##_cc, warps_m, warps_n, fragments_m, fragments_n, stages, true, true)
#define KERNEL(name, warps_m, warps_n, fragments_m, fragments_n, stages, a_columns, b_columns)                          \
    extern "C" __global__ __launch_bounds__(32 * warps_m * warps_n) void tiled_##name(                                  \
        float *__restrict__ c, const uint16_t *__restrict__ a, const uint16_t *__restrict__ b) {                        \
        tiled<warps_m, warps_n, fragments_m, fragments_n, stages, a_columns, b_columns>(c, a, b);                       \
    }

// the candidates of coppelius/products/tile.py that the record chooses, and the large ones
TILED(0, 2, 4, 4, 4, 4)
TILED(2, 2, 2, 2, 4, 4)
TILED(4, 4, 2, 2, 4, 4)
TILED(6, 4, 2, 4, 8, 2)
