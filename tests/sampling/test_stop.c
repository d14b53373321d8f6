/* sampling: stop strings, in streams cut in every way. The plain implementation is the fuzz target's. */
#include "support/support.h"

#include "sampling/stop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *stops[3];
    const char *text, *shown;
    bool matched;
} cases[] = {
    {{"stop"}, "go on", "go on", false},
    {{"stop"}, "go stop on", "go ", true},
    {{"stop"}, "stop", "", true},
    {{"stop"}, "ststop", "st", true},
    {{"stop"}, "go sto", "go sto", false}, /* held back, and released at the end */
    {{"abcd", "bc"}, "xabcd", "x", true},  /* the earlier start wins, though it completes later */
    {{"abcd", "bc"}, "xabcx", "xa", true}, /* unless it does not complete */
    {{"abcd", "bc"}, "xabc", "xa", true},  /* or the text ends */
    {{"abc", "ab"}, "xabc", "x", true},
    {{"b", "abc", "bcde"}, "abx", "a", true},
    {{"aab"}, "aaab", "a", true},
    {{"\n\n"}, "one\ntwo\n\nthree", "one\ntwo", true},
    {{"🦊"}, "Hi 🦊!", "Hi ", true},
    {{"🦊"}, "Hi 🦁!", "Hi 🦁!", false}, /* the same first bytes */
    {{"x", "x"}, "axb", "a", true},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static size_t count_stops(size_t i)
{
    size_t n = 0;
    while (n < 3 && cases[i].stops[n]) n++;
    return n;
}

static void check_case(size_t i, size_t step)
{
    mf_stop s;
    mf_buf out = {0};
    minfer_error err;
    bool matched = false;
    size_t n = strlen(cases[i].text);
    assert_ok(mf_stop_init(&s, cases[i].stops, NULL, count_stops(i), &err), &err);
    for (size_t j = 0; j < n; j += step)
        assert_true(mf_stop_push(&s, cases[i].text + j, n - j < step ? n - j : step, &out, &matched));
    assert_true(mf_stop_finish(&s, &out, &matched));
    assert_int_equal(matched, cases[i].matched);
    assert_string_equal(out.len ? out.data : "", cases[i].shown);
    assert_true(mf_stop_finish(&s, &out, &matched)); /* again: nothing more */
    assert_int_equal(out.len, strlen(cases[i].shown));
    mf_stop_free(&s);
    mf_buf_free(&out);
}

static void test_cases_in_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++)
        for (size_t step = 1; step < 20; step++) check_case(i, step);
}

static void test_random_streams(void **state)
{
    (void)state;
    uint8_t data[200];
    mf_rng r;
    mf_rng_seed(&r, 1);
    for (int i = 0; i < 3000; i++) {
        size_t n = (size_t)(mf_rng_f64(&r) * sizeof data);
        for (size_t j = 0; j < n; j++) data[j] = (uint8_t)mf_rng_u64(&r);
        data[0] |= 4; /* few different bytes */
        for (size_t j = 1; j < n && j < 4; j++) data[j] &= 3;
        LLVMFuzzerTestOneInput(data, n);
    }
}

static void test_nothing_after_a_match(void **state)
{
    (void)state;
    const char *stop = "b";
    mf_stop s;
    mf_buf out = {0};
    bool matched;
    assert_int_equal(mf_stop_init(&s, &stop, NULL, 1, NULL), MINFER_OK);
    assert_true(mf_stop_push(&s, "abc", 3, &out, &matched) && matched);
    assert_true(mf_stop_push(&s, "def", 3, &out, &matched) && matched);
    assert_true(mf_stop_finish(&s, &out, &matched) && matched);
    assert_string_equal(out.data, "a");
    mf_stop_free(&s);
    mf_buf_free(&out);
}

/* At most as much as the longest string has is held back, however long the stream is. */
static void test_holds_little(void **state)
{
    (void)state;
    char text[64];
    const char *stop = text;
    mf_stop s;
    mf_buf out = {0};
    bool matched;
    memset(text, 'a', 62);
    text[62] = 'b';
    text[63] = 0;
    assert_int_equal(mf_stop_init(&s, &stop, NULL, 1, NULL), MINFER_OK);
    for (size_t i = 1; i <= 100000; i++) {
        assert_true(mf_stop_push(&s, "a", 1, &out, &matched) && !matched);
        assert_int_equal(out.len, i < 62 ? 0 : i - 62);
    }
    mf_stop_free(&s);
    mf_buf_free(&out);
}

static void test_bytes_of_any_value(void **state)
{
    (void)state;
    const char *stops[] = {"\0x", "\xFF\0"};
    const size_t lens[] = {2, 2};
    mf_stop s;
    mf_buf out = {0};
    bool matched;
    assert_int_equal(mf_stop_init(&s, stops, lens, 2, NULL), MINFER_OK);
    assert_true(mf_stop_push(&s, "a\0b\xFF\0c", 6, &out, &matched) && matched);
    assert_int_equal(out.len, 3);
    assert_memory_equal(out.data, "a\0b", 3);
    mf_stop_free(&s);
    mf_buf_free(&out);
}

static void test_refusals_and_no_strings(void **state)
{
    (void)state;
    const char *stops[] = {"a", ""};
    minfer_error err;
    mf_stop s, none = {0};
    mf_buf out = {0};
    bool matched;
    assert_fails(mf_stop_init(&s, stops, NULL, 2, &err), MINFER_ERR_ARG, &err, "stop string 2 of 2 is empty");
    assert_null(s.strings);
    assert_true(mf_stop_push(&none, "text", 4, &out, &matched) && !matched);
    assert_true(mf_stop_finish(&none, &out, &matched) && !matched);
    assert_string_equal(out.data, "text");
    mf_buf_free(&out);
    mf_stop_free(&none);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const char *stops[] = {"abc", "bcd"};
    bool done = false;
    int n = 0;
    while (!done) {
        mf_stop s;
        mf_buf out = {0};
        bool matched;
        mf_mem_fail_at(++n);
        minfer_status st = mf_stop_init(&s, stops, NULL, 2, NULL);
        bool ok = st == MINFER_OK && mf_stop_push(&s, "xxab", 4, &out, &matched) &&
                  mf_stop_finish(&s, &out, &matched);
        mf_mem_fail_at(0);
        assert_true(st == MINFER_OK || st == MINFER_ERR_NOMEM);
        if (st == MINFER_OK) mf_stop_free(&s);
        mf_buf_free(&out);
        done = ok;
    }
    assert_int_equal(n, 7); /* five of init, one of out */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_in_every_cut),    cmocka_unit_test(test_random_streams),
        cmocka_unit_test(test_nothing_after_a_match), cmocka_unit_test(test_holds_little),
        cmocka_unit_test(test_bytes_of_any_value),    cmocka_unit_test(test_refusals_and_no_strings),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
