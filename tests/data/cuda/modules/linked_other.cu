// The other half of linked_main.cu.
__device__ int seven = 7;
__device__ int outside(int v) { return v * seven; }
__device__ int taken(int a, int b) { return a - b; }
