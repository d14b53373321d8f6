/* Bytes in, whole characters out. */
#include "support/support.h"
#include "tokenizer/random_text.h"
#include "tokenizer/tokenizer.h"

#include "base/utf8.h"

#define BAD "\uFFFD"

/* Feeds bytes in chunks of the given size; what comes out before the end is valid at every step. */
static void assert_streams(const char *bytes, size_t n, size_t chunk, const char *want, size_t n_want)
{
    mf_detok d = {0};
    mf_buf out = {0};
    for (size_t i = 0; i < n; i += chunk) {
        assert_true(mf_detok_push(&d, bytes + i, n - i < chunk ? n - i : chunk, &out));
        assert_true(mf_utf8_valid(out.data, out.len));
        assert_true(d.n_held <= 3);
    }
    assert_true(mf_detok_finish(&d, &out));
    assert_int_equal(d.n_held, 0);
    assert_int_equal(out.len, n_want);
    if (n_want > 0) assert_memory_equal(out.data, want, n_want);
    mf_buf_free(&out);
}

static void test_broken_streams(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"Hi \xF0\x9F\xA6\x8A!", "Hi \U0001F98A!"},
        {"Hi \xF0\x9F", "Hi " BAD},
        {"\xF0\x9F\xA6", BAD},
        {"\x84\x84\x96", BAD BAD BAD},
        {"\xE4\xB8"
         "a",
         BAD "a"},
        {"\xE4\xE4\xB8\xAD", BAD "\u4e2d"},
        {"\xF0\x9F\x98\xF0\x9F\x98\x80", BAD "\U0001F600"},
        {"\xED\xA0\x80", BAD BAD BAD},
        {"\xC0\xAF\xFF", BAD BAD BAD},
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t chunk = 1; chunk <= 8; chunk++)
            assert_streams(rows[i][0], strlen(rows[i][0]), chunk, rows[i][1], strlen(rows[i][1]));
}

static void test_whole_characters_as_soon_as_known(void **state)
{
    (void)state;
    mf_detok d = {0};
    mf_buf out = {0};
    assert_true(mf_detok_push(&d, "a\xF0\x9F", 3, &out));
    assert_string_equal(out.data, "a");
    assert_true(mf_detok_push(&d, "\xA6", 1, &out));
    assert_string_equal(out.data, "a");
    assert_true(mf_detok_push(&d, "\x8A", 1, &out));
    assert_string_equal(out.data, "a\U0001F98A");
    assert_true(mf_detok_push(&d, "\x80", 1, &out)); /* begins nothing: told at once */
    assert_string_equal(out.data, "a\U0001F98A" BAD);
    mf_buf_free(&out);
}

static void test_random_streams(void **state)
{
    (void)state;
    mf_rng r;
    mf_buf text = {0}, want = {0};
    mf_rng_seed(&r, 5);
    for (int i = 0; i < 5000; i++) {
        random_text(&r, 30, &text);
        for (uint32_t k = random_below(&r, 4); text.len > 0 && k > 0; k--)
            text.data[random_below(&r, (uint32_t)text.len)] = (char)mf_rng_u64(&r);
        want.len = 0;
        for (size_t at = 0, n; at < text.len; at += n) {
            uint32_t c;
            n = mf_utf8_decode(text.data + at, text.len - at, &c);
            assert_true(c == MF_UTF8_BAD ? mf_buf_str(&want, BAD) : mf_buf_append(&want, text.data + at, n));
        }
        assert_streams(text.data, text.len, 1 + random_below(&r, 6), want.data, want.len);
    }
    mf_buf_free(&text);
    mf_buf_free(&want);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    for (long n = 1; n < 4; n++) {
        mf_detok d = {0};
        mf_buf out = {0};
        mf_mem_fail_at(n);
        bool ok = mf_detok_push(&d, "\xF0\x9F\xA6\x8A", 4, &out);
        for (int i = 0; i < 40; i++) ok = mf_detok_push(&d, "\xE4\xB8\xAD", 3, &out) && ok;
        mf_mem_fail_at(0);
        assert_false(ok);
        assert_true(d.n_held <= 4);
        assert_true(mf_detok_finish(&d, &out));
        mf_buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_streams),
        cmocka_unit_test(test_whole_characters_as_soon_as_known),
        cmocka_unit_test(test_random_streams),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
