// One fault a kernel: accesses that a card refuses or that go astray, and values that nobody set.
extern "C" __global__ void past_the_end(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + 1;  // no test against n
}

extern "C" __global__ void odd_quad(float4* out, const float* x) {
    out[threadIdx.x] = *reinterpret_cast<const float4*>(x + threadIdx.x);
}

extern "C" __global__ void past_shared(int* out) {
    __shared__ int tile[64];
    volatile int* t = tile;
    t[threadIdx.x + 1] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = t[threadIdx.x];
}

extern "C" __global__ void unset_shared(int* out) {
    __shared__ int tile[128];
    int i = threadIdx.x;
    if (i < 100) tile[i] = i;
    __syncthreads();
    out[i] = tile[i];
}

extern "C" __global__ void unset_local(int* out, const int* x) {
    int kept[16];
    int i = threadIdx.x;
    for (int k = 0; k < 15; k++) kept[(x[i] + k) & 15] = k;
    out[i] = kept[i & 15];
}

extern "C" __global__ void sums_what_it_was_given(float* out, const float* scratch) {
    out[threadIdx.x] = scratch[threadIdx.x] + 1;
}
