/* The functions of mathfn.h. Series coefficients are the Taylor ones: their terms end below the error that
 * the ranges leave, and a reader can check them. */
#include "base/mathfn.h"

#include "base/half.h"

#include <math.h>

float mf_math_exp(float x)
{
    if (!(x >= MF_EXP_MIN)) return x < MF_EXP_MIN ? 0.f : x;
    float n = rintf(x * MF_EXP_LOG2E);
    float r = fmaf(n, -MF_EXP_LN2_LO, fmaf(n, -MF_EXP_LN2_HI, x));
    float p = fmaf(MF_EXP_C6, r, MF_EXP_C5);
    p = fmaf(p, r, MF_EXP_C4);
    p = fmaf(p, r, MF_EXP_C3);
    p = fmaf(p, r, MF_EXP_C2);
    p = fmaf(p, r, 1.f);
    p = fmaf(p, r, 1.f);
    return mf_bits_f32(mf_f32_bits(p) + ((uint32_t)(int32_t)n << 23));
}

float mf_math_silu(float x)
{
    float t = mf_math_exp(-fabsf(x));
    return (x >= 0 ? x : x * t) / (1.f + t);
}

/* c[0] + c[1] z + c[2] z^2 + ... */
static double series(const double *c, int n, double z)
{
    double p = c[n - 1];
    for (int i = n - 2; i >= 0; i--) p = fma(p, z, c[i]);
    return p;
}

/* (-1)^k / (2k + 1)! and (-1)^k / (2k)!; the first terms left out are below 5e-17 for |r| <= pi/4. */
static const double sine[] = {1.0,          -1.0 / 6,        1.0 / 120,        -1.0 / 5040,
                              1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000};
static const double cosine[] = {1.0,
                                -1.0 / 2,
                                1.0 / 24,
                                -1.0 / 720,
                                1.0 / 40320,
                                -1.0 / 3628800,
                                1.0 / 479001600,
                                -1.0 / 87178291200,
                                1.0 / 20922789888000};

enum { N_SINE = sizeof sine / sizeof *sine, N_COSINE = sizeof cosine / sizeof *cosine };

void mf_math_sincos(double x, double *sin_x, double *cos_x)
{
    *sin_x = *cos_x = NAN;
    if (!(fabs(x) <= 0x1p40)) return;
    /* n * pi/2 leaves x through two fused steps: the first is rounded only at the size of the remainder. */
    double n = rint(x * 0x1.45f306dc9c883p-1);
    double r = fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p+0, x)), z = r * r;
    double s = r * series(sine, N_SINE, z), c = series(cosine, N_COSINE, z);
    int quadrant = (int)((int64_t)n & 3);
    double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sin_x = quadrant & 2 ? -a : a;
    *cos_x = quadrant == 1 || quadrant == 2 ? -b : b;
}

/* 1 / (2k + 1): atanh(s) = s * (1 + s^2/3 + s^4/5 + ...); |s| <= 0.172, so the first term left out is 2e-20.
 */
static const double atanh_series[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                      1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
/* 1 / k!; the first term left out is 5e-18 for |z| <= 0.35. */
static const double exp_series[] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

enum { N_ATANH = sizeof atanh_series / sizeof *atanh_series, N_EXP = sizeof exp_series / sizeof *exp_series };

static double from_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

static uint64_t to_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

/* log2 of a positive normal number as an integer and a rest in [-0.5, 0.5]. */
static double log2_split(double x, double *rest)
{
    uint64_t u = to_bits(x);
    double e = (double)(u >> 52) - 1023, m = from_bits((u & (UINT64_MAX >> 12)) | (uint64_t)1023 << 52);
    if (m > 0x1.6a09e667f3bcdp+0) { /* sqrt 2 */
        m *= 0.5;
        e += 1;
    }
    double s = (m - 1) / (m + 1);
    *rest = s * series(atanh_series, N_ATANH, s * s) * (2 * 0x1.71547652b82fep+0); /* 2 / ln 2 */
    return e;
}

double mf_math_pow(double base, double y)
{
    if (!(base >= 0x1p-1022) || isinf(base) || !(fabs(y) < INFINITY)) return NAN;
    double rest, e = log2_split(base, &rest);
    double t = y * e, low = fma(y, e, -t) + y * rest;
    if (!(fabs(t) < 4000)) return t > 0 ? INFINITY : 0; /* |low| <= |t| / 2 unless t is 0 */
    if (!(fabs(t + low) < 2000)) return t + low > 0 ? INFINITY : 0;
    double n = rint(t + low);
    if (n > 1023) return INFINITY;
    if (n < -1021) return 0;
    double z = ((t - n) + low) * 0x1.62e42fefa39efp-1; /* ln 2 */
    return series(exp_series, N_EXP, z) * from_bits((uint64_t)(n + 1023) << 52);
}

/* For -708 <= x <= 709, with neither fma nor branches, so that compilers make vectors of it: Taylor up to
 * r^12 / 12! in groups of four. Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits, from
 * where it goes to the exponent. ln 2 = hi + lo, hi short enough for an exact n * hi. */
static double exp_core(double x)
{
    double t = x * 0x1.71547652b82fep+0 + 0x1.8p52, n = t - 0x1.8p52;
    double r = (x - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b3ap-40, r2 = r * r, r4 = r2 * r2;
    double a = (1 + r) + r2 * (1.0 / 2 + r * (1.0 / 6));
    double b = (1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040));
    double c = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    double p = a + r4 * (b + r4 * (c + r4 * (1.0 / 479001600)));
    return from_bits(to_bits(p) + (to_bits(t) << 52));
}

double mf_math_exp_f64(double x)
{
    if (!(x <= MF_EXP_F64_MAX)) return x > MF_EXP_F64_MAX ? (double)INFINITY : x;
    return x < MF_EXP_F64_MIN ? 0 : exp_core(x);
}

void mf_math_exp_f64_n(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = exp_core(x[i]);
}

double mf_math_log_f64(double x)
{
    if (x != x || x < 0) return NAN;
    if (x < 0x1p-1022) return -INFINITY;
    if (isinf(x)) return x;
    double rest, e = log2_split(x, &rest);
    return e * 0x1.62e42fefa38p-1 + (e * 0x1.ef35793c7673p-45 + rest * 0x1.62e42fefa39efp-1);
}
