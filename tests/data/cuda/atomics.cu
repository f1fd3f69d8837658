// Atomics: results do not depend on order (integer sums, extrema, bit operations), or each lane owns its word.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// 32-bit reductions on eight words of out (no result used): add, min, max, umin, umax, and, or, xor
extern "C" __global__ void global_reductions_s32(int *out, const int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    unsigned *u = reinterpret_cast<unsigned *>(out);
    atomicAdd(out + 0, v);
    atomicMin(out + 1, v);
    atomicMax(out + 2, v);
    atomicMin(u + 3, (unsigned)v);
    atomicMax(u + 4, (unsigned)v);
    atomicAnd(u + 5, (unsigned)v);
    atomicOr(u + 6, (unsigned)v);
    atomicXor(u + 7, (unsigned)v);
}

// results used, one word a thread: old[k][i] for add, sub, exch, cas, inc, dec, min, max; words[k][i] updated
extern "C" __global__ void global_atomics_u32(unsigned *words, unsigned *old, const unsigned *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = x[i];
    old[0 * n + i] = atomicAdd(&words[0 * n + i], v);
    old[1 * n + i] = atomicSub(&words[1 * n + i], v);
    old[2 * n + i] = atomicExch(&words[2 * n + i], v);
    old[3 * n + i] = atomicCAS(&words[3 * n + i], v & 1, v);
    old[4 * n + i] = atomicInc(&words[4 * n + i], v);
    old[5 * n + i] = atomicDec(&words[5 * n + i], v);
    old[6 * n + i] = atomicMin(&words[6 * n + i], v);
    old[7 * n + i] = atomicMax(&words[7 * n + i], v);
}

// 64-bit: old[k][i] for add, exch, cas, min, max(signed), and, or, xor
extern "C" __global__ void global_atomics_u64(unsigned long long *words, unsigned long long *old, const unsigned long long *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = x[i];
    old[0 * n + i] = atomicAdd(&words[0 * n + i], v);
    old[1 * n + i] = atomicExch(&words[1 * n + i], v);
    old[2 * n + i] = atomicCAS(&words[2 * n + i], v & 1, v);
    old[3 * n + i] = atomicMin(&words[3 * n + i], v);
    old[4 * n + i] = atomicMax(reinterpret_cast<long long *>(&words[4 * n + i]), (long long)v);
    old[5 * n + i] = atomicAnd(&words[5 * n + i], v);
    old[6 * n + i] = atomicOr(&words[6 * n + i], v);
    old[7 * n + i] = atomicXor(&words[7 * n + i], v);
}

// float, double, half2, bf162 adds with old values, one word a thread
extern "C" __global__ void global_atomics_float(float *f, double *d, __half2 *h, __nv_bfloat162 *b, float *old, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    old[i] = atomicAdd(&f[i], 1.5f);
    old[n + i] = (float)atomicAdd(&d[i], 0.25);
    __half2 was = atomicAdd(&h[i], __floats2half2_rn(1.0f, 2.0f));
    old[2 * n + i] = __low2float(was) + __high2float(was);
    __nv_bfloat162 wasb = atomicAdd(&b[i], __floats2bfloat162_rn(1.0f, 2.0f));
    old[3 * n + i] = __low2float(wasb) + __high2float(wasb);
}

// reductions without a result: small whole floats, so that every order gives the same sums
extern "C" __global__ void global_reductions_float(float *f, double *d, __half2 *h, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(f, x[i]);
    atomicAdd(d, (double)x[i]);
    atomicAdd(h, __floats2half2_rn(1.0f, -1.0f));
    asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(reinterpret_cast<__half *>(h) + 2), "h"((short)0x3c00) : "memory");
}

// shared memory: out[0..8] = add, min, max, and, or, xor of x, 64-bit add, count of exchanges, cas winners
extern "C" __global__ void shared_atomics(unsigned *out, const unsigned *x) {
    __shared__ unsigned s[8];
    __shared__ unsigned long long wide;
    __shared__ unsigned won;
    if (threadIdx.x < 8) s[threadIdx.x] = (threadIdx.x == 1 || threadIdx.x == 3) ? ~0u : 0u;
    if (threadIdx.x == 0) wide = 0, won = 0;
    __syncthreads();
    unsigned v = x[threadIdx.x];
    atomicAdd(&s[0], v);
    atomicMin(&s[1], v);
    atomicMax(&s[2], v);
    atomicAnd(&s[3], v);
    atomicOr(&s[4], v);
    atomicXor(&s[5], v);
    atomicAdd(&wide, (unsigned long long)v << 16);
    if (atomicCAS(&s[6], 0u, threadIdx.x + 1) == 0) atomicAdd(&won, 1u);
    __syncthreads();
    if (threadIdx.x < 6) out[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 6) out[6] = (unsigned)wide, out[7] = (unsigned)(wide >> 32), out[8] = won;
}

// shared atomics with old values, a word a thread (128): add, exch, cas, inc, min
extern "C" __global__ void shared_atomics_old(unsigned *out, unsigned *old, const unsigned *x) {
    __shared__ unsigned s[5][128];
    int t = threadIdx.x;
    for (int k = 0; k < 5; k++) s[k][t] = 3 * t + k;
    __syncthreads();
    unsigned v = x[t];
    old[0 * 128 + t] = atomicAdd(&s[0][t], v);
    old[1 * 128 + t] = atomicExch(&s[1][t], v);
    old[2 * 128 + t] = atomicCAS(&s[2][t], 3u * t + 2u, v);
    old[3 * 128 + t] = atomicInc(&s[3][t], v);
    old[4 * 128 + t] = atomicMin(&s[4][t], v);
    __syncthreads();
    for (int k = 0; k < 5; k++) out[k * 128 + t] = s[k][t];
}

// float max through a compare-and-swap loop on shared and global memory; positive x
extern "C" __global__ void cas_loop_max_f32(float *out, const float *x, int n) {
    __shared__ float best;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int *word = reinterpret_cast<int *>(&best), seen = *word;
        while (__int_as_float(seen) < x[i]) {
            int was = atomicCAS(word, seen, __float_as_int(x[i]));
            if (was == seen) break;
            seen = was;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<int *>(out), __float_as_int(best));
}

// float add in shared memory (a compare-and-swap loop in code), whole numbers
extern "C" __global__ void shared_add_f32(float *out, const float *x) {
    __shared__ float sum[2];
    if (threadIdx.x < 2) sum[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&sum[threadIdx.x & 1], x[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x < 2) out[2 * blockIdx.x + threadIdx.x] = sum[threadIdx.x];
}

// scopes and orders: block, system, acquire-release, cas 16 bits; one word a thread
extern "C" __global__ void scoped_atomics(unsigned *words, unsigned *old, unsigned short *small, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    old[i] = atomicAdd_block(&words[i], 1u);
    old[n + i] = atomicAdd_system(&words[n + i], 2u);
    unsigned r;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 3;" : "=r"(r) : "l"(&words[2 * n + i]) : "memory");
    old[2 * n + i] = r;
    asm volatile("atom.acquire.cta.global.exch.b32 %0, [%1], 4;" : "=r"(r) : "l"(&words[3 * n + i]) : "memory");
    old[3 * n + i] = r;
    old[4 * n + i] = atomicCAS(&small[i], (unsigned short)(i & 1), (unsigned short)7);
}

// the last block to arrive writes the sum of all blocks' parts (whole floats); count must be zero
extern "C" __global__ void last_block_sum(float *out, float *parts, unsigned *count, const float *x) {
    __shared__ bool last;
    float v = x[blockIdx.x * 32 + threadIdx.x];
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = v;
        __threadfence();
        last = atomicAdd(count, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += ((volatile float *)parts)[i];
        *out = sum;
    }
}
