/* mathfn: errors against libm's wider types and mpmath's values, edges, and the very bits. */
#include "base/half.h"
#include "base/mathfn.h"
#include "support/support.h"

#include <stdlib.h>

static void test_exp_error(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t u = mf_f32_bits(-0.f); u <= mf_f32_bits(-87.f); u += 1009) {
        float x = mf_bits_f32(u);
        double e = fabs((double)mf_math_exp(x) / exp((double)x) - 1);
        if (e > worst) worst = e;
    }
    if (worst >= 2.4e-7) fail_msg("relative error %g", worst);
    assert_true(worst > 1e-8);
}

static void test_exp_edges(void **state)
{
    (void)state;
    assert_int_equal(mf_f32_bits(mf_math_exp(0.f)), mf_f32_bits(1.f));
    assert_int_equal(mf_f32_bits(mf_math_exp(-0.f)), mf_f32_bits(1.f));
    assert_int_equal(mf_f32_bits(mf_math_exp(-0x1p-149f)), mf_f32_bits(1.f));
    assert_true(mf_math_exp(-87.f) > 0x1p-126f);
    assert_int_equal(mf_f32_bits(mf_math_exp(nextafterf(-87.f, -INFINITY))), 0);
    assert_int_equal(mf_f32_bits(mf_math_exp(-3e38f)), 0);
    assert_int_equal(mf_f32_bits(mf_math_exp(-INFINITY)), 0);
    assert_true(isnan(mf_math_exp(NAN)));
    assert_true(isnan(mf_math_exp(-NAN)));
}

/* e is off by 2.4e-7 (and up to e^-87 absolutely, below the cut), then two roundings on each branch. */
static void test_silu_error(void **state)
{
    (void)state;
    for (int i = -200000; i <= 200000; i++) {
        float x = (float)i * 0.00073f;
        double want = (double)x / (1 + exp(-(double)x)), got = (double)mf_math_silu(x);
        if (!(fabs(got - want) <= fabs(want) * (2 * 2.4e-7 + 3 * 0x1p-24) + 150 * exp(-87)))
            fail_msg("silu(%a) = %a, should be %a", (double)x, got, want);
    }
    assert_int_equal(mf_f32_bits(mf_math_silu(0.f)), 0);
    assert_int_equal(mf_f32_bits(mf_math_silu(-0.f)), 0x80000000);
    assert_true(mf_math_silu(3e38f) == 3e38f);
    assert_true(mf_math_silu(-3e38f) == 0);
    assert_true(isnan(mf_math_silu(NAN)));
}

static void assert_sincos(double x, long double s, long double c)
{
    double gs, gc;
    mf_math_sincos(x, &gs, &gc);
    if (!(fabsl((long double)gs - s) < 1e-15L && fabsl((long double)gc - c) < 1e-15L))
        fail_msg("x = %a: %a and %a, should be %La and %La", x, gs, gc, s, c);
}

static void test_sincos_against_long_double(void **state)
{
    (void)state;
    if (sizeof(long double) <= sizeof(double)) SKIP_BECAUSE("long double is no wider than double");
    mf_rng r;
    mf_rng_seed(&r, 11);
    for (int i = 0; i < 300000; i++) {
        double x = ldexp(2 * mf_rng_f64(&r) - 1, (int)(mf_rng_u64(&r) % 50) - 9);
        assert_sincos(x, sinl((long double)x), cosl((long double)x));
        x = nextafter((double)(mf_rng_u64(&r) % 700000) * 0x1.921fb54442d18p+0, i & 1 ? 1e9 : 0);
        assert_sincos(x, sinl((long double)x), cosl((long double)x));
    }
}

static void test_sincos_edges(void **state)
{
    (void)state;
    const double bad[] = {0x1.0000000000001p40, -1e300, INFINITY, -INFINITY, NAN};
    double s, c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mf_math_sincos(bad[i], &s, &c);
        assert_true(isnan(s) && isnan(c));
    }
    mf_math_sincos(0, &s, &c);
    assert_true(s == 0 && c == 1);
    for (double x = 0x1p-1074; x < 1; x *= 3) { /* the sine of little is as little */
        mf_math_sincos(x, &s, &c);
        assert_true(fabs(s / sin(x) - 1) < 1e-15);
    }
}

static void assert_pow(double base, double y, long double want)
{
    double got = mf_math_pow(base, y);
    if (!(fabsl((long double)got / want - 1) < 1e-15L * (1 + (long double)fabs(y))))
        fail_msg("%a ^ %a = %a, should be %La", base, y, got, want);
}

static void test_pow_against_long_double(void **state)
{
    (void)state;
    if (sizeof(long double) <= sizeof(double)) SKIP_BECAUSE("long double is no wider than double");
    mf_rng r;
    mf_rng_seed(&r, 12);
    for (int i = 0; i < 300000; i++) {
        double base = ldexp(1 + mf_rng_f64(&r), (int)(mf_rng_u64(&r) % 60) - 30), y = -mf_rng_f64(&r);
        assert_pow(base, y, powl((long double)base, (long double)y));
        base = 0.1 + 10 * mf_rng_f64(&r);
        y = 600 * mf_rng_f64(&r) - 300;
        long double want = powl((long double)base, (long double)y);
        if (want > 0x1p-1000L && want < 0x1p1000L) assert_pow(base, y, want);
    }
}

static void test_pow_edges(void **state)
{
    (void)state;
    assert_true(mf_math_pow(10000, 0) == 1 && mf_math_pow(1, -1e300) == 1);
    assert_true(mf_math_pow(2, 10) == 1024 && mf_math_pow(0.5, 3) == 0.125 && mf_math_pow(4, -0.5) == 0.5);
    assert_true(mf_math_pow(2, 1023) == 0x1p1023 && mf_math_pow(2, -1021) == 0x1p-1021);
    assert_true(isinf(mf_math_pow(10, 400)) && isinf(mf_math_pow(10, 1e300)) &&
                isinf(mf_math_pow(1.2, 1e300)));
    assert_true(mf_math_pow(10, -400) == 0 && mf_math_pow(10, -1e300) == 0 && mf_math_pow(0.9, 1e308) == 0);
    const double bad[][2] = {{0, 1},   {-2, 2},  {0x1p-1050, 1}, {INFINITY, 1},
                             {NAN, 1}, {2, NAN}, {2, -INFINITY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(isnan(mf_math_pow(bad[i][0], bad[i][1])));
}

/* tests/data/cpu/math.txt comes from mpmath by make_math_goldens.py. */
static void test_goldens(void **state)
{
    (void)state;
    FILE *f = fopen(data_path("cpu/math.txt"), "r");
    assert_non_null(f);
    char line[256], name[16], a[40], b[40], c[40];
    int seen = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%15s %39s %39s %39s", name, a, b, c), 4);
        double x = strtod(a, NULL), y = strtod(b, NULL), z = strtod(c, NULL);
        if (!strcmp(name, "sincos"))
            assert_sincos(x, (long double)y, (long double)z);
        else
            assert_pow(x, y, (long double)z);
        seen++;
    }
    fclose(f);
    assert_true(seen > 500);
}

static uint64_t mix_bits(uint64_t h, uint64_t u)
{
    h = (h ^ u) * 0x100000001b3u;
    return h ^ h >> 29; /* or a change of sign bits would stay one bit, and cancel */
}

static uint64_t f64_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

/* One digest of many results: the same with every compiler, at every optimization level, on every machine. A
 * change of any of them changes the logits of every model. */
static void test_the_very_bits(void **state)
{
    (void)state;
    uint64_t h = 0xcbf29ce484222325u;
    mf_rng r;
    mf_rng_seed(&r, 13);
    for (int i = 0; i < 20000; i++) {
        double s, c, x = mf_rng_f64(&r);
        mf_math_sincos(ldexp(x - 0.5, i % 24), &s, &c);
        h = mix_bits(mix_bits(h, f64_bits(s)), f64_bits(c));
        h = mix_bits(h, f64_bits(mf_math_pow(1000 + i, -x)));
        h = mix_bits(h, mf_f32_bits(mf_math_exp((float)(-87.5 * x))));
        h = mix_bits(h, mf_f32_bits(mf_math_silu((float)(200 * (x - 0.5)))));
    }
    if (h != 0x42a5089283f5d069u) fail_msg("digest %016llx", (unsigned long long)h);
}

/* Terms that cancel show who met whom first. */
static void test_tree(void **state)
{
    (void)state;
    const float e = 0x1p-24f;
    const float lanes[16] = {[4] = 1, [5] = e, [6] = -1, [7] = e};   /* (1 - 1) + (e + e) */
    const float groups[16] = {[0] = 1, [4] = e, [8] = -1, [12] = e}; /* (1 + e = 1) + (-1 + e) */
    float zeros[16];
    assert_true(mf_math_tree16(lanes) == 2 * e);
    assert_true(mf_math_tree16(groups) == e);
    for (int i = 0; i < 16; i++) zeros[i] = -0.f;
    assert_int_equal(mf_f32_bits(mf_math_tree16(zeros)), 0x80000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_error),     cmocka_unit_test(test_exp_edges),
        cmocka_unit_test(test_silu_error),    cmocka_unit_test(test_sincos_against_long_double),
        cmocka_unit_test(test_sincos_edges),  cmocka_unit_test(test_pow_against_long_double),
        cmocka_unit_test(test_pow_edges),     cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_the_very_bits), cmocka_unit_test(test_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
