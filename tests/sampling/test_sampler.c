/* sampling: the examples of users (off values, edges, seeds, penalties), refusals, bad logits, failures. */
#include "common.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS = 100000 };

/* How often each of n ids is drawn. */
static void count_draws(const minfer_sampling *p, const float *logits, int n, int *counts)
{
    minfer_sampler *s = make_sampler(p, n);
    memset(counts, 0, sizeof *counts * (size_t)n);
    for (int i = 0; i < DRAWS; i++) counts[sample(s, logits, NULL, 0)]++;
    minfer_sampler_free(s);
}

static const float four[] = {3, 2, 1, 0};

/* Asserts which of the four ids appear in the draws, as bits. */
static void expect_kept(const minfer_sampling *p, unsigned bits)
{
    int counts[4];
    count_draws(p, four, 4, counts);
    for (unsigned i = 0; i < 4; i++) assert_int_equal(counts[i] > 0, bits >> i & 1);
}

static void test_greedy_ignores_the_rest(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        minfer_sampling p = plain();
        p.temperature = 0;
        p.top_k = k;
        p.top_p = 0.5f * (float)k;
        p.min_p = 0.5f * (float)k;
        p.xtc_probability = 1;
        p.mirostat = k;
        expect_kept(&p, 1);
        p.temperature = 9e-7f;
        expect_kept(&p, 1);
    }
}

static void test_greedy_takes_the_lowest_of_equals(void **state)
{
    (void)state;
    minfer_sampling p = plain();
    p.temperature = 0;
    minfer_sampler *s = make_sampler(&p, 5);
    assert_int_equal(sample(s, (float[]){1, 1, 0, 0, 0}, NULL, 0), 0);
    assert_int_equal(sample(s, (float[]){0, 1, 7, 7, 7}, NULL, 0), 2);
    assert_int_equal(sample(s, (float[]){-5, -5, -5, -5, -5}, NULL, 0), 0);
    minfer_sampler_free(s);
}

static void test_top_k_off_values(void **state)
{
    (void)state;
    const int off[] = {0, -1, 1000000000, 4};
    minfer_sampling p = plain();
    for (int i = 0; i < 4; i++) {
        int counts[4];
        p.top_k = off[i];
        count_draws(&p, four, 4, counts);
        for (int j = 0; j < 4; j++) assert_true(counts[j] > 0);
        assert_true(fabs(counts[0] / (double)DRAWS - 0.6439) < 0.006);
    }
    p.top_k = 1;
    expect_kept(&p, 1);
    p.top_k = 3;
    expect_kept(&p, 7);
}

static void test_min_p_and_top_p_edges(void **state)
{
    (void)state;
    const struct {
        float min_p, top_p;
        unsigned kept;
    } cases[] = {{0, 1, 15},    {0.1f, 1, 7}, {0.2f, 1, 3}, {1, 1, 1},
                 {0, 0, 1},     {0, 0.6f, 1}, {0, 0.7f, 3}, {0, 0.9f, 7}, /* sums .644 .881 .968 1 */
                 {0, 0.97f, 15}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        minfer_sampling p = plain();
        p.min_p = cases[i].min_p;
        p.top_p = cases[i].top_p;
        expect_kept(&p, cases[i].kept);
    }
}

static void test_extreme_temperatures(void **state)
{
    (void)state;
    minfer_sampling p = plain();
    int counts[4];
    p.temperature = 1e-6f; /* not greedy any more: equals share */
    expect_kept(&p, 1);
    count_draws(&p, (float[]){1, 1, 0, 0}, 4, counts);
    assert_true(abs(counts[0] - DRAWS / 2) < 800 && counts[0] + counts[1] == DRAWS);
    p.temperature = 1e6f;
    count_draws(&p, four, 4, counts);
    for (int i = 0; i < 4; i++) assert_true(abs(counts[i] - DRAWS / 4) < 700);
    p.temperature = 3e38f;
    expect_kept(&p, 15);
    const float huge[] = {3e38f, -3e38f, 0};
    p = plain();
    minfer_sampler *s = make_sampler(&p, 3);
    assert_int_equal(sample(s, huge, NULL, 0), 0);
    minfer_sampler_free(s);
}

/* The logits after the editing stages: seen by a mask, which comes behind them. */
static minfer_status copy_row(void *user, float *logits, int32_t n_vocab, minfer_error *err)
{
    (void)err;
    memcpy(user, logits, sizeof *logits * (size_t)n_vocab);
    return MINFER_OK;
}

static void edited(const minfer_sampling *p, const float *logits, int n, const int32_t *history,
                   size_t n_history, float *out)
{
    minfer_sampler *s = make_sampler(p, n);
    mf_sampler_set_mask(s, copy_row, out);
    sample(s, logits, history, n_history);
    minfer_sampler_free(s);
}

static void expect_row(const float *row, float a, float b, float c)
{
    const float want[] = {a, b, c};
    for (int i = 0; i < 3; i++) assert_true(fabsf(row[i] - want[i]) < 1e-5f);
}

static void test_penalties(void **state)
{
    (void)state;
    const float logits[] = {2, -1, 0.5f};
    const int32_t history[] = {2, 2, 0, 1, 1, 1};
    float row[3];
    minfer_sampling p = plain();
    p.repeat_last_n = 4;
    p.repeat_penalty = 1.5f;
    edited(&p, logits, 3, history, 6, row);
    expect_row(row, 1.33333f, -1.5f, 0.5f); /* once per distinct id, and never upwards */
    p.repeat_penalty = 1;
    edited(&p, logits, 3, history, 6, row);
    expect_row(row, 2, -1, 0.5f);
    p.frequency_penalty = 0.5f;
    p.presence_penalty = 0.25f;
    edited(&p, logits, 3, history, 6, row);
    expect_row(row, 1.25f, -2.75f, 0.5f);
    p.repeat_last_n = 0;
    edited(&p, logits, 3, history, 6, row);
    expect_row(row, 2, -1, 0.5f);
    p.repeat_last_n = -1;
    edited(&p, logits, 3, history, 6, row);
    expect_row(row, 1.25f, -2.75f, -0.75f);
    p.repeat_last_n = 1000000; /* longer than the history: nothing outside is read */
    edited(&p, logits, 3, history + 5, 1, row);
    expect_row(row, 2, -1.75f, 0.5f);
    edited(&p, logits, 3, NULL, 0, row);
    expect_row(row, 2, -1, 0.5f);
}

static void test_penalties_never_forbid(void **state)
{
    (void)state;
    const int32_t history[] = {0, 1, 0, 1, 0, 1, 0, 1};
    const float logits[] = {-3e38f, 3e38f, -INFINITY};
    float row[3];
    minfer_sampling p = plain();
    p.repeat_penalty = 1e-30f; /* upwards, out of range */
    p.dry_multiplier = 3e38f;  /* downwards, out of range */
    edited(&p, logits, 3, history, 8, row);
    for (int i = 0; i < 2; i++) assert_true(isfinite(row[i]));
    assert_true(row[2] == -INFINITY);
}

static void test_logit_bias(void **state)
{
    (void)state;
    const minfer_logit_bias bias[] = {{0, -INFINITY}, {2, 1.5f}, {2, 0.5f}, {1, -0.25f}};
    float row[3];
    minfer_sampling p = plain();
    p.logit_bias = bias;
    p.n_logit_bias = 4;
    edited(&p, (float[]){9, 1, -1}, 3, NULL, 0, row);
    assert_true(row[0] == -INFINITY && row[1] == 0.75f && row[2] == 1); /* several add up */
    edited(&p, (float[]){9, 1, -INFINITY}, 3, NULL, 0, row);
    assert_true(row[2] == -INFINITY); /* a bias does not bring back what the model forbids */
}

static void test_dry_lengths(void **state)
{
    (void)state;
    /* ... 1 2 3 9 ... 2 3 8 ... 1 2 3: the 9 would repeat three tokens, the 8 two, a 5 after one 3 only one
     */
    const int32_t history[] = {1, 2, 3, 9, 4, 2, 3, 8, 3, 5, 1, 2, 3};
    float row[10], logits[10] = {0};
    minfer_sampling p = plain();
    p.dry_multiplier = 0.5f;
    p.dry_base = 2;
    edited(&p, logits, 10, history, 13, row);
    for (int i = 0; i < 10; i++) assert_true(row[i] == (i == 9 ? -1.f : i == 8 ? -0.5f : 0.f));
    p.dry_allowed_length = 3;
    edited(&p, logits, 10, history, 13, row);
    for (int i = 0; i < 10; i++) assert_true(row[i] == (i == 9 ? -0.5f : 0.f));
}

static void test_dry_breakers(void **state)
{
    (void)state;
    const int32_t history[] = {1, 2, 3, 9, 4, 2, 3, 8, 1, 2, 3}, breakers[] = {2, 9};
    float row[10], logits[10] = {0};
    minfer_error err;
    minfer_sampling p = plain();
    p.dry_multiplier = 0.5f;
    p.dry_base = 2;
    p.dry_allowed_length = 1;
    minfer_sampler *s = make_sampler(&p, 10);
    mf_sampler_set_mask(s, copy_row, row);
    assert_ok(mf_sampler_set_dry_breakers(s, breakers, 2, &err), &err);
    sample(s, logits, history, 11);
    for (int i = 0; i < 10; i++) assert_true(row[i] == (i == 8 ? -0.5f : 0.f));
    assert_ok(mf_sampler_set_dry_breakers(s, NULL, 0, &err), &err);
    sample(s, logits, history, 11);
    assert_true(row[9] == -2.f && row[8] == -1.f);
    assert_fails(mf_sampler_set_dry_breakers(s, (int32_t[]){3, 10}, 2, &err), MINFER_ERR_ARG, &err, "10");
    assert_fails(mf_sampler_set_dry_breakers(s, (int32_t[]){-1}, 1, &err), MINFER_ERR_ARG, &err, "-1");
    minfer_sampler_free(s);
}

static void test_bad_logits(void **state)
{
    (void)state;
    static const struct {
        float row[3];
        const char *words;
    } cases[] = {{{NAN, 1, 2}, "token 0 of 3 has NaN"},
                 {{1, 2, NAN}, "token 2 of 3 has NaN"},
                 {{NAN, NAN, NAN}, "token 0 of 3 has NaN"},
                 {{-INFINITY, -INFINITY, -INFINITY}, "all 3 tokens have -infinity"},
                 {{INFINITY, 1, NAN}, "token 0 of 3 has +infinity"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 2; t++) {
            minfer_sampling p = plain();
            minfer_error err;
            int32_t id = 77;
            p.temperature = (float)t;
            minfer_sampler *s = make_sampler(&p, 3);
            assert_fails(minfer_sampler_sample(s, cases[i].row, NULL, 0, &id, &err), MINFER_ERR_STATE, &err,
                         cases[i].words);
            assert_int_equal(id, 77);
            assert_int_equal(sample(s, (float[]){-INFINITY, 0, -INFINITY}, NULL, 0), 1); /* goes on */
            minfer_sampler_free(s);
        }
}

static minfer_status only_two(void *user, float *logits, int32_t n_vocab, minfer_error *err)
{
    for (int32_t i = 0; i < n_vocab; i++)
        if (i != 2 || *(int *)user == 0) logits[i] = -INFINITY;
    return *(int *)user < 0 ? mf_fail(err, MINFER_ERR_LIMIT, "grammar is tired") : MINFER_OK;
}

static void test_mask(void **state)
{
    (void)state;
    minfer_sampling p = plain();
    minfer_error err;
    int32_t id;
    for (int t = 0; t < 3; t++) {
        int mode = 1;
        p.temperature = t ? 1 : 0;
        p.mirostat = t == 2 ? 2 : 0;
        minfer_sampler *s = make_sampler(&p, 4);
        mf_sampler_set_mask(s, only_two, &mode);
        for (int i = 0; i < 20; i++) assert_int_equal(sample(s, four, NULL, 0), 2);
        mode = 0;
        assert_fails(minfer_sampler_sample(s, four, NULL, 0, &id, &err), MINFER_ERR_ARG, &err,
                     "no token is left");
        mode = -1;
        assert_fails(minfer_sampler_sample(s, four, NULL, 0, &id, &err), MINFER_ERR_LIMIT, &err,
                     "mask: grammar is tired");
        mf_sampler_set_mask(s, NULL, NULL);
        sample(s, four, NULL, 0);
        minfer_sampler_free(s);
    }
}

static void test_bias_may_forbid_all(void **state)
{
    (void)state;
    const minfer_logit_bias bias[] = {{0, -INFINITY}, {1, -INFINITY}};
    minfer_sampling p = plain();
    minfer_error err;
    int32_t id;
    p.logit_bias = bias;
    p.n_logit_bias = 2;
    minfer_sampler *s = make_sampler(&p, 2);
    assert_fails(minfer_sampler_sample(s, four, NULL, 0, &id, &err), MINFER_ERR_ARG, &err,
                 "the logit bias forbids all 2");
    minfer_sampler_free(s);
}

static void test_history_out_of_range(void **state)
{
    (void)state;
    const int32_t high[] = {0, 4, 1}, low[] = {0, -1, 1};
    minfer_error err;
    int32_t id;
    for (int dry = 0; dry < 2; dry++) {
        minfer_sampling p = plain();
        p.repeat_penalty = dry ? 1 : 1.5f;
        p.dry_multiplier = (float)dry;
        minfer_sampler *s = make_sampler(&p, 4);
        assert_fails(minfer_sampler_sample(s, four, high, 3, &id, &err), MINFER_ERR_ARG, &err,
                     dry ? "DRY: history[1] is 4, expected 0 to 3" : "penalties: history[1] is 4");
        assert_fails(minfer_sampler_sample(s, four, low, 3, &id, &err), MINFER_ERR_ARG, &err, "is -1");
        sample(s, four, high, 1);
        minfer_sampler_free(s);
    }
}

static void draw_text(uint64_t seed, int32_t *ids, int n)
{
    minfer_sampling p = plain();
    p.seed = seed;
    minfer_sampler *s = make_sampler(&p, 4);
    for (int i = 0; i < n; i++) ids[i] = sample(s, four, ids, (size_t)i);
    minfer_sampler_free(s);
}

static void test_seeds(void **state)
{
    (void)state;
    int32_t a[50], b[50], c[50];
    draw_text(7, a, 50);
    draw_text(7, b, 50);
    draw_text(8, c, 50);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    draw_text(UINT64_MAX, c, 50);
    assert_memory_not_equal(a, c, sizeof a);
}

static void test_refused_parameters(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        float bad[5];
        const char *name;
    } floats[] = {
#define F(f) offsetof(minfer_sampling, f)
        {F(temperature), {-0.1f, NAN, INFINITY, -INFINITY, -1}, "temperature"},
        {F(top_p), {2, -0.1f, NAN, INFINITY, 1.0001f}, "top_p"},
        {F(min_p), {2, -0.1f, NAN, INFINITY, -1}, "min_p"},
        {F(typical_p), {2, -0.1f, NAN, INFINITY, -1}, "typical_p"},
        {F(repeat_penalty), {0, -1, NAN, INFINITY, -0.0f}, "repeat_penalty"},
        {F(frequency_penalty), {2.1f, -2.1f, NAN, INFINITY, -INFINITY}, "frequency_penalty"},
        {F(presence_penalty), {2.1f, -2.1f, NAN, INFINITY, -INFINITY}, "presence_penalty"},
        {F(xtc_probability), {1.1f, -0.1f, NAN, INFINITY, -1}, "xtc_probability"},
        {F(xtc_threshold), {1.1f, -0.1f, NAN, INFINITY, -1}, "xtc_threshold"},
        {F(dry_multiplier), {-0.1f, NAN, INFINITY, -INFINITY, -1}, "dry_multiplier"},
        {F(dry_base), {0.9f, 0, -1, NAN, INFINITY}, "dry_base"},
        {F(mirostat_tau), {-1, NAN, INFINITY, -INFINITY, -0.1f}, "mirostat_tau"},
        {F(mirostat_eta), {-1, NAN, INFINITY, -INFINITY, -0.1f}, "mirostat_eta"},
    };
    minfer_error err;
    minfer_sampler *s = NULL;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int j = 0; j < 5; j++) {
            minfer_sampling p;
            minfer_sampling_init(&p);
            memcpy((char *)&p + floats[i].offset, &floats[i].bad[j], sizeof(float));
            assert_fails(mf_sampler_create(&p, 10, &s, &err), MINFER_ERR_ARG, &err, floats[i].name);
            assert_non_null(strstr(err.message, "expected"));
            assert_null(s);
        }
}

static void test_refused_whole_numbers(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        int32_t bad, good;
        const char *words;
    } ints[] = {
        {F(repeat_last_n), -2, -1, "repeat_last_n is -2, expected -1 or more"},
        {F(dry_allowed_length), -1, 0, "dry_allowed_length is -1"},
        {F(mirostat), 3, 2, "mirostat is 3, expected 0, 1 or 2"},
        {F(mirostat), -1, 1, "mirostat is -1"},
        {F(top_k), 0, INT32_MIN, NULL},
    };
#undef F
    minfer_error err;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        minfer_sampling p;
        minfer_sampling_init(&p);
        memcpy((char *)&p + ints[i].offset, &ints[i].good, sizeof(int32_t));
        assert_ok(minfer_sampling_check(&p, 10, &err), &err);
        if (!ints[i].words) continue;
        memcpy((char *)&p + ints[i].offset, &ints[i].bad, sizeof(int32_t));
        assert_fails(minfer_sampling_check(&p, 10, &err), MINFER_ERR_ARG, &err, ints[i].words);
    }
}

static void test_refused_bias(void **state)
{
    (void)state;
    static const struct {
        minfer_logit_bias bias;
        const char *words;
    } cases[] = {{{10, 0}, "token 10, expected 0 to 9"},
                 {{-1, 0}, "token -1"},
                 {{3, NAN}, "token 3 is nan"},
                 {{3, INFINITY}, "token 3 is inf"}};
    minfer_error err;
    minfer_sampling p;
    minfer_sampling_init(&p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        minfer_logit_bias bias[2] = {{9, 1}, cases[i].bias};
        p.logit_bias = bias;
        p.n_logit_bias = 2;
        assert_fails(minfer_sampling_check(&p, 10, &err), MINFER_ERR_ARG, &err, cases[i].words);
    }
    p.logit_bias = NULL;
    assert_fails(minfer_sampling_check(&p, 10, &err), MINFER_ERR_ARG, &err, "logit_bias is NULL");
    p.n_logit_bias = 0;
    assert_fails(minfer_sampling_check(&p, 0, &err), MINFER_ERR_ARG, &err, "n_vocab is 0");
    assert_int_equal(minfer_sampling_check(&p, -1, NULL), MINFER_ERR_ARG);
}

static void test_defaults(void **state)
{
    (void)state;
    minfer_sampling p;
    memset(&p, 0xFF, sizeof p);
    minfer_sampling_init(&p);
    assert_true(p.temperature == 0.8f && p.top_k == 40 && p.top_p == 0.95f && p.min_p == 0);
    assert_true(p.typical_p == 1 && p.repeat_penalty == 1.1f && p.repeat_last_n == 64);
    assert_true(p.frequency_penalty == 0 && p.presence_penalty == 0 && p.xtc_probability == 0);
    assert_true(p.xtc_threshold == 0.1f && p.dry_multiplier == 0 && p.dry_base == 1.75f);
    assert_true(p.dry_allowed_length == 2 && p.mirostat == 0 && p.mirostat_tau == 5);
    assert_true(p.mirostat_eta == 0.1f && p.seed == 0 && !p.logit_bias && p.n_logit_bias == 0);
}

/* Everything that allocates is on; the bias is copied, so what was given may go. */
static minfer_status create_and_sample(bool mirostat, minfer_error *err)
{
    minfer_logit_bias *bias = malloc(sizeof *bias);
    const int32_t history[] = {1, 2, 1, 2, 1};
    minfer_sampler *s = NULL;
    minfer_sampling p = plain();
    int32_t id;
    assert_non_null(bias);
    *bias = (minfer_logit_bias){0, 1};
    p.top_k = 2;
    p.typical_p = 0.9f;
    p.top_p = 0.9f;
    p.dry_multiplier = 1;
    p.mirostat = mirostat;
    p.logit_bias = bias;
    p.n_logit_bias = 1;
    minfer_status st = mf_sampler_create(&p, 4, &s, err);
    free(bias);
    if (st == MINFER_OK) st = mf_sampler_set_dry_breakers(s, history, 1, err);
    if (st == MINFER_OK) st = minfer_sampler_sample(s, four, history, 5, &id, err);
    minfer_sampler_free(s);
    return st;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    for (int mirostat = 0; mirostat < 2; mirostat++) {
        minfer_error err = {0};
        minfer_status st = MINFER_ERR_NOMEM;
        int n = 0;
        while (st != MINFER_OK) {
            mf_mem_fail_at(++n);
            st = create_and_sample(mirostat, &err);
            mf_mem_fail_at(0);
            assert_true(st == MINFER_OK || st == MINFER_ERR_NOMEM);
        }
        assert_true(n > 6);
    }
    minfer_sampler_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_ignores_the_rest),
        cmocka_unit_test(test_greedy_takes_the_lowest_of_equals),
        cmocka_unit_test(test_top_k_off_values),
        cmocka_unit_test(test_min_p_and_top_p_edges),
        cmocka_unit_test(test_extreme_temperatures),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_penalties_never_forbid),
        cmocka_unit_test(test_logit_bias),
        cmocka_unit_test(test_dry_lengths),
        cmocka_unit_test(test_dry_breakers),
        cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_bias_may_forbid_all),
        cmocka_unit_test(test_history_out_of_range),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_refused_parameters),
        cmocka_unit_test(test_refused_whole_numbers),
        cmocka_unit_test(test_refused_bias),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
