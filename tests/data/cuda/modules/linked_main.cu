// Two sources that nvlink joins: functions in sections of their own, called by absolute addresses and through a table.
typedef int (*Operation)(int, int);
extern __device__ int outside(int);
__device__ __noinline__ int added(int a, int b) { return a + b; }
extern __device__ int taken(int a, int b);
__device__ Operation operations[2] = {added, taken};

extern "C" __global__ void linked(int* out, const int* x) {
    int i = threadIdx.x;
    out[i] = operations[i & 1](x[i], i) + outside(x[i]);
}
