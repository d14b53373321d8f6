/* Functions with the same bits on every compiler and machine: the exponential, SiLU, sine and cosine, powers,
 * and the tree of long sums. They are built from fma, rint, sqrt, division and polynomials; no libm function
 * whose result is not exact takes part. docs/numerics.md has the formulas. Owns no state. */
#ifndef MF_BASE_MATHFN_H
#define MF_BASE_MATHFN_H

#include <stddef.h>

/* e(x), for scalar and vector code alike: n = rint(x * LOG2E); r = x - n * (LN2_HI + LN2_LO);
 * p = ((C6 r + C5) r + ... + 1) r + 1, each step one fma; 2^n enters through the exponent field. */
#define MF_EXP_MIN    -87.f /* below it e(x) is 0 */
#define MF_EXP_LOG2E  0x1.715476p+0f
#define MF_EXP_LN2_HI 0x1.62e4p-1f
#define MF_EXP_LN2_LO 0x1.7f7d1cp-20f
#define MF_EXP_C6     0x1.6c16c2p-10f
#define MF_EXP_C5     0x1.111112p-7f
#define MF_EXP_C4     0x1.555556p-5f
#define MF_EXP_C3     0x1.555556p-3f
#define MF_EXP_C2     0.5f

/* e^x for x <= 0, relative error below 2.4e-7, +0 below MF_EXP_MIN. NaN stays NaN. */
float mf_math_exp(float x);

/* x / (1 + e^-x) for every x. */
float mf_math_silu(float x);

/* Absolute error below 1e-15 for |x| <= 2^40; both are NaN for larger or infinite x and for NaN. */
void mf_math_sincos(double x, double *sin_x, double *cos_x);

/* base^y, relative error below 1e-15 * (1 + |y|) for a result between 2^-1021 and 2^1023; smaller ones are 0,
 * larger ones infinite. base is positive and normal and y finite, else the result is NaN. */
double mf_math_pow(double base, double y);

/* e^x in double, relative error below 1e-15; 0 below MIN, infinite above MAX. NaN stays NaN. */
#define MF_EXP_F64_MIN -708.0
#define MF_EXP_F64_MAX 709.0
double mf_math_exp_f64(double x);

/* x[i] = e^x[i] for n numbers from MIN to MAX: the same bits as mf_math_exp_f64. */
void mf_math_exp_f64_n(double *x, size_t n);

/* The natural logarithm in double, relative error below 1e-15. 0 gives -infinity, negative numbers give NaN,
 * subnormal ones count as 0. */
double mf_math_log_f64(double x);

/* The sum of sixteen partial sums, in the one order that every kernel keeps. */
static inline float mf_math_tree16(const float l[16])
{
    float g[4];
    for (int i = 0; i < 4; i++) g[i] = (l[4 * i] + l[4 * i + 2]) + (l[4 * i + 1] + l[4 * i + 3]);
    return (g[0] + g[1]) + (g[2] + g[3]);
}

#endif
