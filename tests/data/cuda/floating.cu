// Float and double arithmetic and functions. out is [operation][n]: operation k of element i at out[k*n + i].
#define GUARD                                      \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= n) return;                            \
    int k = 0;
#define PUT(v) out[k++ * n + i] = (v)

// add, sub, mul, fma with every rounding mode (rn rz ru rd), saturate, abs, neg, min, max, nan min, copysign
extern "C" __global__ void arithmetic_f32(float *out, const float *xs, const float *ys, const float *zs, int n) {
    GUARD float x = xs[i], y = ys[i], z = zs[i], r;
    PUT(__fadd_rn(x, y));
    PUT(__fadd_rz(x, y));
    PUT(__fadd_ru(x, y));
    PUT(__fadd_rd(x, y));
    PUT(__fsub_rn(x, y));
    PUT(__fmul_rn(x, y));
    PUT(__fmul_rz(x, y));
    PUT(__fmul_ru(x, y));
    PUT(__fmul_rd(x, y));
    PUT(__fmaf_rn(x, y, z));
    PUT(__fmaf_rz(x, y, z));
    PUT(__fmaf_ru(x, y, z));
    PUT(__fmaf_rd(x, y, z));
    PUT(__saturatef(x));
    PUT(__saturatef(fmaf(x, y, z)));
    PUT(fabsf(x) + -y);
    PUT(fminf(x, y));
    PUT(fmaxf(x, y));
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("min.xorsign.abs.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    PUT(copysignf(x, y));
    PUT(fdimf(x, y));
}

// flush-to-zero forms by PTX: add mul fma min, add.sat, set, ex2, rcp; denormal inputs are the point
extern "C" __global__ void flush_f32(float *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i], r;
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("mul.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("fma.rn.ftz.f32 %0, %1, %2, %1;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("fma.rz.ftz.sat.f32 %0, %1, %2, %1;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("min.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("add.ftz.sat.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("set.lt.ftz.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y)); PUT(r);
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
}

// MUFU by instruction: rcp rsqrt sqrt ex2 lg2 sin cos tanh
extern "C" __global__ void approximate_f32(float *out, const float *xs, int n) {
    GUARD float x = xs[i], r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("sin.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("cos.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); PUT(r);
    PUT(__fdividef(x, 3.0f + x));
    PUT(__powf(x, 1.5f));
}

// IEEE division, reciprocal, root in every rounding mode
extern "C" __global__ void exact_f32(float *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i];
    PUT(__fdiv_rn(x, y));
    PUT(__fdiv_rz(x, y));
    PUT(__fdiv_ru(x, y));
    PUT(__fdiv_rd(x, y));
    PUT(__frcp_rn(x));
    PUT(__frcp_rz(x));
    PUT(__fsqrt_rn(x));
    PUT(__fsqrt_ru(x));
    PUT(__frsqrt_rn(x));
}

// library functions: sin cos tan asin atan2 exp exp2 expm1 log log2 log1p pow
extern "C" __global__ void functions_f32(float *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i];
    PUT(sinf(x));
    PUT(cosf(x));
    PUT(tanf(y));
    PUT(asinf(y));
    PUT(atan2f(x, y));
    PUT(expf(x));
    PUT(exp2f(x));
    PUT(expm1f(x));
    PUT(logf(fabsf(x)));
    PUT(log2f(fabsf(x)));
    PUT(log1pf(fabsf(x)));
    PUT(powf(fabsf(x), y));
}

// tanh erf erfc gamma cbrt hypot fmod remainder ldexp frexp
extern "C" __global__ void functions_more_f32(float *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i];
    int e;
    PUT(tanhf(x));
    PUT(erff(x));
    PUT(erfcf(x));
    PUT(lgammaf(x));
    PUT(cbrtf(x));
    PUT(hypotf(x, y));
    PUT(fmodf(x, y));
    PUT(remainderf(x, y));
    PUT(ldexpf(x, (int)y));
    PUT(frexpf(x, &e) + e);
}

// comparisons (ordered, unordered), classification and selection as 0/1 words
extern "C" __global__ void compare_f32(int *out, const float *xs, const float *ys, int n) {
    GUARD float x = xs[i], y = ys[i];
    PUT(x < y);
    PUT(x <= y);
    PUT(x == y);
    PUT(x != y);
    PUT(!(x < y));
    PUT(!(x >= y));
    PUT(isnan(x) || isnan(y));
    PUT(isfinite(x) && x > 0);
    PUT(isinf(x) ^ signbit(y));
    PUT(x > 0 && y > 0 && x + y < 10);
    PUT((x < 1 || y < 1) != (x * y > 2));
    unsigned r;
    asm("set.ltu.u32.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("{.reg .pred p, q; setp.gt.f32 p, %1, 0f00000000; setp.lt.and.f32 q, %2, 0f3f800000, p; selp.u32 %0, 3, 5, q;}" : "=r"(r) : "f"(x), "f"(y)); PUT(r);
    asm("slct.u32.f32 %0, 7, 9, %1;" : "=r"(r) : "f"(x)); PUT(r);
}

// double: add mul fma in all rounding modes, min, max, abs, division, root, reciprocal root
extern "C" __global__ void arithmetic_f64(double *out, const double *xs, const double *ys, const double *zs, int n) {
    GUARD double x = xs[i], y = ys[i], z = zs[i];
    PUT(__dadd_rn(x, y));
    PUT(__dadd_rz(x, y));
    PUT(__dadd_ru(x, y));
    PUT(__dadd_rd(x, y));
    PUT(__dmul_rn(x, y));
    PUT(__dmul_rd(x, y));
    PUT(__fma_rn(x, y, z));
    PUT(__fma_rz(x, y, z));
    PUT(__fma_ru(x, y, z));
    PUT(fmin(x, y));
    PUT(fmax(x, y));
    PUT(fabs(x) - y);
    PUT(x / y);
    PUT(__ddiv_ru(x, y));
    PUT(sqrt(x));
    PUT(__dsqrt_rz(x));
    PUT(1.0 / y);
    PUT(rsqrt(fabs(x)));
    PUT(x < y ? x : z);
    PUT(x * 2.5 + 1.0);
}

// double library functions: exp log sin cos pow atan erf
extern "C" __global__ void functions_f64(double *out, const double *xs, const double *ys, int n) {
    GUARD double x = xs[i], y = ys[i];
    PUT(exp(x));
    PUT(log(fabs(x)));
    PUT(sin(y));
    PUT(cos(y));
    PUT(pow(fabs(x), y));
    PUT(atan(x));
    PUT(erf(x));
}

// polynomial by Horner's rule with constants in code: degree 7
extern "C" __global__ void polynomial_f32(float *out, const float *xs, int n) {
    GUARD float x = xs[i], p = 0.001f;
    p = fmaf(p, x, -0.25f);
    p = fmaf(p, x, 0.5f);
    p = fmaf(p, x, -1.75f);
    p = fmaf(p, x, 3.0f);
    p = fmaf(p, x, 1.0f / 3.0f);
    p = fmaf(p, x, -7.5f);
    p = fmaf(p, x, 11.0f);
    PUT(p);
}

// logistic map iterated `steps` times in float and in double; out[i], out[n+i]
extern "C" __global__ void logistic_map(double *out, const float *xs, int steps, int n) {
    GUARD float x = xs[i];
    double d = x;
    for (int s = 0; s < steps; s++) x = 3.7f * x * (1.0f - x), d = 3.7 * d * (1.0 - d);
    PUT(x);
    PUT(d);
}

// escape time of the Mandelbrot set on a width x height grid over [-2, 1] x [-1.5, 1.5]
extern "C" __global__ void mandelbrot(int *out, int width, int height, int limit) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y, t = 0;
    if (c >= width || r >= height) return;
    float a = -2.0f + 3.0f * c / width, b = -1.5f + 3.0f * r / height, x = 0, y = 0;
    while (t < limit && x * x + y * y < 4.0f) {
        float next = x * x - y * y + a;
        y = 2 * x * y + b;
        x = next;
        t++;
    }
    out[r * width + c] = t;
}
