// Initialised data and no kernel: such cubins lie in shipped libraries.
__device__ int numbers[4] = {1, 2, 3, 4};
