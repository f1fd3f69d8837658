// Tensor-core kernels: one warp a tile unless said otherwise; row-major unless said otherwise.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <stdint.h>

using namespace nvcuda;

// c[16][16] (f32) = a[16][16] * b[16][16] (half), one tile a block
extern "C" __global__ void wmma_f16_f32(float *c, const __half *a, const __half *b) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    int at = blockIdx.x * 256;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a + at, 16);
    wmma::load_matrix_sync(fb, b + at, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c + at, fc, 16, wmma::mem_row_major);
}

// half accumulation over k = 64: c[32][8] = a[32][64] * b[64][8], b column-major
extern "C" __global__ void wmma_f16_f16(__half *c, const __half *a, const __half *b) {
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, __half> fc;
    wmma::fill_fragment(fc, __float2half(0.0f));
    for (int k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(fa, a + k, 64);
        wmma::load_matrix_sync(fb, b + k, 64);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

// s8 x s8 -> s32, 16 x 16 x 16
extern "C" __global__ void wmma_s8(int *c, const signed char *a, const signed char *b) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 0);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}

// f64: c[8][8] = a[8][4] * b[4][8] + c, b column-major
extern "C" __global__ void wmma_f64(double *c, const double *a, const double *b) {
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> fc;
    wmma::load_matrix_sync(fc, c, 8, wmma::mem_row_major);
    wmma::load_matrix_sync(fa, a, 4);
    wmma::load_matrix_sync(fb, b, 4);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

// Raw fragments, so that the emulator's layout is tested alone: lane l reads a[l*A ..], b[l*B ..], c[l*C ..].
#define FRAGMENT(name, TC, CN, AN, BN, ptx, ...)                                                        \
    extern "C" __global__ void name(TC *d, const uint32_t *pa, const uint32_t *pb, const TC *pc) {           \
        const uint32_t *a = pa + threadIdx.x * AN, *b = pb + threadIdx.x * BN;                                \
        TC c[CN];                                                                                            \
        for (int i = 0; i < CN; i++) c[i] = pc[threadIdx.x * CN + i];                                        \
        asm volatile(ptx __VA_ARGS__);                                                                        \
        for (int i = 0; i < CN; i++) d[threadIdx.x * CN + i] = c[i];                                         \
    }
#define A4B2C4 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#define A2B1C4 " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
#define A4B2C2 " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
#define A2B1C2 " {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
#define C4(k) : "+" k(c[0]), "+" k(c[1]), "+" k(c[2]), "+" k(c[3])
#define C2(k) : "+" k(c[0]), "+" k(c[1])
#define AB42 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])
#define AB21 : "r"(a[0]), "r"(a[1]), "r"(b[0])

FRAGMENT(mma_16816_f16_f32, float, 4, 4, 2, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" A4B2C4, C4("f") AB42)
FRAGMENT(mma_16816_bf16_f32, float, 4, 4, 2, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" A4B2C4, C4("f") AB42)
FRAGMENT(mma_1688_tf32_f32, float, 4, 4, 2, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" A4B2C4, C4("f") AB42)
FRAGMENT(mma_1684_tf32_f32, float, 4, 2, 1, "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32" A2B1C4, C4("f") AB21)
FRAGMENT(mma_1688_f16_f32, float, 4, 2, 1, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" A2B1C4, C4("f") AB21)
FRAGMENT(mma_1688_bf16_f32, float, 4, 2, 1, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32" A2B1C4, C4("f") AB21)
FRAGMENT(mma_16816_f16_f16, uint32_t, 2, 4, 2, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16" A4B2C2, C2("r") AB42)
FRAGMENT(mma_1688_f16_f16, uint32_t, 2, 2, 1, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16" A2B1C2, C2("r") AB21)
FRAGMENT(mma_16832_s8, int, 4, 4, 2, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" A4B2C4, C4("r") AB42)
FRAGMENT(mma_16832_u8_saturate, int, 4, 4, 2, "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32" A4B2C4, C4("r") AB42)
FRAGMENT(mma_16816_s8u8, int, 4, 2, 1, "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32" A2B1C4, C4("r") AB21)
FRAGMENT(mma_16864_s4, int, 4, 4, 2, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32" A4B2C4, C4("r") AB42)
FRAGMENT(mma_16832_u4, int, 4, 2, 1, "mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32" A2B1C4, C4("r") AB21)
FRAGMENT(mma_168256_b1_xor, int, 4, 4, 2, "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc" A4B2C4, C4("r") AB42)

// f64 fragment: lane l holds a[l], b[l], c[2l], c[2l+1]
extern "C" __global__ void mma_884_f64(double *d, const double *a, const double *b, const double *c) {
    double x = c[2 * threadIdx.x], y = c[2 * threadIdx.x + 1];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(x), "+d"(y) : "d"(a[threadIdx.x]), "d"(b[threadIdx.x]));
    d[2 * threadIdx.x] = x, d[2 * threadIdx.x + 1] = y;
}

// 2:4 sparse A: lane l holds a[2l..], b[4l..], c[4l..], meta[l]
extern "C" __global__ void mma_sparse_16832_f16(float *d, const uint32_t *a, const uint32_t *b, const float *c, const uint32_t *meta) {
    int t = threadIdx.x;
    float r[4] = {c[4 * t], c[4 * t + 1], c[4 * t + 2], c[4 * t + 3]};
    asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])
                 : "r"(a[4 * t]), "r"(a[4 * t + 1]), "r"(a[4 * t + 2]), "r"(a[4 * t + 3]), "r"(b[4 * t]), "r"(b[4 * t + 1]),
                   "r"(b[4 * t + 2]), "r"(b[4 * t + 3]), "r"(meta[t]));
    for (int i = 0; i < 4; i++) d[4 * t + i] = r[i];
}

// movmatrix: out[l] = the transposed 8x8 fragment of x[l]
extern "C" __global__ void move_matrix(uint32_t *out, const uint32_t *x) {
    uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x[threadIdx.x]));
    out[threadIdx.x] = r;
}

// ldmatrix in all six shapes from a 32 x 16 half tile; out[lane*14 ..] = x1, x2, x4 plain then transposed
extern "C" __global__ void load_matrix_shapes(uint32_t *out, const uint32_t *x) {
    __shared__ __align__(16) uint32_t tile[32][8];
    for (int i = threadIdx.x; i < 256; i += 32) tile[0][i] = x[i];
    __syncwarp();
    uint32_t r[14], p = (uint32_t)__cvta_generic_to_shared(&tile[threadIdx.x & 31][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(p) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[1]), "=r"(r[2]) : "r"(p) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]) : "r"(p) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[7]) : "r"(p) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(r[8]), "=r"(r[9]) : "r"(p + 16) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]) : "r"(p) : "memory");
    for (int i = 0; i < 14; i++) out[threadIdx.x * 14 + i] = r[i];
}
