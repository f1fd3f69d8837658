// Divergence: nested branches, loops, jump tables, calls, recursion, indirect calls. out[i] of n threads.
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// nested ifs on three bits with different work on each path
extern "C" __global__ void nested_branches(int *out, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v = x[i], r = 0;
    if (v & 1) {
        if (v & 2) {
            for (int k = 0; k < (v & 15); k++) r += k * v;
        } else {
            r = v * v - 3;
            if (v & 4) r ^= 0x55;
        }
        r++;
    } else {
        if (v & 4) r = v / 3;
        else r = v % 5 + 7;
        r--;
    }
    out[i] = r;
}

// Collatz steps with break and continue, at most `limit`
extern "C" __global__ void collatz_steps(int *out, const unsigned *x, int limit, int n) {
    int i = INDEX;
    if (i >= n) return;
    unsigned v = x[i];
    int steps = 0;
    for (int k = 0; k < limit; k++) {
        if (v == 1) break;
        steps++;
        if (!(v & 1)) {
            v >>= 1;
            continue;
        }
        v = 3 * v + 1;
    }
    out[i] = steps;
}

// greatest common divisor: a loop whose trip count differs in every lane
extern "C" __global__ void gcd_u32(unsigned *out, const unsigned *x, const unsigned *y, int n) {
    int i = INDEX;
    if (i >= n) return;
    unsigned a = x[i], b = y[i];
    while (b) {
        unsigned t = a % b;
        a = b;
        b = t;
    }
    out[i] = a;
}

// a dense switch, so that ptxas makes a jump table (BRX); op[i] in 0..11, others give -1
extern "C" __global__ void switch_table(int *out, const int *op, const int *x, const int *y, int n) {
    int i = INDEX;
    if (i >= n) return;
    int a = x[i], b = y[i], r;
    volatile int *o = out;
    switch (op[i]) {
    case 0: r = a + b; break;
    case 1: r = a - b; o[i] = 1; break;
    case 2: r = a * b; break;
    case 3: r = a & b; o[i] = 3; break;
    case 4: r = __popc(a) + b; break;
    case 5: r = a ^ b; o[i] = 5;  // falls through
    case 6: r = max(a, b); break;
    case 7: r = a << (b & 7); o[i] = 7; break;
    case 8: r = __clz(a); break;
    case 9: r = __brev(a); o[i] = 9; break;
    case 10: r = a / (b | 1); break;
    case 11: r = a * a + b * b; break;
    default: r = -1;
    }
    out[i] = r;
}

// the same by a block-uniform selector (a uniform branch)
extern "C" __global__ void switch_uniform(float *out, const float *x, int op, int n) {
    int i = INDEX;
    if (i >= n) return;
    float v = x[i];
    switch (op) {
    case 0: v = sinf(v); break;
    case 1: v = expf(v); break;
    case 2: v = v * v; break;
    case 3: v = sqrtf(v); break;
    case 4: v = -v; break;
    case 5: v = 1.0f / v; break;
    case 6: v = fabsf(v); break;
    default: v = 0;
    }
    out[i] = v;
}

// lanes leave one by one; those that stay count the ones still here at each step
extern "C" __global__ void early_exit(int *out, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v = x[i] & 15;
    out[i] = 0;
    for (int k = 0; k < 16; k++) {
        if (v == k) return;
        out[i] += k;
        if (__any_sync(__activemask(), v > 1000)) break;
    }
    out[i] = -1;
}

// two nested loops, inner left by goto when a sum passes a bound
extern "C" __global__ void nested_loops(int *out, const int *x, int rows, int columns, int bound) {
    int i = INDEX, sum = 0, r = 0, c = 0;
    for (r = 0; r < rows; r++)
        for (c = 0; c < columns; c++) {
            sum += x[r * columns + c] + i;
            if (sum > bound) goto done;
        }
done:
    out[i] = r * 1000 + c;
}

// binary search of each key in a sorted array of m: the first place not below it
extern "C" __global__ void lower_bound_s32(int *out, const int *sorted, const int *keys, int m, int n) {
    int i = INDEX;
    if (i >= n) return;
    int low = 0, high = m, key = keys[i];
    while (low < high) {
        int middle = (low + high) >> 1;
        if (sorted[middle] < key) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

// bitonic sort of 256 ints in shared memory, one block
extern "C" __global__ void bitonic_sort_256(int *x) {
    __shared__ int tile[256];
    int t = threadIdx.x;
    tile[t] = x[t];
    for (int size = 2; size <= 256; size <<= 1)
        for (int step = size >> 1; step; step >>= 1) {
            __syncthreads();
            int other = t ^ step;
            if (other > t) {
                int a = tile[t], b = tile[other];
                if ((a > b) == ((t & size) == 0)) tile[t] = b, tile[other] = a;
            }
        }
    __syncthreads();
    x[t] = tile[t];
}

__device__ __noinline__ int mix(int a, int b) { return (a * 31) ^ (b + 7); }
__device__ __noinline__ float blend(float a, float b, float t) { return a + (b - a) * t; }

// calls that are not inlined, from both sides of a branch
extern "C" __global__ void calls(int *out, float *outf, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v = x[i];
    out[i] = v & 1 ? mix(v, i) + 1 : mix(i, mix(v, 3));
    outf[i] = blend((float)v, (float)i, 0.25f);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

// recursion with a stack frame: fibonacci(x & 7), ackermann(x & 1, x & 3)
extern "C" __global__ void recursion(int *out, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    out[i] = fibonacci(x[i] & 7);
    out[n + i] = ackermann(x[i] & 1, x[i] & 3);
}

__device__ int op_add(int a, int b) { return a + b; }
__device__ int op_sub(int a, int b) { return a - b; }
__device__ int op_mul(int a, int b) { return a * b; }
__device__ int op_min(int a, int b) { return min(a, b); }
typedef int (*binary)(int, int);
__device__ const binary table[4] = {op_add, op_sub, op_mul, op_min};

// calls through a table of function pointers: out = table[op & 3](x, y)
extern "C" __global__ void function_table(int *out, const int *op, const int *x, const int *y, int n) {
    int i = INDEX;
    if (i >= n) return;
    out[i] = table[op[i] & 3](x[i], y[i]);
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ Square(float s) : side(s) {}
    __device__ __noinline__ float area() const override { return side * side; }
};
struct Disc : Shape {
    float radius;
    __device__ Disc(float r) : radius(r) {}
    __device__ __noinline__ float area() const override { return 3.0f * radius * radius; }
};

// virtual calls: even lanes a square of side x, odd lanes a disc (area 3*r*r)
extern "C" __global__ void virtual_calls(float *out, const float *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    Square s(x[i]);
    Disc d(x[i]);
    const Shape *p = i & 1 ? (const Shape *)&d : (const Shape *)&s;
    out[i] = p->area();
}

// an assertion that never fires for x >= 0: trap on the cold path; out = sqrt by integer Newton steps
extern "C" __global__ void guarded_root(int *out, const int *x, int n) {
    int i = INDEX;
    if (i >= n) return;
    int v = x[i];
    if (v < 0) __trap();
    int r = v;
    while (r > 0 && r > v / r) r = (r + v / r) >> 1;
    out[i] = r;
}
