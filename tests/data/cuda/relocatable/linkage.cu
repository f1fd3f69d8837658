// A relocatable cubin: calls and globals that only a linker resolves, in a section of its own for each function.
extern __device__ int outside(int);
__device__ int table[4] = {1, 2, 3, 4};
__device__ __noinline__ int inside(int x) { return table[x & 3] + outside(x); }

extern "C" __global__ void linked_calls(int *out) { out[threadIdx.x] = inside(out[0]); }
