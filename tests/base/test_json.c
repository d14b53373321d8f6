/* The reader of JSON: the same trees as jansson's where memory suffices, places of what is wrong, and memory
 * that runs out at any allocation, once or from then on. */
#include "support/support.h"

#include "base/json.h"

#include <stdlib.h>

static json_t *read_text(const char *text, size_t n, unsigned flags, mf_json_error *e)
{
    json_t *j = mf_json_read(text, n, flags, e);
    assert_true(!j == (e->nomem || e->line > 0));
    return j;
}

static void check_same(const char *text, size_t n)
{
    mf_json_error e;
    json_error_t theirs;
    json_t *j = read_text(text, n, MF_JSON_ANY, &e);
    json_t *k = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &theirs);
    if (!j != !k) print_error("%.*s: %s | %s\n", (int)n, text, j ? "read" : e.text, k ? "read" : theirs.text);
    assert_true(!j == !k);
    assert_true(!j || json_equal(j, k));
    json_decref(j);
    json_decref(k);
}

static const char *const texts[] = {
    "{}",
    "[]",
    " [ ] ",
    "null",
    "true",
    "false",
    "truex",
    "nul",
    "t",
    "-",
    "-0",
    "0",
    "00",
    "01",
    "1.",
    "1.5",
    ".5",
    "+1",
    "1e5",
    "1E+5",
    "1e-5",
    "1e",
    "1e+",
    "-1.25e2",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1",
    "123456789.123456789",
    "\"\"",
    "\"a\"",
    "\"",
    "\"\\\"",
    "\"\\\"\"",
    "\"\\b\\f\\n\\r\\t\\/\\\\\"",
    "\"\\x\"",
    "\"\\u0041\"",
    "\"\\u00e9\\u20AC\"",
    "\"\\ud83e\\udd8a\"",
    "\"\\ud83e\"",
    "\"\\udd8a\"",
    "\"\\ud83e\\u0041\"",
    "\"\\ud83ex\"",
    "\"\\u00\"",
    "\"\\u00g0\"",
    "\"a\\u0000b\"",
    "{\"\\u0000\":1}",
    "\"\n\"",
    "\"\t\"",
    "\"\x7f\"",
    "\"\xff\"",
    "\"\xc0\xaf\"",
    "\"\xed\xa0\x80\"",
    "\"\xf0\x9f\xa6\x8a\"",
    "\"\xf0\x9f\xa6\"",
    "\xef\xbb\xbf{}",
    "\xff",
    "[1,2,3]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1",
    "[",
    "]",
    "[[[[]]],[{}]]",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{\"a\":}",
    "{\"a\"}",
    "{a:1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"e\"}",
    "{",
    "}",
    "{\"a\":1",
    "1 2",
    "{} x",
    "// x\n1",
    "'a'",
    "NaN",
    "Infinity",
    "",
    " ",
    "\n\n",
    "[true,false,null]",
    "[tru]",
    "[1]]",
    "{\"\":{\"\":\"\"}}",
};

static void same_as_jansson(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_same(texts[i], strlen(texts[i]));
    check_same("\"a\0b\"", 5);
    check_same("\0", 1);
    check_same("[\0]", 3);
}

/* Every prefix, every byte changed, of a text with all that JSON has. */
static void same_on_broken_texts(void **state)
{
    (void)state;
    static const char all[] = "{\"k\\u00e9y\":[1,-2.5e+3,\"\xf0\x9f\xa6\x8a "
                              "\\ud83e\\udd8a\\n\",true,false,null,{}],\"b\":{\"c\":[[]]}}";
    static const char bytes[] = "\0\n \"\\{}[],:0-.eut\x80\xf0\xff";
    char text[sizeof all];
    for (size_t n = 0; n < sizeof all; n++) check_same(all, n);
    for (size_t i = 0; i + 1 < sizeof all; i++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            memcpy(text, all, sizeof all);
            text[i] = bytes[k];
            check_same(text, sizeof all - 1);
        }
}

static void places(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, column;
        const char *what;
    } cases[] = {
        {"{\n  \"a\": }", 2, 8, "unexpected token near '}'"},
        {"This is", 1, 1, "'[' or '{' expected near 'This'"},
        {"42", 1, 1, "'[' or '{' expected near '42'"},
        {"[1,", 1, 4, "unexpected token near end of file"},
        {"[1", 1, 3, "',' or ']' expected near end of file"},
        {"{\"\xc3\xa9\": 1 2", 1, 9, "',' or '}' expected near '2'"},
        {"{\"a\":1,\n\"a\":2}", 2, 1, "the key \"a\" is there twice"},
        {"[\"\xff\"]", 1, 3, "invalid UTF-8"},
        {"[\"a", 1, 2, "a string that does not end"},
        {"[\"\\ud83e\"]", 1, 3, "half of a surrogate pair"},
        {"[1]\n\n x", 3, 2, "end of file expected near 'x'"},
        {"{\"a\\u0000\": 1}", 1, 2, "a NUL character in a key"},
        {"[99999999999999999999]", 1, 2, "an integer beyond 64 bits"},
        {"[\x01]", 1, 2, "unexpected token near byte 0x01"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mf_json_error e;
        minfer_error err;
        assert_null(read_text(cases[i].text, strlen(cases[i].text), MF_JSON_UNIQUE, &e));
        assert_string_equal(e.text, cases[i].what);
        assert_int_equal(e.line, cases[i].line);
        assert_int_equal(e.column, cases[i].column);
        assert_int_equal(mf_json_fail(&e, &err), MINFER_ERR_FORMAT);
    }
}

static void depth(void **state)
{
    (void)state;
    enum { N = MF_JSON_DEPTH };
    static char text[2 * N + 2];
    mf_json_error e;
    memset(text, '[', N + 1);
    memset(text + N + 1, ']', N + 1);
    assert_null(read_text(text, sizeof text, 0, &e));
    assert_string_equal(e.text, "brackets are too deep");
    json_t *j = read_text(text + 1, 2 * N, 0, &e);
    assert_non_null(j);
    json_decref(j);
}

/* A failure is said to be one, and what is read in spite of it is whole. */
static void memory_runs_out(void **state)
{
    (void)state;
    static const char text[] = "{\"a key that is longer than a first buffer\":[1,2.5,\"a string that is "
                               "longer, too, and has \\n in it\"],"
                               "\"b\":{\"c\":\"d\"}}";
    mf_json_error e;
    long n = 0, failed = 0;
    json_t *whole = read_text(text, sizeof text - 1, 0, &e);
    json_set_alloc_funcs(mf_malloc, mf_free);
    for (int once = 0; once < 2; once++)
        for (n = 1, failed = 1; failed; n++) {
            mf_mem_fail_at(once ? -n : n);
            json_t *j = read_text(text, sizeof text - 1, 0, &e);
            failed = mf_mem_fail_at(0) >= n;
            assert_true(j ? !failed && json_equal(j, whole) : e.nomem);
            json_decref(j);
        }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 10);
    json_decref(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth),           cmocka_unit_test(memory_runs_out),      cmocka_unit_test(places),
        cmocka_unit_test(same_as_jansson), cmocka_unit_test(same_on_broken_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
