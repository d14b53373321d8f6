/* base: errors, memory, UTF-8, half floats, hash map, thread pool. */
#include "support/support.h"

#include "base/half.h"
#include "base/pool.h"
#include "base/strmap.h"
#include "base/utf8.h"

#include <stdatomic.h>
#include <stdlib.h>

static void test_error_is_one_line(void **state)
{
    (void)state;
    minfer_error e;
    assert_int_equal(mf_fail(&e, MINFER_ERR_ARG, "a\nb\tc %d", 7), MINFER_ERR_ARG);
    assert_string_equal(e.message, "a?b?c 7");
    mf_fail_prefix(&e, MINFER_ERR_IO, "file %s", "x");
    assert_string_equal(e.message, "file x: a?b?c 7");
    assert_int_equal(mf_fail(NULL, MINFER_ERR_IO, "nobody listens"), MINFER_ERR_IO);
}

static void test_memory_refuses_overflow(void **state)
{
    (void)state;
    assert_null(mf_realloc(NULL, SIZE_MAX / 2, 3));
    assert_null(mf_calloc(SIZE_MAX / 2, 3));
    mf_arena a = {.limit = 100};
    assert_non_null(mf_arena_alloc(&a, 90));
    assert_null(mf_arena_alloc(&a, 90));
    assert_null(mf_arena_array(&a, SIZE_MAX / 2, 3));
    mf_arena_free(&a);
    mf_buf b = {.limit = 4};
    assert_true(mf_buf_str(&b, "abcd"));
    assert_false(mf_buf_char(&b, 'e'));
    assert_string_equal(b.data, "abcd");
    mf_buf_free(&b);
    mf_mem_fail_at(2);
    void *first = mf_malloc(1), *second = mf_malloc(1);
    mf_mem_fail_at(0);
    assert_non_null(first);
    assert_null(second);
    mf_free(first);
}

static void test_utf8(void **state)
{
    (void)state;
    uint32_t cp;
    char out[4];
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c >= 0xD800 && c < 0xE000) continue;
        size_t n = mf_utf8_encode(c, out);
        assert_int_equal(mf_utf8_decode(out, n, &cp), n);
        assert_int_equal(cp, c);
        for (size_t k = 1; k < n; k++) assert_int_equal(mf_utf8_incomplete_tail(out, k), k);
        assert_int_equal(mf_utf8_incomplete_tail(out, n), 0);
    }
    assert_false(mf_utf8_valid("\xC0\xAF", 2));
    assert_false(mf_utf8_valid("\xED\xA0\x80", 3));
    assert_false(mf_utf8_valid("\xF4\x90\x80\x80", 4));
    assert_int_equal(mf_utf8_decode("\xE4\xB8", 2, &cp), 2);
    assert_int_equal(cp, MF_UTF8_BAD);
    assert_int_equal(mf_utf8_count("a\xE4\xB8\xADz\xFF", 6), 4);
}

static void test_half(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = mf_f16_to_f32((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(mf_f16_to_f32(mf_f32_to_f16(f))));
        else
            assert_int_equal(mf_f32_to_f16(f), h);
    }
    assert_int_equal(mf_f32_to_f16(65519.9f), 0x7bff);
    assert_int_equal(mf_f32_to_f16(65520.f), 0x7c00);
    assert_int_equal(mf_f32_to_f16(1.f + 0x1p-11f), 0x3c00);
    assert_int_equal(mf_f32_to_f16(1.f + 0x3p-11f), 0x3c02);
    assert_int_equal(mf_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(mf_f32_to_f16(0x1.8p-25f), 1);
    assert_int_equal(mf_f32_to_bf16(1.f + 0x1p-8f), 0x3f80);
    assert_int_equal(mf_f32_to_bf16(1.f + 0x3p-8f), 0x3f82);
}

static void test_strmap(void **state)
{
    (void)state;
    enum { N = 5000 };
    static char keys[N][12];
    mf_strmap m = {0};
    uint32_t old;
    assert_int_equal(mf_strmap_get(&m, "x", 1), MF_STRMAP_NONE);
    for (uint32_t i = 0; i < N; i++) {
        int n = snprintf(keys[i], sizeof keys[i], "%u", i * 7919u);
        assert_true(mf_strmap_add(&m, keys[i], (size_t)n, i, &old));
        assert_int_equal(old, MF_STRMAP_NONE);
    }
    for (uint32_t i = 0; i < N; i++) assert_int_equal(mf_strmap_get(&m, keys[i], strlen(keys[i])), i);
    assert_true(mf_strmap_add(&m, keys[3], strlen(keys[3]), 99, &old));
    assert_int_equal(old, 3);
    assert_int_equal(mf_strmap_get(&m, keys[3], strlen(keys[3])), 3);
    assert_int_equal(mf_strmap_get(&m, "a", 1), MF_STRMAP_NONE);
    mf_strmap_free(&m);
}

enum { ROUNDS = 50, SHARES = 7 };

typedef struct {
    mf_pool *pool;
    int slots[SHARES];
    atomic_int sum, bad;
    int ended; /* phases, counted by who ends them */
    int alone; /* this thread does nothing; -1: none */
} pool_case;

/* Each share of a round sees all shares of the round before finished, and what one thread did after them. Odd
 * rounds have one share only. */
static void pool_body(void *arg, int ith, int nth)
{
    pool_case *c = arg;
    (void)nth;
    uint32_t first = 0, share;
    for (int round = 1; round <= ROUNDS && ith != c->alone; round++) {
        uint32_t n = round % 2 ? 1 : SHARES, end = first + n;
        while (mf_pool_claim(c->pool, ith, end, &share)) {
            if (share < first || share >= end || c->ended % ROUNDS != round - 1) atomic_fetch_add(&c->bad, 1);
            for (uint32_t i = 0; i < SHARES; i++)
                if (n == 1 && round > 1 && c->slots[i] != round - 1) atomic_fetch_add(&c->bad, 1);
            if (n > 1) c->slots[share - first] = round;
            atomic_fetch_add(&c->sum, 1);
            if (!mf_pool_finish(c->pool, end)) continue;
            c->ended++;
            mf_pool_end_phase(c->pool, end);
        }
        first = end;
    }
}

static void test_pool(void **state)
{
    (void)state;
    minfer_error err;
    int counts[] = {1, 2, 3, 8};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        for (int alone = -1; alone < counts[k] - 1; alone++) {
            pool_case c = {.alone = alone};
            assert_ok(mf_pool_create(counts[k], &c.pool, &err), &err);
            for (int run = 0; run < 20; run++) mf_pool_run(c.pool, pool_body, &c);
            assert_int_equal(c.sum, 20 * (ROUNDS / 2) * (1 + SHARES));
            assert_int_equal(c.bad, 0);
            mf_pool_free(c.pool);
        }
    mf_pool *p;
    assert_fails(mf_pool_create(0, &p, &err), MINFER_ERR_ARG, &err, "0 is not in 1..");
    assert_true(mf_cpu_count() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_is_one_line),
        cmocka_unit_test(test_memory_refuses_overflow),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_half),
        cmocka_unit_test(test_strmap),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
