// Textures and surfaces by handle: for the decoder, not for the emulator.
extern "C" __global__ void texture_reads(float *out, cudaTextureObject_t one, cudaTextureObject_t two, cudaTextureObject_t three) {
    int i = threadIdx.x;
    float s = tex1Dfetch<float>(one, i) + tex1D<float>(one, i + 0.5f);
    float4 v = tex2D<float4>(two, i * 0.1f, i * 0.2f);
    s += v.x + v.y + v.z + v.w + tex2DLod<float>(two, i, 1.0f, 2.0f) + tex3D<float>(three, i, 0.5f, 0.25f);
    float4 g = tex2Dgather<float4>(two, i * 0.3f, 0.5f, 1);
    s += g.x + g.w + tex2DGrad<float>(two, i, 1.0f, make_float2(1, 2), make_float2(3, 4)) + tex2DLayered<float>(two, i, 1.0f, 3);
    out[i] = s + texCubemap<float>(three, 0.1f * i, 0.2f, 0.3f);
}

extern "C" __global__ void surface_copy(cudaSurfaceObject_t to, cudaSurfaceObject_t from, int width) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width) {
        float4 v;
        surf2Dread(&v, from, x * 16, y);
        surf2Dwrite(v, to, x * 16, y, cudaBoundaryModeZero);
        int w;
        surf1Dread(&w, from, x * 4, cudaBoundaryModeClamp);
        surf1Dwrite(w + 1, to, x * 4);
    }
}

extern "C" __global__ void surface_atomics(cudaSurfaceObject_t to) {
    asm volatile("sured.b.2d.add.u32.clamp [%0, {%1, %2}], %3;" ::"l"(to), "r"(threadIdx.x * 4), "r"(blockIdx.x), "r"(1));
}

extern "C" __global__ void texture_query(int *out, cudaTextureObject_t t, cudaSurfaceObject_t s) {
    int a, b;
    asm("txq.width.b32 %0, [%1];" : "=r"(a) : "l"(t));
    asm("suq.height.b32 %0, [%1];" : "=r"(b) : "l"(s));
    out[threadIdx.x] = a + b;
}
