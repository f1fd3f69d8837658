// Pipelined tensor-core GEMMs and attention: cp.async, ldmatrix, mma.sync.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

__device__ __forceinline__ void load4(uint32_t *r, const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}
__device__ __forceinline__ void load4_transposed(uint32_t *r, const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(p)) : "memory");
}

template <typename T> __device__ __forceinline__ void mma(float *c, const uint32_t *a, uint32_t b0, uint32_t b1);
template <> __device__ __forceinline__ void mma<__half>(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ __forceinline__ void mma<__nv_bfloat16>(float *c, const uint32_t *a, uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c[m][n] (f32) = a[m][k] * b[k][n]; a block of 128 threads makes 64 x 64, three stages of k = 32; sizes multiples
template <typename T> __device__ __forceinline__ void gemm(float *c, const T *a, const T *b, int n, int k) {
    constexpr int STAGES = 3;
    __shared__ __align__(16) T sa[STAGES][64][40], sb[STAGES][32][72];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5, wr = (warp >> 1) * 32, wc = (warp & 1) * 32;
    a += (size_t)blockIdx.y * 64 * k;
    b += blockIdx.x * 64;
    auto fetch = [&](int stage, int at) {
#pragma unroll
        for (int i = t; i < 256; i += 128) {
            copy16(&sa[stage][i >> 2][(i & 3) * 8], a + (size_t)(i >> 2) * k + at + (i & 3) * 8);
            copy16(&sb[stage][i >> 3][(i & 7) * 8], b + (size_t)(at + (i >> 3)) * n + (i & 7) * 8);
        }
    };
    int tiles = k / 32;
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) fetch(s, s * 32);
        commit();
    }
    float acc[2][4][4] = {};
    for (int tile = 0; tile < tiles; tile++) {
        wait<STAGES - 2>();
        __syncthreads();
        int next = tile + STAGES - 1;
        if (next < tiles) fetch(next % STAGES, next * 32);
        commit();
        int s = tile % STAGES;
#pragma unroll
        for (int kk = 0; kk < 32; kk += 16) {
            uint32_t fa[2][4], fb[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) load4(fa[i], &sa[s][wr + 16 * i + (lane & 15)][kk + (lane >> 4) * 8]);
#pragma unroll
            for (int j = 0; j < 2; j++) load4_transposed(fb[j], &sb[s][kk + (lane & 15)][wc + 16 * j + (lane >> 4) * 8]);
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma<T>(acc[i][j], fa[i], fb[j >> 1][(j & 1) * 2], fb[j >> 1][(j & 1) * 2 + 1]);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = blockIdx.y * 64 + wr + 16 * i + (lane >> 2), column = blockIdx.x * 64 + wc + 8 * j + (lane & 3) * 2;
            *reinterpret_cast<float2 *>(&c[(size_t)row * n + column]) = make_float2(acc[i][j][0], acc[i][j][1]);
            *reinterpret_cast<float2 *>(&c[(size_t)(row + 8) * n + column]) = make_float2(acc[i][j][2], acc[i][j][3]);
        }
}

extern "C" __global__ void __launch_bounds__(128) gemm_f16_pipelined(float *c, const __half *a, const __half *b, int n, int k) { gemm<__half>(c, a, b, n, k); }
extern "C" __global__ void __launch_bounds__(128, 4) gemm_bf16_pipelined(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int n, int k) { gemm<__nv_bfloat16>(c, a, b, n, k); }

// cp.async of 4, 8, 16 bytes, 16 with a zero-filled tail, and bypass; out[i] = x[i] over 512 floats, 128 threads,
// of the last 128 only the first two of each four are copied and the rest are zero
extern "C" __global__ void copy_async_widths(float *out, const float *x) {
    __shared__ __align__(16) float tile[512];
    int t = threadIdx.x;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&tile[t])), "l"(x + t) : "memory");
    if (t < 64) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(&tile[128 + 2 * t])), "l"(x + 128 + 2 * t) : "memory");
    if (t < 32) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(&tile[256 + 4 * t])), "l"(x + 256 + 4 * t) : "memory");
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, 8;" ::"r"(shared_address(&tile[384 + 4 * t])), "l"(x + 384 + 4 * t) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = t; i < 512; i += 128) out[i] = tile[i];
}

// one warp a (head, 16 queries): o = softmax(q k^T / 8) v; head width 64, keys a multiple of 16, no mask;
// q, k, v, o are half [head][length][64]
extern "C" __global__ void __launch_bounds__(32) attention_f16(__half *o, const __half *q, const __half *k, const __half *v, int queries, int keys) {
    __shared__ __align__(16) __half sq[16][72], sk[16][72], sv[16][72];
    int lane = threadIdx.x;
    q += ((size_t)blockIdx.y * queries + blockIdx.x * 16) * 64;
    o += ((size_t)blockIdx.y * queries + blockIdx.x * 16) * 64;
    k += (size_t)blockIdx.y * keys * 64;
    v += (size_t)blockIdx.y * keys * 64;
    for (int i = lane; i < 128; i += 32) copy16(&sq[i >> 3][(i & 7) * 8], q + i * 8);
    commit();
    float out[8][4] = {}, top[2] = {-1e30f, -1e30f}, sum[2] = {};
    for (int at = 0; at < keys; at += 16) {
        __syncwarp();
        for (int i = lane; i < 128; i += 32) {
            copy16(&sk[i >> 3][(i & 7) * 8], k + at * 64 + i * 8);
            copy16(&sv[i >> 3][(i & 7) * 8], v + at * 64 + i * 8);
        }
        commit();
        wait<0>();
        __syncwarp();
        float s[2][4] = {};
#pragma unroll
        for (int d = 0; d < 64; d += 16) {
            uint32_t fq[4], fk[4];
            load4(fq, &sq[lane & 15][d + (lane >> 4) * 8]);
            load4(fk, &sk[(lane & 7) + ((lane >> 4) << 3)][d + ((lane >> 3) & 1) * 8]);
            mma<__half>(s[0], fq, fk[0], fk[1]);
            mma<__half>(s[1], fq, fk[2], fk[3]);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float m = fmaxf(fmaxf(s[0][2 * h], s[0][2 * h + 1]), fmaxf(s[1][2 * h], s[1][2 * h + 1]));
            m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
            m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
            m = fmaxf(m * 0.125f, top[h]);
            float scale = __expf(top[h] - m), part = 0;
            top[h] = m;
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) part += s[j][2 * h + e] = __expf(s[j][2 * h + e] * 0.125f - m);
            sum[h] = sum[h] * scale + part;
#pragma unroll
            for (int j = 0; j < 8; j++) out[j][2 * h] *= scale, out[j][2 * h + 1] *= scale;
        }
        uint32_t p[4];
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                __half2 pair = __floats2half2_rn(s[j][2 * h], s[j][2 * h + 1]);
                p[2 * j + h] = *reinterpret_cast<uint32_t *>(&pair);
            }
#pragma unroll
        for (int d = 0; d < 4; d++) {
            uint32_t fv[4];
            load4_transposed(fv, &sv[lane & 15][d * 16 + (lane >> 4) * 8]);
            mma<__half>(out[2 * d], p, fv[0], fv[1]);
            mma<__half>(out[2 * d + 1], p, fv[2], fv[3]);
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
        float inverse = 1.0f / sum[h];
#pragma unroll
        for (int j = 0; j < 8; j++)
            *reinterpret_cast<__half2 *>(&o[((lane >> 2) + 8 * h) * 64 + j * 8 + (lane & 3) * 2]) =
                __floats2half2_rn(out[j][2 * h] * inverse, out[j][2 * h + 1] * inverse);
    }
}
