/* base: exponential and logarithm in double: error bounds against long double, special values, fixed bits. */
#include "support/support.h"

#include "base/mathfn.h"
#include "base/strmap.h"

#include <math.h>

static double relative_error(double got, long double want)
{
    return (double)fabsl(((long double)got - want) / want);
}

static void test_exp_error(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 1);
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        double scale = i % 3 == 0 ? 708 : i % 3 == 1 ? 20 : 1e-3, x = (2 * mf_rng_f64(&r) - 1) * scale;
        worst = fmax(worst, relative_error(mf_math_exp_f64(x), expl((long double)x)));
    }
    print_message("exp: worst relative error %.2g\n", worst);
    assert_true(worst < 1e-15);
}

static void test_log_error(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 2);
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        double scale = i % 3 == 0 ? 700 : i % 3 == 1 ? 1 : 1e-6, x = exp((2 * mf_rng_f64(&r) - 1) * scale);
        if (x != 1) worst = fmax(worst, relative_error(mf_math_log_f64(x), logl((long double)x)));
    }
    print_message("log: worst relative error %.2g\n", worst);
    assert_true(worst < 1e-15);
}

static void test_special_values(void **state)
{
    (void)state;
    assert_true(mf_math_exp_f64(0) == 1 && mf_math_exp_f64(-0.0) == 1);
    assert_true(mf_math_exp_f64(-708) > 0 && mf_math_exp_f64(-708.5) == 0);
    assert_true(isfinite(mf_math_exp_f64(709)) && mf_math_exp_f64(709.5) == INFINITY);
    assert_true(mf_math_exp_f64(-INFINITY) == 0 && mf_math_exp_f64(INFINITY) == INFINITY);
    assert_true(mf_math_exp_f64(-1e300) == 0 && isnan(mf_math_exp_f64(NAN)));
    assert_true(mf_math_log_f64(1) == 0 && mf_math_log_f64(0) == -INFINITY);
    assert_true(mf_math_log_f64(INFINITY) == INFINITY && isnan(mf_math_log_f64(-1)));
    assert_true(isnan(mf_math_log_f64(NAN)) && mf_math_log_f64(0x1p-1050) == -INFINITY);
}

static void test_many_equal_one(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 3);
    for (size_t n = 0; n < 40; n++) {
        double x[40], y[40];
        for (size_t i = 0; i < n; i++) x[i] = y[i] = 709 - 1417 * mf_rng_f64(&r);
        mf_math_exp_f64_n(y, n);
        for (size_t i = 0; i < n; i++) assert_true(y[i] == mf_math_exp_f64(x[i]));
    }
}

/* The same bits for every compiler and machine: a hash over many results, written down once. */
static void test_fixed_bits(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 4);
    uint64_t h_exp = 0, h_log = 0;
    for (int i = 0; i < 20000; i++) {
        double x = -100 * mf_rng_f64(&r), e = mf_math_exp_f64(x), l = mf_math_log_f64(-x + 1e-3);
        h_exp = mf_hash_bytes(&e, sizeof e, h_exp);
        h_log = mf_hash_bytes(&l, sizeof l, h_log);
    }
    assert_int_equal(h_exp, 0x662f9847808aa222u);
    assert_int_equal(h_log, 0x930da93929648e00u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_error),      cmocka_unit_test(test_log_error),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_many_equal_one),
        cmocka_unit_test(test_fixed_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
