// Softmax, normalisation, rotary embedding, loss, optimiser: the shapes of the project's own images, by nvcc.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float block_sum(float v, float *tile) {
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) tile[threadIdx.x >> 5] = v;
    __syncthreads();
    v = 0;
    for (int i = 0; i < blockDim.x >> 5; i++) v += tile[i];
    return v;
}

// one warp a row: out = exp(x - max)/sum, columns any
extern "C" __global__ void softmax_rows_f32(float *out, const float *x, int columns) {
    const float *row = x + (size_t)blockIdx.x * columns;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32) top = fmaxf(top, row[i]);
    for (int d = 16; d; d >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    for (int i = threadIdx.x; i < columns; i += 32) sum += expf(row[i] - top);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int i = threadIdx.x; i < columns; i += 32) out[(size_t)blockIdx.x * columns + i] = expf(row[i] - top) / sum;
}

// one block a row: out = (x - mean)*rsqrt(var + eps)*gain + bias, half in and out
extern "C" __global__ void layernorm_f16(__half *out, const __half *x, const float *gain, const float *bias, float eps, int columns) {
    __shared__ float tile[32];
    const __half *row = x + (size_t)blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += __half2float(row[i]);
    float mean = block_sum(sum, tile) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float d = __half2float(row[i]) - mean;
        squares += d * d;
    }
    float scale = rsqrtf(block_sum(squares, tile) / columns + eps);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[(size_t)blockIdx.x * columns + i] = __float2half((__half2float(row[i]) - mean) * scale * gain[i] + bias[i]);
}

// RMS norm of bf16 pairs: out = x*rsqrt(mean(x^2) + eps)*gain; columns even
extern "C" __global__ void rmsnorm_bf16(__nv_bfloat162 *out, const __nv_bfloat162 *x, const __nv_bfloat162 *gain, float eps, int columns) {
    __shared__ float tile[32];
    int pairs = columns / 2;
    const __nv_bfloat162 *row = x + (size_t)blockIdx.x * pairs;
    float squares = 0;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float2 v = __bfloat1622float2(row[i]);
        squares += v.x * v.x + v.y * v.y;
    }
    float scale = rsqrtf(block_sum(squares, tile) / columns + eps);
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float2 v = __bfloat1622float2(row[i]), g = __bfloat1622float2(gain[i]);
        out[(size_t)blockIdx.x * pairs + i] = __floats2bfloat162_rn(v.x * scale * g.x, v.y * scale * g.y);
    }
}

// pairs (2i, 2i+1) of a row turned by position*base^(-2i/width); one block a row
extern "C" __global__ void rotary_f32(float2 *out, const float2 *x, int width, float log_base) {
    int pairs = width / 2;
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        float s, c, angle = blockIdx.x * expf(-log_base * (2.0f * i / width));
        sincosf(angle, &s, &c);
        float2 v = x[blockIdx.x * pairs + i];
        out[blockIdx.x * pairs + i] = make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
    }
}

// loss[row] = log(sum exp x) - x[label]; gradient = softmax - one hot; one warp a row
extern "C" __global__ void cross_entropy_f32(float *loss, float *gradient, const float *x, const int *labels, int columns) {
    const float *row = x + (size_t)blockIdx.x * columns;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 32) {
        float v = row[i], next = fmaxf(top, v);
        sum = sum * __expf(top - next) + __expf(v - next);
        top = next;
    }
    for (int d = 16; d; d >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, top, d), s = __shfl_xor_sync(0xffffffffu, sum, d), next = fmaxf(top, other);
        sum = sum * __expf(top - next) + s * __expf(other - next);
        top = next;
    }
    int label = labels[blockIdx.x];
    for (int i = threadIdx.x; i < columns; i += 32)
        gradient[(size_t)blockIdx.x * columns + i] = __expf(row[i] - top) / sum - (i == label ? 1.0f : 0.0f);
    if (threadIdx.x == 0) loss[blockIdx.x] = logf(sum) + top - row[label];
}

// Adam with decoupled decay, one parameter a thread
extern "C" __global__ void adam_f32(float *w, float *m, float *v, const float *g, float rate, float b1, float b2, float eps, float decay, float c1, float c2, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float grad = g[i], first = b1 * m[i] + (1 - b1) * grad, second = b2 * v[i] + (1 - b2) * grad * grad;
    m[i] = first;
    v[i] = second;
    w[i] = w[i] * (1 - rate * decay) - rate * (first * c1) / (sqrtf(second * c2) + eps);
}

// 4-bit weights: out[row] = scale[row]*sum((q - 8)*x); one warp a row, eight weights a word
extern "C" __global__ void dequant_gemv_s4(float *out, const unsigned *q, const __half *x, const float *scale, int words) {
    float sum = 0;
    for (int i = threadIdx.x; i < words; i += 32) {
        unsigned w = q[(size_t)blockIdx.x * words + i];
#pragma unroll
        for (int j = 0; j < 8; j++) sum = fmaf((float)(int)((w >> (4 * j)) & 15) - 8.0f, __half2float(x[8 * i + j]), sum);
    }
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum * scale[blockIdx.x];
}

// embedding gather with bounds: out[row] = table[ids[row]], 16 bytes a thread, zero where the id is outside
extern "C" __global__ void embedding_f16(uint4 *out, const uint4 *table, const int *ids, int vectors, int words) {
    int id = ids[blockIdx.x];
    for (int i = threadIdx.x; i < vectors; i += blockDim.x)
        out[(size_t)blockIdx.x * vectors + i] = (unsigned)id < (unsigned)words ? table[(size_t)id * vectors + i] : make_uint4(0, 0, 0, 0);
}
