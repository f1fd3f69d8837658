// Reductions and scans: by shuffle, by shared memory, by the warp reduction unit.
#define FULL 0xffffffffu

// out[warp] = sum of 32 floats, butterfly shuffles; one block, blockDim multiple of 32
extern "C" __global__ void warp_sum_f32(float *out, const float *x) {
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
#pragma unroll
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
    if ((threadIdx.x & 31) == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) >> 5] = v;
}

// out[block] = sum over n floats of that block's grid-stride share; 256 threads
extern "C" __global__ void block_sum_f32(float *out, const float *x, int n) {
    __shared__ float partial[8];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
#pragma unroll
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(FULL, v, d);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 8) {
        v = partial[threadIdx.x];
#pragma unroll
        for (int d = 4; d; d >>= 1) v += __shfl_down_sync(0xff, v, d);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}

// tree in shared memory: out[block] = max of its 128 ints (n guards, absent = INT_MIN)
extern "C" __global__ void tree_max_s32(int *out, const int *x, int n) {
    __shared__ int tile[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0x80000000;
    __syncthreads();
    for (int d = 64; d > 0; d >>= 1) {
        if (threadIdx.x < d) tile[threadIdx.x] = max(tile[threadIdx.x], tile[threadIdx.x + d]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

// double sum of 64 values in shared memory, fixed order by halves
extern "C" __global__ void tree_sum_f64(double *out, const double *x) {
    __shared__ double tile[64];
    tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
    for (int d = 32; d > 0; d >>= 1) {
        __syncthreads();
        if (threadIdx.x < d) tile[threadIdx.x] += tile[threadIdx.x + d];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}

// REDUX: out[7*warp ..] = add, min, max (signed), min, max (unsigned), and, or, of 32 words; xor in the eighth
extern "C" __global__ void warp_redux(unsigned *out, const unsigned *x) {
    unsigned v = x[blockIdx.x * blockDim.x + threadIdx.x];
    unsigned r0 = __reduce_add_sync(FULL, v);
    int r1 = __reduce_min_sync(FULL, (int)v), r2 = __reduce_max_sync(FULL, (int)v);
    unsigned r3 = __reduce_min_sync(FULL, v), r4 = __reduce_max_sync(FULL, v);
    unsigned r5 = __reduce_and_sync(FULL, v), r6 = __reduce_or_sync(FULL, v), r7 = __reduce_xor_sync(FULL, v);
    if ((threadIdx.x & 31) == 0) {
        unsigned *o = out + 8 * ((blockIdx.x * blockDim.x + threadIdx.x) >> 5);
        o[0] = r0, o[1] = r1, o[2] = r2, o[3] = r3, o[4] = r4, o[5] = r5, o[6] = r6, o[7] = r7;
    }
}

// out[block] = (largest value, its lowest index); one warp a block, n columns
extern "C" __global__ void argmax_f32(float *value, int *place, const float *x, int n) {
    const float *row = x + blockIdx.x * n;
    float best = -INFINITY;
    int at = -1;
    for (int i = threadIdx.x; i < n; i += 32)
        if (row[i] > best) best = row[i], at = i;
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        float b = __shfl_down_sync(FULL, best, d);
        int a = __shfl_down_sync(FULL, at, d);
        if (b > best || (b == best && a < at)) best = b, at = a;
    }
    if (threadIdx.x == 0) value[blockIdx.x] = best, place[blockIdx.x] = at;
}

// inclusive scan of 32 ints a warp by shuffle up
extern "C" __global__ void warp_scan_s32(int *out, const int *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, v = x[i];
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        int up = __shfl_up_sync(FULL, v, d);
        if (lane >= d) v += up;
    }
    out[i] = v;
}

// exclusive scan of 256 unsigned a block, double-buffered in shared memory (Hillis and Steele)
extern "C" __global__ void block_scan_u32(unsigned *out, const unsigned *x) {
    __shared__ unsigned tile[2][256];
    int t = threadIdx.x, at = 0;
    tile[0][t] = t ? x[blockIdx.x * 256 + t - 1] : 0;
    __syncthreads();
    for (int d = 1; d < 256; d <<= 1) {
        at ^= 1;
        tile[at][t] = t >= d ? tile[at ^ 1][t] + tile[at ^ 1][t - d] : tile[at ^ 1][t];
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = tile[at][t];
}

// histogram of n bytes over 256 bins: shared then global atomics; out must be zero
extern "C" __global__ void histogram_u8(unsigned *out, const unsigned char *x, int n) {
    __shared__ unsigned bins[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (bins[i]) atomicAdd(&out[i], bins[i]);
}

// 32 x 32 floats a block of (32, 8) threads, padded column; out is columns x rows
extern "C" __global__ void transpose_f32(float *out, const float *x, int rows, int columns) {
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8)
        if (r + k < rows && c < columns) tile[threadIdx.y + k][threadIdx.x] = x[(r + k) * columns + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x, r = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
    for (int k = 0; k < 32; k += 8)
        if (r + k < columns && c < rows) out[(r + k) * rows + c] = tile[threadIdx.x][threadIdx.y + k];
}

// 16-bit elements, unpadded tile, exact multiples of 32
extern "C" __global__ void transpose_u16(unsigned short *out, const unsigned short *x, int rows, int columns) {
    __shared__ unsigned short tile[32][32];
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = x[r * columns + c];
    __syncthreads();
    out[(blockIdx.x * 32 + threadIdx.y) * rows + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// tiled 16 x 16 SGEMM, all sizes multiples of 16: c[m][n] = sum over k of a[m][k]*b[k][n]
extern "C" __global__ void sgemm_tiled(float *c, const float *a, const float *b, int n, int k) {
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int t = 0; t < k; t += 16) {
        ta[y][x] = a[row * k + t + x];
        tb[y][x] = b[(t + y) * n + column];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++) sum = fmaf(ta[y][j], tb[j][x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
