/* The adaptive depth on scripted costs and drafts. */
#include "support/support.h"

#include "runtime/depth.h"

enum { MS = 1000000 };

/* A world: a pass over 1 + n tokens costs base + n * slope, drafting one token costs draft (ms), a drafted
 * token is right with this share. */
typedef struct world {
    double base, slope, draft, share;
    mf_depth d;
    mf_rng rng;
    double ms, tokens; /* spent and gained */
    int32_t last;      /* depth of the last round */
} world;

static void round_of(world *w, int32_t kind)
{
    int32_t n = mf_depth_choose(&w->d, kind), right = 0;
    w->last = n;
    if (n) mf_depth_saw_draft(&w->d, n, (int64_t)(n * w->draft * MS));
    mf_depth_saw_pass(&w->d, n, (int64_t)((w->base + n * w->slope) * MS));
    for (bool good = true; right < n && good; right += good) {
        good = mf_rng_f64(&w->rng) < w->share;
        mf_depth_saw_token(&w->d, kind, right, good);
    }
    w->ms += w->base + n * (w->slope + w->draft);
    w->tokens += 1 + right;
}

static void rounds(world *w, int n)
{
    w->ms = w->tokens = 0;
    for (int i = 0; i < n; i++) round_of(w, 1);
}

/* What the best fixed depth would bring, in tokens per ms. */
static double best_rate(const world *w, int32_t most, int32_t *at)
{
    double best = 0, tokens = 0, survival = 1;
    for (int32_t n = 0; n <= most; n++, survival *= w->share) {
        tokens += survival;
        double rate = tokens / (w->base + n * (w->slope + w->draft));
        if (rate <= best) continue;
        best = rate;
        *at = n;
    }
    return best;
}

/* In every world the rate comes near the best one, and where nothing pays hardly anything is lost. */
static void test_rates(void **state)
{
    (void)state;
    static const double shares[] = {0, 0.2, 0.5, 0.8, 0.95, 1}, slopes[] = {0.05, 0.15, 0.4, 1.0},
                        drafts[] = {0, 0.1, 0.5};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 4; k++)
            for (size_t l = 0; l < 3; l++) {
                world w = {.base = 10, .slope = 10 * slopes[k], .draft = 10 * drafts[l], .share = shares[i]};
                int32_t at = 0;
                mf_rng_seed(&w.rng, i * 100 + k * 10 + l);
                mf_depth_init(&w.d, 8);
                rounds(&w, 100);
                rounds(&w, 1000);
                double rate = w.tokens / w.ms, best = best_rate(&w, 8, &at);
                if (rate < 0.88 * best)
                    fail_msg("share %g, slope %g, draft %g: %g tokens/ms, best %g at depth %d", shares[i],
                             slopes[k], drafts[l], rate, best, at);
            }
}

/* Nothing is drafted before a plain pass was measured. */
static void test_first_round(void **state)
{
    (void)state;
    mf_depth d;
    mf_depth_init(&d, 4);
    assert_int_equal(mf_depth_choose(&d, 3), 0);
    mf_depth_saw_pass(&d, 0, 10 * MS);
    assert_true(mf_depth_choose(&d, 3) > 0);
    mf_depth_init(&d, 1);
    mf_depth_saw_pass(&d, 0, 10 * MS);
    assert_int_equal(mf_depth_choose(&d, 3), 1);
}

/* Drafts that begin to pay are noticed; so is it when they stop. */
static void test_change(void **state)
{
    (void)state;
    world w = {.base = 10, .slope = 1, .draft = 0.5, .share = 0};
    mf_rng_seed(&w.rng, 3);
    mf_depth_init(&w.d, 8);
    rounds(&w, 300);
    assert_true(w.tokens / w.ms > 0.9 * 0.1);
    w.share = 1;
    rounds(&w, 300);
    assert_int_equal(w.last, 8);
    w.share = 0.02;
    rounds(&w, 60);
    rounds(&w, 200);
    assert_true(w.tokens / w.ms > 0.9 * 0.1);
}

/* A disturbance of a hundred times the cost is over after a few rounds. */
static void test_disturbance(void **state)
{
    (void)state;
    world w = {.base = 10, .slope = 1, .draft = 0.5, .share = 0.9};
    mf_rng_seed(&w.rng, 4);
    mf_depth_init(&w.d, 8);
    rounds(&w, 200);
    int32_t before = w.last;
    mf_depth_saw_pass(&w.d, before, 1000 * MS);
    mf_depth_saw_draft(&w.d, before, 1000 * MS);
    rounds(&w, 60);
    assert_true(w.tokens / w.ms > 0.85 * best_rate(&w, 8, &before));
}

/* What was measured while the machine was busy does not keep depths from being tried for ever. */
static void test_bad_start(void **state)
{
    (void)state;
    world w = {.base = 10, .slope = 1, .draft = 0, .share = 0.95};
    int32_t at = 0;
    mf_rng_seed(&w.rng, 5);
    mf_depth_init(&w.d, 8);
    mf_depth_saw_pass(&w.d, 0, 10 * MS);
    for (int32_t n = 1; n <= 8; n++) mf_depth_saw_pass(&w.d, n, 1000 * MS);
    rounds(&w, 100);
    rounds(&w, 100);
    assert_true(w.tokens / w.ms > 0.9 * best_rate(&w, 8, &at));
}

/* Kinds are counted apart. */
static void test_kinds(void **state)
{
    (void)state;
    mf_depth d;
    mf_depth_init(&d, 4);
    mf_depth_saw_pass(&d, 0, 10 * MS);
    mf_depth_saw_pass(&d, 4, 20 * MS);
    for (int i = 0; i < 50; i++) {
        mf_depth_saw_token(&d, 0, 0, false);
        for (int32_t k = 0; k < 4; k++) mf_depth_saw_token(&d, 2, k, true);
    }
    assert_int_equal(mf_depth_choose(&d, 0), 0);
    assert_int_equal(mf_depth_choose(&d, 2), 4);
    assert_true(mf_depth_tokens(&d, 2, 4) > 4.8 && mf_depth_tokens(&d, 2, 4) <= 5);
    assert_true(mf_depth_tokens(&d, 0, 4) < 1.2);
}

/* Costs that were not measured lie on lines between and beyond those that were. */
static void test_costs(void **state)
{
    (void)state;
    mf_depth d;
    mf_depth_init(&d, 8);
    mf_depth_saw_pass(&d, 0, 10 * MS);
    assert_true(mf_depth_ns(&d, 2) > 10 * MS && mf_depth_ns(&d, 2) < 20 * MS);
    mf_depth_saw_pass(&d, 4, 18 * MS);
    mf_depth_saw_draft(&d, 2, 6 * MS);
    assert_float_equal(mf_depth_ns(&d, 2) / MS, 14 + 2 * 3, 1e-6);
    assert_float_equal(mf_depth_ns(&d, 6) / MS, 22 + 6 * 3, 1e-6);
    mf_depth_saw_pass(&d, 8, 50 * MS);
    assert_float_equal(mf_depth_ns(&d, 6) / MS, 34 + 6 * 3, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates),     cmocka_unit_test(test_first_round),
                                       cmocka_unit_test(test_change),    cmocka_unit_test(test_disturbance),
                                       cmocka_unit_test(test_bad_start), cmocka_unit_test(test_kinds),
                                       cmocka_unit_test(test_costs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
