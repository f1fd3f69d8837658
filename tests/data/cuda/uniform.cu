// Block-uniform control and addresses (the uniform datapath), and generic pointers of every width.
#include <stdint.h>
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

__device__ __forceinline__ void copy4(void *to, const void *from) {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

// ring of three stages in shared memory, its index wrapped by a select: out[t] = sum over tiles of x[tile][128 - 1 - t]*(tile + 1)
extern "C" __global__ void __launch_bounds__(128) ring_buffer(float *out, const float *x, int tiles) {
    __shared__ float ring[3][128];
    int t = threadIdx.x, write = 0, read = 0;
    float sum = 0;
    for (; write < 2 && write < tiles; write++) {
        copy4(&ring[write][t], x + write * 128 + t);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) asm volatile("cp.async.wait_group 1;" ::: "memory");
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        sum = fmaf(ring[read][127 - t], tile + 1.0f, sum);
        if (tile + 2 < tiles) copy4(&ring[write][t], x + (tile + 2) * 128 + t);
        asm volatile("cp.async.commit_group;" ::: "memory");
        write = write == 2 ? 0 : write + 1;
        read = read == 2 ? 0 : read + 1;
    }
    out[t] = sum;
}

// conditions on parameters and loop counters alone
extern "C" __global__ void uniform_conditions(int *out, const int *x, int a, int b, int c, int steps) {
    int i = INDEX, r = x[i];
    for (int s = 0; s < steps; s++) {
        if ((a > s && b < 3 * s) || (c == s && a != b)) r += s;
        else if ((unsigned)c > (unsigned)(a + s)) r ^= s * b;
        r = (a + s) & 4 ? r * 3 : r - 1;
        __syncthreads();
    }
    out[i] = r;
}

// a jump table by a uniform selector that changes in a loop
extern "C" __global__ void uniform_switch(int *out, const int *x, const int *program, int steps) {
    int i = INDEX, r = x[i];
    for (int s = 0; s < steps; s++) {
        switch (program[s]) {
        case 0: r += 7; __syncthreads(); break;
        case 1: r *= 3; break;
        case 2: r ^= 0x1234; __syncthreads(); break;
        case 3: r = __brev(r); break;
        case 4: r = r << 3 | (unsigned)r >> 29; __syncthreads(); break;
        case 5: r -= s; break;
        case 6: r = ~r; break;
        case 7: r = __popc(r) + i; __syncthreads(); break;
        }
    }
    out[i] = r;
}

// a jump table by a parameter
extern "C" __global__ void uniform_switch_parameter(int *out, const int *x, int op) {
    int i = INDEX, r = x[i];
    switch (op) {
    case 0: r += 7; break;
    case 1: for (int k = 0; k < r; k++) r -= k; break;
    case 2: r ^= 0x1234; __syncthreads(); out[i] = r; break;
    case 3: r = __brev(r); break;
    case 4: r = __shfl_xor_sync(0xffffffffu, r, 1); break;
    case 5: r = r / 3; break;
    case 6: r = ~r; break;
    case 7: atomicAdd(out + i, 1); r = out[i]; break;
    }
    out[i] = r;
}

// 64-bit uniform arithmetic: out[i] = x[i] + sum over s of ((a*s + b) >> shift) as 64-bit, low word
extern "C" __global__ void uniform_wide(unsigned *out, const unsigned *x, unsigned long long a, unsigned long long b, int shift, int steps) {
    int i = INDEX;
    unsigned long long sum = 0;
    for (int s = 0; s < steps; s++) {
        sum += (a * s + b) >> shift;
        if (sum > a) sum -= min(b, a);
        if ((long long)sum < (long long)b) sum ^= a;
        __syncthreads();
    }
    out[i] = x[i] + (unsigned)sum + __popcll(sum) + __clz((int)(sum >> 9)) + __brev(steps);
}

// a warp-uniform vote decides for all: out[i] = x[i] halved as long as any lane is over the bound (at most 30 steps)
extern "C" __global__ void vote_loop(int *out, const int *x, int bound) {
    int v = x[INDEX], steps = 0;
    while (__any_sync(0xffffffffu, v > bound) && steps < 30) v >>= 1, steps++;
    if (__all_sync(0xffffffffu, v & 1)) steps += 100;
    out[INDEX] = v * 1000 + steps;
}

// generic pointers to shared or global memory in every width; 32 threads; bytes is 32*32 bytes of global memory
extern "C" __global__ void generic_widths(long long *out, unsigned char *bytes, const int *where) {
    __shared__ __align__(16) unsigned char tile[32 * 32];
    int t = threadIdx.x;
    for (int k = 0; k < 32; k++) tile[32 * t + k] = bytes[32 * t + k] ^ 0x5a;
    __syncwarp();
    unsigned char *p = where[t] ? tile + 32 * t : bytes + 32 * t;
    long long r = p[0] + 3ll * *(signed char *)(p + 1) + 5ll * *(unsigned short *)(p + 2) + 7ll * *(short *)(p + 4);
    int2 two = *(int2 *)(p + 8);
    int4 four = *(int4 *)(p + 16);
    r += two.x - two.y + (four.x ^ four.y) + (four.z & four.w);
    *(unsigned char *)(p + 6) = (unsigned char)r;
    *(short *)(p + 4) = (short)(r >> 8);
    *(int2 *)(p + 8) = make_int2((int)r, t);
    *(int4 *)(p + 16) = make_int4(t, 1, 2, (int)(r >> 3));
    __syncwarp();
    out[t] = r + *(volatile int *)(p + 4) + atomicAdd((unsigned *)(p + 20), 5u) + atomicCAS((unsigned *)(p + 16), (unsigned)t, 9u) +
             atomicExch((unsigned long long *)(p + 24), 77ull);
}

// sets and selections kept as floats, bounds tests with `or`; out[k*n + i]
extern "C" __global__ void float_sets(float *out, const float *x, const float *y, int n) {
    int i = INDEX;
    if (i >= n) return;
    float a = x[i], b = y[i], r;
    asm("set.geu.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    out[i] = r * a;
    asm("{.reg .pred p; setp.lt.f32 p, %1, 0f40000000; set.gt.or.f32.f32 %0, %1, %2, p;}" : "=f"(r) : "f"(a), "f"(b));
    out[n + i] = r + b;
    out[2 * n + i] = (a > 1.0f || b >= 2.0f || a + b <= -1.0f || !(a - b < 3.0f)) ? 4.0f * (a + b) : 0.5f * (a * b);
    out[3 * n + i] = a * 2.0f * b;
}
