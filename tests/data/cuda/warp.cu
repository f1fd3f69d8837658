// Votes, matches, shuffles, special registers, barriers. One block unless said otherwise.
#define FULL 0xffffffffu
#define PUT(v) out[k++ * blockDim.x + threadIdx.x] = (v)

// any, all, uni, ballot, ballot of a subset, active mask inside a branch; out[k][thread]
extern "C" __global__ void votes(unsigned *out, const int *x) {
    int k = 0, v = x[threadIdx.x];
    PUT(__any_sync(FULL, v > 3));
    PUT(__all_sync(FULL, v > 3));
    PUT(__uni_sync(FULL, v & 1));
    PUT(__ballot_sync(FULL, v & 2));
    if ((threadIdx.x & 31) < 20) {
        PUT(__ballot_sync(0xfffffu, v > 5));
        PUT(__any_sync(0xfffffu, v == 9));
    } else {
        PUT(0);
        PUT(1);
    }
    PUT(__popc(__activemask()));
}

// match_any (32, 64 bits), match_all with its predicate
extern "C" __global__ void matches(unsigned *out, const unsigned *x) {
    int k = 0, same;
    unsigned v = x[threadIdx.x];
    PUT(__match_any_sync(FULL, v));
    PUT(__match_any_sync(FULL, ((unsigned long long)v << 33) | v));
    PUT(__match_all_sync(FULL, v >> 4, &same));
    PUT(same);
    PUT(__match_all_sync(FULL, (unsigned long long)(v >> 8), &same));
    PUT(same);
}

// idx up down xor, variable lanes, widths 8 and 16, the in-range predicate, 64-bit
extern "C" __global__ void shuffles(unsigned *out, const unsigned *x, const int *lanes) {
    int k = 0, lane = lanes[threadIdx.x];
    unsigned v = x[threadIdx.x], r, p;
    PUT(__shfl_sync(FULL, v, 5));
    PUT(__shfl_sync(FULL, v, lane));
    PUT(__shfl_up_sync(FULL, v, 3));
    PUT(__shfl_up_sync(FULL, v, lane & 7, 8));
    PUT(__shfl_down_sync(FULL, v, 2, 16));
    PUT(__shfl_xor_sync(FULL, v, 9));
    PUT(__shfl_xor_sync(FULL, v, lane & 15, 16));
    asm("{.reg .pred p; shfl.sync.down.b32 %0|p, %2, 4, 0x1f, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(r), "=r"(p) : "r"(v));
    PUT(r);
    PUT(p);
    asm("{.reg .pred p; shfl.sync.idx.b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p;}" : "=r"(r), "=r"(p) : "r"(v), "r"(lane), "r"(0x181f));
    PUT(r);
    PUT(p);
    unsigned long long w = __shfl_xor_sync(FULL, ((unsigned long long)v << 32) | ~v, 1);
    PUT((unsigned)(w >> 32));
}

// thread, block, grid, lane, warp, lane masks, SM-independent special registers; 3-D block and grid
extern "C" __global__ void special_registers(unsigned *out) {
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned *o = out + 16 * (b * blockDim.x * blockDim.y * blockDim.z + t), r;
    o[0] = threadIdx.x, o[1] = threadIdx.y, o[2] = threadIdx.z;
    o[3] = blockIdx.x, o[4] = blockIdx.y, o[5] = blockIdx.z;
    o[6] = blockDim.x * blockDim.y * blockDim.z, o[7] = gridDim.x * gridDim.y * gridDim.z;
    asm("mov.u32 %0, %%laneid;" : "=r"(r)); o[8] = r;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r)); o[9] = r;
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(r)); o[10] = r;
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(r)); o[11] = r;
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r)); o[12] = r;
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(r)); o[13] = r;
    asm("mov.u32 %0, %%total_smem_size;" : "=r"(r)); o[14] = r > 0 ? 0 : r;
    o[15] = warpSize;
}

// clocks only have to move forward: out[thread] = 1; times[] is not compared
extern "C" __global__ void clocks(unsigned *out, long long *times) {
    unsigned a = clock();
    long long b = clock64(), t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    __nanosleep(20);
    unsigned s;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(s));
    out[threadIdx.x] = clock64() > b && (clock() - a) > 0;
    times[threadIdx.x] = t + s;
}

// barriers with a count: two halves of a block of 128 hand values over by bar.arrive / bar.sync
extern "C" __global__ void producer_consumer(int *out, const int *x) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    if (t < 64) {
        tile[t] = 2 * x[t];
        __threadfence_block();
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        out[t - 64] = tile[127 - t] + 1;
    }
}

// bar.red: popc, and, or over the block; out[k][thread]
extern "C" __global__ void barrier_reductions(int *out, const int *x) {
    int k = 0, v = x[threadIdx.x];
    PUT(__syncthreads_count(v > 2));
    PUT(__syncthreads_and(v > 0));
    PUT(__syncthreads_or(v > 100));
}

// named barriers chosen at run time, each warp pair on its own: out[thread] = the partner warp's value; 128 threads
extern "C" __global__ void named_barriers(int *out, const int *x) {
    __shared__ int tile[128];
    int t = threadIdx.x, id = 1 + (t >> 6);
    tile[t] = x[t];
    asm volatile("barrier.sync %0, 64;" ::"r"(id) : "memory");
    out[t] = tile[t ^ 32];
    asm volatile("barrier.cta.red.popc.aligned.u32 %0, 0, 1;" : "=r"(id)::"memory");
    out[128 + t] = id;
}

// __syncwarp with subset masks: neighbours exchange through shared memory; 32 threads
extern "C" __global__ void warp_exchange(int *out, const int *x) {
    __shared__ volatile int tile[32];
    int t = threadIdx.x;
    tile[t] = x[t];
    if (t < 16) {
        __syncwarp(0x0000ffffu);
        out[t] = tile[t ^ 1];
    } else {
        __syncwarp(0xffff0000u);
        out[t] = tile[t ^ 8];
    }
}

// one leader a group of equal keys adds the group's size (warp-aggregated atomics); counts[8] must be zero
extern "C" __global__ void aggregated_counts(unsigned *counts, unsigned *rank, const unsigned *keys) {
    unsigned key = keys[threadIdx.x] & 7, peers = __match_any_sync(FULL, key), lane = threadIdx.x & 31, base = 0;
    unsigned leader = __ffs(peers) - 1;
    if (lane == leader) base = atomicAdd(&counts[key], __popc(peers));
    base = __shfl_sync(FULL, base, leader);
    rank[threadIdx.x] = __popc(peers & ((1u << lane) - 1));
    (void)base;
}

// predicate logic on many conditions at once; out[k][thread]
extern "C" __global__ void predicates(int *out, const int *x, const int *y) {
    int k = 0, a = x[threadIdx.x], b = y[threadIdx.x];
    bool p = a > b, q = (a & 3) == 1, r = b < 0, s = a == 7;
    PUT((p && q) || (r && !s));
    PUT(p ^ q ^ r);
    PUT((p || q) && (r || s) ? a : b);
    PUT(p ? (q ? 1 : 2) : (r ? 3 : 4));
    PUT(__popc((p << 0) | (q << 1) | (r << 2) | (s << 3)));
    asm("{.reg .pred p, q; setp.lt.and.s32 p|q, %1, %2, 1; selp.s32 %0, 10, 20, p; @q add.s32 %0, %0, 1;}" : "=r"(b) : "r"(a), "r"(b));
    PUT(b);
}
