/* sampling: every stage, and the chain, against the plain implementation in naive.c on random rows;
 * properties that hold for any row. */
#include "common.h"
#include "naive.h"

#include <math.h>
#include <stdlib.h>

static naive want; /* large */

static int by_id(const void *x, const void *y)
{
    const naive_cand *a = x, *b = y;
    return (a->id > b->id) - (a->id < b->id);
}

/* The same candidates, and the same probabilities. */
static void compare(const mf_cands *got, naive *c)
{
    double total = mf_cands_total(got);
    qsort(c->v, (size_t)c->n, sizeof *c->v, by_id);
    assert_int_equal(got->n, c->n);
    for (int i = 0; i < c->n; i++) {
        assert_int_equal(got->v[i].id, c->v[i].id);
        assert_true(fabs(got->v[i].weight / total - c->v[i].p) < 1e-12);
    }
}

static const mf_cands *candidates(minfer_sampler *s, const float *row, const int32_t *history, int n)
{
    const mf_cands *c = NULL;
    minfer_error err = {0};
    assert_ok(mf_sampler_candidates(s, row, history, (size_t)n, &c, &err), &err);
    return c;
}

/* Rows of several sizes and spreads, some with many equal logits, some with forbidden tokens. */
static int random_row(mf_rng *r, float *row, int max)
{
    static const float spreads[] = {0.1f, 1, 3, 10};
    int n = 1 + below(r, below(r, 2) ? max : 40), style = below(r, 4);
    float spread = spreads[below(r, 4)];
    for (int i = 0; i < n; i++) {
        row[i] = random_logit(r, spread);
        if (style == 1) row[i] = rintf(row[i] * 4) / 4;
        if (style == 2 && below(r, 3) == 0) row[i] = -INFINITY;
    }
    row[below(r, n)] = 5;
    return n;
}

/* Whole numbers make equal keys and exact halves, where a rounding decides: not for shares. */
static float random_share(mf_rng *r)
{
    return (float)(0.02 + 0.97 * mf_rng_f64(r));
}

typedef void set_fn(mf_rng *r, minfer_sampling *p);

static void set_top_k(mf_rng *r, minfer_sampling *p)
{
    p->top_k = below(r, 60) - 2;
}
static void set_typical(mf_rng *r, minfer_sampling *p)
{
    p->typical_p = random_share(r);
}
static void set_top_p(mf_rng *r, minfer_sampling *p)
{
    p->top_p = random_share(r);
}
static void set_min_p(mf_rng *r, minfer_sampling *p)
{
    p->min_p = below(r, 8) ? random_share(r) * random_share(r) : 1;
}
static void set_temperature(mf_rng *r, minfer_sampling *p)
{
    p->temperature = 3 * random_share(r);
}
static void set_xtc(mf_rng *r, minfer_sampling *p)
{
    p->xtc_probability = 1;
    p->xtc_threshold = random_share(r) * random_share(r) * random_share(r);
}
static void set_penalties(mf_rng *r, minfer_sampling *p)
{
    p->repeat_penalty = 0.5f + 2 * random_share(r);
    p->repeat_last_n = below(r, 50) - 1;
    p->frequency_penalty = 4 * random_share(r) - 2;
    p->presence_penalty = 4 * random_share(r) - 2;
}
static void set_dry(mf_rng *r, minfer_sampling *p)
{
    p->dry_multiplier = random_share(r);
    p->dry_base = 1 + random_share(r);
    p->dry_allowed_length = below(r, 4);
}
static void set_all(mf_rng *r, minfer_sampling *p)
{
    set_fn *const all[] = {set_top_k,       set_typical, set_top_p,     set_min_p,
                           set_temperature, set_xtc,     set_penalties, set_dry};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (below(r, 2)) all[i](r, p);
}

static void check_family(set_fn *set, uint64_t seed)
{
    static float row[NAIVE_MAX];
    int32_t history[60];
    mf_rng r;
    mf_rng_seed(&r, seed);
    for (int i = 0; i < 250; i++) {
        minfer_sampling p = plain();
        int n = random_row(&r, row, i % 20 == 0 ? NAIVE_MAX : 300), n_history = below(&r, 60);
        int few = 1 + below(&r, n < 8 ? n : 8);
        for (int j = 0; j < n_history; j++) history[j] = below(&r, few);
        set(&r, &p);
        minfer_sampler *s = make_sampler(&p, n);
        naive_chain(&want, &p, row, n, history, n_history);
        compare(candidates(s, row, history, n_history), &want);
        compare(candidates(s, row, history, n_history), &want); /* nothing is left behind */
        minfer_sampler_free(s);
    }
}

#define FAMILY(name, seed)                \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        check_family(set_##name, seed);   \
    }
FAMILY(top_k, 1)
FAMILY(typical, 2)
FAMILY(top_p, 3)
FAMILY(min_p, 4)
FAMILY(temperature, 5)
FAMILY(xtc, 6)
FAMILY(penalties, 7)
FAMILY(dry, 8)
FAMILY(all, 9)

static void test_dry_breakers_at_random(void **state)
{
    (void)state;
    mf_rng r;
    mf_rng_seed(&r, 10);
    for (int i = 0; i < 300; i++) {
        int32_t history[200], breakers[] = {0, 1};
        float row[8], edited[8];
        int n_history = below(&r, 200), n_breakers = below(&r, 3);
        minfer_error err;
        minfer_sampling p = plain();
        set_dry(&r, &p);
        for (int j = 0; j < 8; j++) row[j] = edited[j] = random_logit(&r, 3);
        for (int j = 0; j < n_history; j++) history[j] = below(&r, 2 + below(&r, 7));
        minfer_sampler *s = make_sampler(&p, 8);
        assert_ok(mf_sampler_set_dry_breakers(s, breakers, (size_t)n_breakers, &err), &err);
        naive_dry(&p, edited, history, n_history, breakers, n_breakers);
        naive_fill(&want, edited, 8);
        compare(candidates(s, row, history, n_history), &want);
        minfer_sampler_free(s);
    }
}

/* A text of random rows, mirostat's state followed by hand. */
static void follow_mirostat(int version, uint64_t seed, float tau)
{
    static float row[400];
    mf_rng r;
    mf_rng_seed(&r, seed);
    minfer_sampling p = plain();
    p.mirostat = version;
    p.mirostat_tau = tau;
    p.mirostat_eta = 0.1f + 0.3f * random_share(&r);
    p.temperature = 0.5f + random_share(&r);
    p.seed = seed;
    minfer_sampler *s = make_sampler(&p, 400);
    double mu = 2.0 * tau;
    for (int step = 0; step < 300; step++) {
        for (int i = 0; i < 400; i++) row[i] = random_logit(&r, 3);
        naive_fill(&want, row, 400);
        naive_mirostat(&want, version, mu, p.temperature);
        compare(candidates(s, row, NULL, 0), &want);
        int32_t id = sample(s, row, NULL, 0);
        int i = 0;
        while (i < want.n && want.v[i].id != id) i++;
        assert_true(i < want.n);
        mu -= p.mirostat_eta * (-log2(want.v[i].p) - tau);
    }
    minfer_sampler_free(s);
}

static void test_mirostat(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        follow_mirostat(1, seed, 0.5f * (float)seed);
        follow_mirostat(2, seed, 0.5f * (float)seed);
    }
}

/* Tokens too light for top-p can be near the entropy: a heavy token (0.28), 600 of 0.68 together, 400 of 1e-4
 * each, at distances of about 4.0, 1.5 and 3.9 from it. */
static void test_typical_keeps_light_tokens(void **state)
{
    (void)state;
    static float row[1001];
    for (int i = 0; i < 1001; i++) row[i] = (float)log(i == 0 ? 0.28 : i <= 600 ? 0.68 / 600 : 1e-4);
    minfer_sampling p = plain();
    p.typical_p = 0.7f;
    minfer_sampler *s = make_sampler(&p, 1001);
    naive_chain(&want, &p, row, 1001, NULL, 0);
    const mf_cands *c = candidates(s, row, NULL, 0);
    compare(c, &want);
    assert_int_equal(c->v[0].id, 1);
    assert_true(c->n > 700);
    minfer_sampler_free(s);
}

/* What it is for: the mean surprise comes out near tau. */
static void test_mirostat_reaches_tau(void **state)
{
    (void)state;
    enum { N = 500, STEPS = 3000, SKIP = 200 };
    static float row[N];
    for (int version = 1; version <= 2; version++) {
        minfer_sampling p = plain();
        mf_rng r;
        mf_rng_seed(&r, 11);
        p.mirostat = version;
        p.mirostat_tau = 3;
        minfer_sampler *s = make_sampler(&p, N);
        double sum = 0;
        for (int step = 0; step < STEPS; step++) {
            for (int i = 0; i < N; i++) row[i] = random_logit(&r, 2);
            const mf_cands *c = candidates(s, row, NULL, 0);
            double total = mf_cands_total(c);
            int32_t id = sample(s, row, NULL, 0);
            for (size_t i = 0; i < c->n; i++)
                if (c->v[i].id == id && step >= SKIP) sum -= log2(c->v[i].weight / total);
        }
        print_message("mirostat %d: mean surprise %.3f bits, wanted 3\n", version, sum / (STEPS - SKIP));
        assert_true(fabs(sum / (STEPS - SKIP) - 3) < 0.1);
        minfer_sampler_free(s);
    }
}

static void test_mirostat_edges(void **state)
{
    (void)state;
    const float flat[] = {1, 1, 1, 1}, single[] = {-INFINITY, 2, -INFINITY, -INFINITY};
    const float far[] = {3e38f, -3e38f, 0, 1};
    for (int version = 1; version <= 2; version++)
        for (int tau = 0; tau < 2; tau++) {
            minfer_sampling p = plain();
            p.mirostat = version;
            p.mirostat_tau = (float)tau * 1e30f;
            p.mirostat_eta = 1e30f;
            minfer_sampler *s = make_sampler(&p, 4);
            for (int i = 0; i < 5; i++) {
                assert_int_equal(sample(s, single, NULL, 0), 1);
                assert_int_equal(sample(s, far, NULL, 0), 0);
                sample(s, flat, NULL, 0);
            }
            minfer_sampler_free(s);
        }
}

/* Draws follow the weights: chi-square over all candidates. */
static void test_draws_follow_weights(void **state)
{
    (void)state;
    enum { N = 30, DRAWS = 100000 };
    float row[N];
    mf_rng r;
    mf_rng_seed(&r, 12);
    for (int round = 0; round < 10; round++) {
        int counts[N] = {0};
        minfer_sampling p = plain();
        p.seed = (uint64_t)round;
        p.temperature = 0.8f;
        p.top_p = 0.97f;
        for (int i = 0; i < N; i++) row[i] = random_logit(&r, 1);
        minfer_sampler *s = make_sampler(&p, N);
        for (int i = 0; i < DRAWS; i++) counts[sample(s, row, NULL, 0)]++;
        const mf_cands *c = candidates(s, row, NULL, 0);
        double chi2 = 0, total = mf_cands_total(c);
        int drawn = 0;
        for (size_t i = 0; i < c->n; i++) {
            double e = c->v[i].weight / total * DRAWS, d = counts[c->v[i].id] - e;
            chi2 += d * d / e;
            drawn += counts[c->v[i].id];
        }
        assert_int_equal(drawn, DRAWS);
        assert_true(chi2 < 75); /* 29 degrees of freedom: 1 in 200,000 */
        minfer_sampler_free(s);
    }
}

static void test_xtc_chance(void **state)
{
    (void)state;
    const float row[] = {3, 2.5f, 2, 0};
    int top = 0;
    minfer_sampling p = plain();
    p.xtc_probability = 0.3f;
    p.xtc_threshold = 0.1f; /* 0.51 0.31 0.19 0.026: only id 2 of the first three stays */
    minfer_sampler *s = make_sampler(&p, 4);
    for (int i = 0; i < 100000; i++) {
        int n = (int)candidates(s, row, NULL, 0)->n;
        assert_true(n == 4 || n == 2);
        top += n == 4;
    }
    assert_true(abs(top - 70000) < 700);
    minfer_sampler_free(s);
}

/* A share of just the threshold counts; of equals the last one stays. */
static void test_xtc_at_the_threshold(void **state)
{
    (void)state;
    const float row[] = {1, 1, -INFINITY};
    minfer_sampling p = plain();
    p.xtc_probability = 1;
    p.xtc_threshold = 0.5f;
    minfer_sampler *s = make_sampler(&p, 3);
    const mf_cands *c = candidates(s, row, NULL, 0);
    assert_int_equal(c->n, 1);
    assert_int_equal(c->v[0].id, 1);
    minfer_sampler_free(s);
}

/* Renaming the tokens renames the candidates and changes no probability. */
static void test_permutation(void **state)
{
    (void)state;
    enum { N = 500 };
    float row[N], moved[N];
    int to[N];
    mf_rng r;
    mf_rng_seed(&r, 13);
    for (int round = 0; round < 100; round++) {
        minfer_sampling p = plain();
        set_top_k(&r, &p);
        set_typical(&r, &p);
        set_top_p(&r, &p);
        set_xtc(&r, &p);
        for (int i = 0; i < N; i++) to[i] = i;
        for (int i = N - 1; i > 0; i--) {
            int j = below(&r, i + 1), t = to[i];
            to[i] = to[j];
            to[j] = t;
        }
        for (int i = 0; i < N; i++) moved[to[i]] = row[i] = random_logit(&r, 3) + 1e-4f * (float)i;
        minfer_sampler *a = make_sampler(&p, N), *b = make_sampler(&p, N);
        const mf_cands *ca = candidates(a, row, NULL, 0), *cb = candidates(b, moved, NULL, 0);
        assert_int_equal(ca->n, cb->n);
        for (size_t i = 0; i < ca->n; i++) {
            size_t j = 0;
            while (j < cb->n && cb->v[j].id != to[ca->v[i].id]) j++;
            assert_true(j < cb->n);
            double pa = ca->v[i].weight / mf_cands_total(ca), pb = cb->v[j].weight / mf_cands_total(cb);
            assert_true(fabs(pa - pb) < 1e-14);
        }
        minfer_sampler_free(a);
        minfer_sampler_free(b);
    }
}

/* Off means off: the same candidates with the same bits as without the parameter. */
static void test_off_changes_nothing(void **state)
{
    (void)state;
    static float row[300];
    const int32_t history[] = {0, 1, 0, 1, 0};
    mf_rng r;
    mf_rng_seed(&r, 14);
    for (int round = 0; round < 50; round++) {
        minfer_sampling p = plain(), off = plain();
        off.top_k = round % 2 ? 300 : -1;
        off.min_p = 0;
        off.xtc_probability = 0;
        off.xtc_threshold = 0;
        off.dry_base = 3;
        off.repeat_penalty = round % 2 ? 1 : 2;
        off.repeat_last_n = round % 2 ? -1 : 0;
        off.mirostat_tau = 1;
        for (int i = 0; i < 300; i++) row[i] = random_logit(&r, 3);
        minfer_sampler *a = make_sampler(&p, 300), *b = make_sampler(&off, 300);
        const mf_cands *ca = candidates(a, row, history, 5), *cb = candidates(b, row, history, 5);
        assert_int_equal(ca->n, cb->n);
        assert_memory_equal(ca->v, cb->v, ca->n * sizeof *ca->v);
        for (int i = 0; i < 20; i++) assert_int_equal(sample(a, row, history, 5), sample(b, row, history, 5));
        minfer_sampler_free(a);
        minfer_sampler_free(b);
    }
}

/* The caller's row is not written; candidates come in order of id. */
static void test_candidates_in_order_of_id(void **state)
{
    (void)state;
    static float row[1000], copy[1000];
    mf_rng r;
    mf_rng_seed(&r, 15);
    for (int round = 0; round < 50; round++) {
        minfer_sampling p = plain();
        set_all(&r, &p);
        for (int i = 0; i < 1000; i++) row[i] = random_logit(&r, 3);
        memcpy(copy, row, sizeof row);
        minfer_sampler *s = make_sampler(&p, 1000);
        const mf_cands *c = candidates(s, row, NULL, 0);
        assert_memory_equal(row, copy, sizeof row);
        assert_true(c->n > 0);
        for (size_t i = 1; i < c->n; i++) assert_true(c->v[i - 1].id < c->v[i].id);
        minfer_sampler_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_xtc),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_dry),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_dry_breakers_at_random),
        cmocka_unit_test(test_typical_keeps_light_tokens),
        cmocka_unit_test(test_mirostat),
        cmocka_unit_test(test_mirostat_reaches_tau),
        cmocka_unit_test(test_mirostat_edges),
        cmocka_unit_test(test_draws_follow_weights),
        cmocka_unit_test(test_xtc_chance),
        cmocka_unit_test(test_xtc_at_the_threshold),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_off_changes_nothing),
        cmocka_unit_test(test_candidates_in_order_of_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
