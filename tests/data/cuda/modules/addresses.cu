// What the loader must do: code addresses in tables, virtual calls, initialised pointers, dynamic shared memory.
typedef int (*Operation)(int, int);
__device__ __noinline__ int added(int a, int b) { return a + b; }
__device__ __noinline__ int taken(int a, int b) { return a - b; }
__device__ __noinline__ int crossed(int a, int b) { return a * b ^ b; }
__device__ Operation operations[3] = {added, taken, crossed};
__constant__ Operation kept[3] = {crossed, added, taken};

extern "C" __global__ void function_table(int* out, const int* which, const int* x, const int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[which[i]](x[i], y[i]) + kept[which[i]](y[i], x[i]);
}

struct Shape {
    int a, b;
    __device__ Shape(int a, int b) : a(a), b(b) {}
    __device__ virtual int size() const { return a; }
    __device__ virtual int corners() const { return 0; }
};
struct Box : Shape {
    __device__ Box(int a, int b) : Shape(a, b) {}
    __device__ int size() const override { return a * b; }
    __device__ int corners() const override { return 4; }
};
struct Wedge : Shape {
    __device__ Wedge(int a, int b) : Shape(a, b) {}
    __device__ int size() const override { return a * b / 2; }
    __device__ int corners() const override { return 3; }
};

extern "C" __global__ void virtual_calls(int* out, const int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    Box box(v, 3);
    Wedge wedge(v, 5);
    Shape plain(v, 7);
    const Shape* shape = v % 3 == 0 ? (const Shape*)&box : v % 3 == 1 ? (const Shape*)&wedge : &plain;
    out[i] = shape->size() * 10 + shape->corners();
}

__device__ int data[4] = {3, 1, 4, 1};
__device__ int* pointer = &data[2];
__device__ float zeros[8];
extern "C" __global__ void initialised_pointer(int* out, float* outf) {
    int i = threadIdx.x;
    out[i] = pointer[-(i & 1)] + data[i & 3];
    outf[i] = zeros[i & 7];
}

extern "C" __global__ void shared_static_and_dynamic(int* out, const int* x, int n) {
    __shared__ int fixed_part[32];
    extern __shared__ int grown[];
    int i = threadIdx.x;
    if (i < 32) fixed_part[i] = 100 + i;
    grown[i] = x[i];
    __syncthreads();
    out[i] = grown[n - 1 - i] + fixed_part[i & 31];
}
