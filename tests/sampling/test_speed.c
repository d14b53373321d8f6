/* sampling: time per token at a large vocabulary, printed and not judged. What is judged: with truncation by
 * share alone the few candidates are those of a full sort. */
#include "common.h"

#include <stdlib.h>
#include <time.h>

enum { N = 151936, TURNS = 20 };

static float row[N];

static void fill_row(uint64_t seed, float spread)
{
    mf_rng r;
    mf_rng_seed(&r, seed);
    for (int i = 0; i < N; i++) row[i] = random_logit(&r, spread);
}

static int descending(const void *x, const void *y)
{
    float a = *(const float *)x, b = *(const float *)y;
    return (a < b) - (a > b);
}

/* Of this process, so that other processes do not count. */
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void print_time(const char *what, const minfer_sampling *p)
{
    minfer_sampler *s = make_sampler(p, N);
    double best = 1e9;
    for (int i = 0; i < TURNS; i++) {
        double t = cpu_ms();
        sample(s, row, NULL, 0);
        t = cpu_ms() - t;
        if (t < best) best = t;
    }
    print_message("  %-32s %8.3f ms\n", what, best);
    minfer_sampler_free(s);
}

static void print_times(float spread)
{
    fill_row(1, spread);
    print_message("vocabulary of %d, spread %g:\n", N, (double)spread);
    minfer_sampling p = plain();
    p.temperature = 0;
    print_time("greedy", &p);
    p = plain();
    p.temperature = 0.8f;
    print_time("temperature only", &p);
    p.min_p = 0.05f;
    print_time("min_p 0.05", &p);
    p.min_p = 0;
    p.typical_p = 0.95f;
    print_time("typical_p 0.95", &p);
    p.typical_p = 1;
    p.top_p = 0.95f;
    print_time("top_p 0.95", &p);
    p.top_k = 40;
    print_time("top_k 40, top_p 0.95", &p);
    p.top_k = 10000;
    print_time("top_k 10000, top_p 0.95", &p);
}

static void test_times(void **state)
{
    (void)state;
    print_times(4); /* a share of 0.95 is a few tokens, as in text */
    print_times(1); /* tens of thousands */
}

static void test_same_as_sorting(void **state)
{
    (void)state;
    static float sorted[N];
    const float spreads[] = {4, 1, 0};
    for (int i = 0; i < 3; i++) {
        fill_row((uint64_t)i, spreads[i]);
        memcpy(sorted, row, sizeof row);
        qsort(sorted, N, sizeof *sorted, descending);
        minfer_sampling p = plain();
        p.top_p = 0.9f;
        const mf_cands *c;
        minfer_error err;
        minfer_sampler *s = make_sampler(&p, N);
        assert_ok(mf_sampler_candidates(s, row, NULL, 0, &c, &err), &err);
        float least = c->v[0].logit;
        for (size_t j = 1; j < c->n; j++) least = c->v[j].logit < least ? c->v[j].logit : least;
        assert_true(least == sorted[c->n - 1]);
        double kept = mf_cands_total(c);
        p.top_p = 1;
        minfer_sampler *all = make_sampler(&p, N);
        assert_ok(mf_sampler_candidates(all, row, NULL, 0, &c, &err), &err);
        double total = mf_cands_total(c), top_weight = 1;
        print_message("spread %g: %.6f of the weight\n", (double)spreads[i], kept / total);
        assert_true(kept >= 0.9 * total - 1e-6 * total && kept <= 0.9 * total + top_weight);
        minfer_sampler_free(s);
        minfer_sampler_free(all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_sorting), cmocka_unit_test(test_times)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
