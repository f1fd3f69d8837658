// Memory spaces, cache hints, order. out[i] of n threads.
#include <stdint.h>
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__constant__ float taps[9] = {0.0625f, 0.125f, 0.0625f, 0.125f, 0.25f, 0.125f, 0.0625f, 0.125f, 0.0625f};
__constant__ int primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
__constant__ unsigned char letters[32] = "the quick brown fox jumps over";
__device__ int counters[4] = {10, 20, 30, 40};
__device__ float weights[64] = {1.0f, 0.5f, 0.25f};
__device__ double scale = 2.5;
__device__ int untouched[100];

// 3 x 3 filter, taps in a constant bank, zero outside; (8, 8) blocks
extern "C" __global__ void filter_3x3(float *out, const float *x, int width, int height) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= width || r >= height) return;
    float sum = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++)
#pragma unroll
        for (int dx = -1; dx <= 1; dx++) {
            int y = r + dy, z = c + dx;
            if (y >= 0 && y < height && z >= 0 && z < width) sum = fmaf(taps[(dy + 1) * 3 + dx + 1], x[y * width + z], sum);
        }
    out[r * width + c] = sum;
}

// constant bank with an index that differs by lane (LDC), bytes and words
extern "C" __global__ void constant_index(int *out, const int *x, int n) {
    int i = INDEX;
    if (i < n) out[i] = primes[x[i] & 15] * 1000 + letters[x[i] & 31];
}

// initialised globals: out = counters[i & 3] + weights[i & 63]*scale
extern "C" __global__ void global_tables(float *out, int n) {
    int i = INDEX;
    if (i < n) out[i] = counters[i & 3] + weights[i & 63] * (float)scale + untouched[i % 100];
}

// local array indexed at run time: an insertion sort of 12 values a thread
extern "C" __global__ void local_sort(int *out, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v[12];
    for (int k = 0; k < 12; k++) v[k] = x[12 * i + k];
    for (int k = 1; k < 12; k++) {
        int t = v[k], j = k - 1;
        while (j >= 0 && v[j] > t) v[j + 1] = v[j], j--;
        v[j + 1] = t;
    }
    for (int k = 0; k < 12; k++) out[12 * i + k] = v[k];
}

// local bytes and shorts: histogram of the sixteen nibbles of two words
extern "C" __global__ void local_bytes(unsigned *out, const unsigned *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    unsigned char count[16];
    for (int k = 0; k < 16; k++) count[k] = 0;
    for (int k = 0; k < 8; k++) count[(x[2 * i] >> (4 * k)) & 15]++, count[(x[2 * i + 1] >> (4 * k)) & 15] += 2;
    unsigned h = 0;
    for (int k = 0; k < 16; k++) h = h * 31 + count[k];
    out[i] = h;
}

// many live values (forces spills under a register bound): 8 x 8 outer product folded after all is made
extern "C" __global__ void register_pressure(float *out, const float *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    float a[8], b[8], c[64];
#pragma unroll
    for (int k = 0; k < 8; k++) a[k] = x[16 * i + k], b[k] = x[16 * i + 8 + k];
#pragma unroll
    for (int j = 0; j < 64; j++) c[j] = a[j >> 3] * b[j & 7];
    float s = 0;
#pragma unroll
    for (int j = 0; j < 64; j++) s = fmaf(c[j], c[63 - j], s * 0.5f);
    out[i] = s;
}

// dynamic shared memory: a block reverses its blockDim.x words; a second area holds doubles
extern "C" __global__ void dynamic_shared(int *out, double *outd, const int *x) {
    extern __shared__ __align__(16) unsigned char bytes[];
    int *a = reinterpret_cast<int *>(bytes), t = threadIdx.x, m = blockDim.x;
    double *d = reinterpret_cast<double *>(bytes + 4 * m);
    a[t] = x[blockIdx.x * m + t];
    d[t] = a[t] * 0.5;
    __syncthreads();
    out[blockIdx.x * m + t] = a[m - 1 - t];
    outd[blockIdx.x * m + t] = d[m - 1 - t];
}

// shared memory by bytes, shorts, 64 and 128 bits; 64 threads; out[t] = a digest
extern "C" __global__ void shared_widths(unsigned *out, const uint4 *x) {
    __shared__ uint4 tile[64];
    int t = threadIdx.x;
    tile[t] = x[t];
    __syncthreads();
    const unsigned char *b = reinterpret_cast<unsigned char *>(tile);
    const short *s = reinterpret_cast<short *>(tile);
    const uint2 *w = reinterpret_cast<uint2 *>(tile);
    unsigned r = b[t * 5] + 3 * (signed char)b[t * 7] + 5 * s[t * 3] + 7 * (unsigned short)s[t * 8 - t];
    uint2 v = w[127 - t];
    uint4 u = tile[t ^ 17];
    __syncthreads();
    reinterpret_cast<unsigned char *>(tile)[t] = t;
    reinterpret_cast<short *>(tile)[64 + t] = -t;
    __syncthreads();
    out[t] = r + v.x * 11 + v.y * 13 + u.x + u.y + u.z + u.w + reinterpret_cast<unsigned *>(tile)[t];
}

// cache operators by PTX on loads and stores: out[i] = sum of the loads
extern "C" __global__ void cache_hints(float *out, const float *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    float s = 0, v;
#define LOAD(op) asm volatile(op " %0, [%1];" : "=f"(v) : "l"(x + i) : "memory"); s += v;
    LOAD("ld.global.ca.f32") LOAD("ld.global.cg.f32") LOAD("ld.global.cs.f32") LOAD("ld.global.lu.f32") LOAD("ld.global.cv.f32")
    LOAD("ld.global.nc.f32") LOAD("ld.global.L1::evict_first.f32") LOAD("ld.global.L1::evict_last.f32") LOAD("ld.global.L1::no_allocate.f32")
    LOAD("ld.global.L2::128B.f32") LOAD("ld.global.nc.L2::256B.f32") LOAD("ld.global.nc.L1::no_allocate.f32") LOAD("ld.global.L1::evict_unchanged.f32")
    asm volatile("prefetch.global.L1 [%0];" ::"l"(x + i));
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + i));
    asm volatile("st.global.wb.f32 [%0], %1;" ::"l"(out + i), "f"(s) : "memory");
    asm volatile("st.global.cg.f32 [%0], %1;" ::"l"(out + n + i), "f"(s) : "memory");
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(out + 2 * n + i), "f"(s) : "memory");
    asm volatile("st.global.wt.f32 [%0], %1;" ::"l"(out + 3 * n + i), "f"(s) : "memory");
    asm volatile("st.global.L1::no_allocate.f32 [%0], %1;" ::"l"(out + 4 * n + i), "f"(s) : "memory");
}

// L2 policies: fractional policy created, used by a load and a store
extern "C" __global__ void cache_policy(float *out, const float *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    uint64_t p;
    float v;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(p));
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(x + i), "l"(p) : "memory");
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(out + i), "f"(v * 2), "l"(p) : "memory");
}

// every width of global access through generic and global pointers: u8 s8 u16 s16 32 64 128 bits
extern "C" __global__ void global_widths(long long *out, const signed char *b, const unsigned char *ub, const short *s, const unsigned short *us, const int2 *w, const longlong2 *q, int n) {
    int i = INDEX;
    if (i >= n) return;
    longlong2 v = q[i];
    out[i] = b[i] + 3 * ub[i] + 5 * s[i] + 7 * us[i] + 11ll * w[i].x + 13ll * w[i].y + v.x - v.y;
}

// a generic pointer to shared, local or global memory, chosen by lane; 32 threads
extern "C" __global__ void generic_pointers(int *out, int *x) {
    __shared__ int tile[32];
    int mine[2] = {(int)threadIdx.x * 3, 5}, t = threadIdx.x;
    tile[t] = t + 100;
    __syncwarp();
    int *p = t % 3 == 0 ? x + t : t % 3 == 1 ? tile + t : mine + (x[t] & 1);
    *p += 7;
    __syncwarp();
    out[t] = *p + tile[t] + mine[x[t] & 1];
}

// volatile, acquire, release, relaxed, fences of every scope; out[i] = x[i] + 4
extern "C" __global__ void memory_order(int *out, int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v = *(volatile int *)(x + i);
    *(volatile int *)(out + i) = v + 1;
    __threadfence_block();
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory");
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(out + i), "r"(v + 1) : "memory");
    __threadfence();
    asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory");
    asm volatile("st.relaxed.cta.global.s32 [%0], %1;" ::"l"(out + i), "r"(v + 1) : "memory");
    __threadfence_system();
    asm volatile("fence.acq_rel.gpu; fence.sc.cta; fence.sc.sys;" ::: "memory");
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(out + i) : "memory");
    asm volatile("st.release.cta.global.s32 [%0], %1;" ::"l"(out + i), "r"(v + 1) : "memory");
}
