// One fault a kernel: threads that do not wait for each other, or for each other for ever.
extern "C" __global__ void reverse_without_barrier(int* out, const int* x) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = x[i];
    out[i] = tile[127 - i];
}

extern "C" __global__ void reads_then_overwrites(int* out, const int* x) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = x[i];
    __syncthreads();
    int v = tile[127 - i];
    tile[i] = v + 1;  // someone may still read it
    __syncthreads();
    out[i] = tile[i];
}

extern "C" __global__ void all_write_one(int* out) {
    __shared__ int last;
    last = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = last;
}

extern "C" __global__ void race_within_a_warp(int* out, const int* x) {
    __shared__ int tile[32];
    int i = threadIdx.x;
    volatile int* t = tile;
    if (x[i] & 1) {
        int v = 1;
        for (int k = 0; k < x[i]; k++) v = v * 3 ^ k;
        t[i] = v;
    } else {
        out[i] = t[i ^ 1];
    }
}

extern "C" __global__ void half_a_warp_waits(int* out) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = i;
    if (i % 32 < 16) {
        __syncthreads();
        out[i] = tile[63 - i];
    }
    out[i + 64] = i;
}

extern "C" __global__ void some_leave_first(int* out, int n) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    tile[i] = i;
    if (i >= n) return;
    __syncthreads();
    out[i] = tile[n - 1 - i];
}

extern "C" __global__ void wrong_count(int* out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x < 64) asm volatile("barrier.sync 1, 128;" ::: "memory");
    else asm volatile("barrier.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = 2;
}

extern "C" __global__ void each_waits_for_the_other(int* out) {
    if (threadIdx.x < 32) asm volatile("barrier.sync 1, 64;" ::: "memory");
    else asm volatile("barrier.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = 2;
}

extern "C" __global__ void never_ends(volatile int* out) {
    while (out[0] == 0) out[1] = 1;
}
