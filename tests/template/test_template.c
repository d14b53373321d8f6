/* The template interface: inputs, places and classes of errors, limits, memory, threads, and where the
 * language deliberately differs from Jinja's sandbox (the rest is in test_golden.c). */
#include "template/render_json.h"

#include "base/pool.h"

#include <stdatomic.h>
#include <time.h>

static mf_template *parse_ok(const char *src)
{
    mf_template *t;
    minfer_error err = {0};
    assert_ok(mf_template_parse(src, strlen(src), &t, &err), &err);
    return t;
}

static minfer_status render_src(const char *src, const mf_template_input *in,
                                const mf_template_limits *limits, mf_buf *out, minfer_error *err)
{
    mf_template *t = parse_ok(src);
    minfer_status st = mf_template_render(t, in, limits, out, err);
    mf_template_free(t);
    return st;
}

static void assert_renders(const char *src, const char *kwargs, const char *wanted)
{
    mf_buf out = {0};
    minfer_error err = {0};
    mf_template_input in = {.messages = "[]", .kwargs = kwargs, .now = TEST_NOW};
    assert_ok(render_src(src, &in, NULL, &out, &err), &err);
    assert_string_equal(out.data ? out.data : "", wanted);
    mf_buf_free(&out);
}

static void assert_render_fails(const char *src, const char *kwargs, minfer_status code, const char *words)
{
    mf_buf out = {0};
    minfer_error err = {0};
    mf_template_input in = {.messages = "[]", .kwargs = kwargs, .now = TEST_NOW};
    assert_fails(render_src(src, &in, NULL, &out, &err), code, &err, words);
    assert_int_equal(out.len, 0);
    mf_buf_free(&out);
}

static void test_syntax_errors_name_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *src, *message;
        minfer_status code;
    } cases[] = {
        {"{{ 1 + }}", "line 1, column 8: unexpected 'end of print statement'", MINFER_ERR_FORMAT},
        {"a\nb {{ x|nofilter }}", "line 2, column 8: No filter named 'nofilter'.", MINFER_ERR_FORMAT},
        {"é{{ x is notest }}", "line 1, column 7: No test named 'notest'.", MINFER_ERR_FORMAT},
        {"\n\n{% if x %}",
         "line 3, column 11: unexpected end of template: the block 'if' of line 3 waits for 'endif'",
         MINFER_ERR_FORMAT},
        {"{% for i in x %}{% endif %}",
         "line 1, column 20: Encountered unknown tag 'endif'; the innermost block", MINFER_ERR_FORMAT},
        {"{% do x %}", "line 1, column 4: Encountered unknown tag 'do'", MINFER_ERR_FORMAT},
        {"{{ 'abc }}", "line 1, column 4: a string does not end", MINFER_ERR_FORMAT},
        {"x\r\n  {{ (1] }}", "line 2, column 8: unexpected ']', expected ')'", MINFER_ERR_FORMAT},
        {"{{ 99999999999999999999 }}", "line 1, column 4: an integer does not fit in 64 bits",
         MINFER_ERR_FORMAT},
        {"{{ '\\ud83d\\ude00' }}", "line 1, column 4: surrogates are not allowed", MINFER_ERR_FORMAT},
        {"{{ '\\N{DASH}' }}", "named characters", MINFER_ERR_FORMAT},
        {"{% break %}", "line 1, column 4: 'break' outside a loop", MINFER_ERR_FORMAT},
        {"{# a", "line 1, column 3: Missing end of comment tag", MINFER_ERR_FORMAT},
        {"\xff", "not valid UTF-8", MINFER_ERR_FORMAT},
        {"{% include 'a' %}", "line 1, column 4: the tag 'include' is not supported", MINFER_ERR_UNSUPPORTED},
        {"{% extends 'a' %}", "'extends' is not supported", MINFER_ERR_UNSUPPORTED},
        {"{% block a %}{% endblock %}", "'block' is not supported", MINFER_ERR_UNSUPPORTED},
        {"{% import 'a' as b %}", "'import' is not supported", MINFER_ERR_UNSUPPORTED},
        {"{% from 'a' import b %}", "'from' is not supported", MINFER_ERR_UNSUPPORTED},
        {"{% autoescape true %}{% endautoescape %}", "'autoescape' is not supported", MINFER_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_template *t;
        minfer_error err = {0};
        minfer_status st = mf_template_parse(cases[i].src, strlen(cases[i].src), &t, &err);
        assert_fails(st, cases[i].code, &err, cases[i].message);
        assert_null(t);
        assert_int_equal(mf_template_parse(cases[i].src, strlen(cases[i].src), &t, NULL), cases[i].code);
    }
}

static void test_errors_while_rendering(void **state)
{
    (void)state;
    assert_render_fails("ab\n{{ x.y.z }}", NULL, MINFER_ERR_FORMAT,
                        "line 2, column 5: UndefinedError: 'x' is undefined");
    assert_render_fails("{{ d.y.z }}", "{\"d\":{}}", MINFER_ERR_FORMAT,
                        "line 1, column 7: UndefinedError: 'dict object' has no attribute 'y'");
    assert_render_fails("a{{ 1 + 'a' }}", NULL, MINFER_ERR_FORMAT,
                        "line 1, column 7: TypeError: unsupported operand");
    assert_render_fails("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}{{ m() }}", NULL, MINFER_ERR_FORMAT,
                        "line 2, column 6: ZeroDivisionError: division by zero");
    assert_render_fails("{{ 9223372036854775807 + 1 }}", NULL, MINFER_ERR_LIMIT, "does not fit in 64 bits");
    assert_render_fails("{{ 2 ** 63 }}", NULL, MINFER_ERR_LIMIT, "does not fit in 64 bits");
    assert_render_fails("{{ '99999999999999999999'|int }}", NULL, MINFER_ERR_LIMIT,
                        "does not fit in 64 bits");
    assert_render_fails("{{ (-8) ** 0.5 }}", NULL, MINFER_ERR_UNSUPPORTED, "complex");
    assert_render_fails("{{ [1]|random }}", NULL, MINFER_ERR_UNSUPPORTED, "'random' is not available");
}

/* The message stands alone, as a client is to see it. */
static void test_raise_exception(void **state)
{
    (void)state;
    minfer_error err = {0};
    mf_buf out = {0};
    mf_template_input in = {.messages = "[]"};
    assert_true(mf_buf_str(&out, "kept"));
    assert_int_equal(
        render_src("text{{ raise_exception('Roles must \\'alternate\\'\\n!') }}", &in, NULL, &out, &err),
        MINFER_ERR_ARG);
    assert_string_equal(err.message, "Roles must 'alternate'?!");
    assert_string_equal(out.data, "kept");
    assert_int_equal(render_src("more", &in, NULL, &out, &err), MINFER_OK);
    assert_string_equal(out.data, "keptmore");
    mf_buf_free(&out);
}

static void test_inputs(void **state)
{
    (void)state;
    static const struct {
        mf_template_input in;
        const char *words;
    } bad[] = {
        {{.messages = NULL}, "messages: expected an array, got NoneType"},
        {{.messages = "{}"}, "messages: expected an array, got dict"},
        {{.messages = "[1,"}, "messages: unexpected token near end of file at line 1, column 4"},
        {{.messages = "[1] 2"}, "messages: end of file expected"},
        {{.messages = "[\"\\ud800\"]"}, "messages: half of a surrogate pair"},
        {{.messages = "[18446744073709551616]"}, "messages: an integer beyond 64 bits"},
        {{.messages = "[\"\xff\"]"}, "messages: "},
        {{.messages = "[]", .tools = "{}"}, "tools: expected an array, got dict"},
        {{.messages = "[]", .kwargs = "[]"}, "kwargs: expected an object, got list"},
        {{.messages = "[]", .special_tokens = "5"}, "special_tokens: expected an object, got int"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        assert_fails(render_src("x", &bad[i].in, NULL, &out, &err), MINFER_ERR_ARG, &err, bad[i].words);
        mf_buf_free(&out);
    }
    mf_buf out = {0};
    minfer_error err = {0};
    mf_template_input in = {.messages = "[{\"b\":1,\"a\":2,\"b\":3}]",
                            .tools = "null",
                            .kwargs = "{\"bos_token\":\"K\",\"messages\":5}",
                            .special_tokens = "{\"bos_token\":\"S\",\"eos_token\":\"E\"}"};
    assert_ok(render_src("{{ bos_token }}{{ eos_token }}{{ messages }}{{ tools }}{{ documents }}{{ "
                         "add_generation_prompt }}",
                         &in, NULL, &out, &err),
              &err);
    assert_string_equal(out.data, "KE[{'b': 3, 'a': 2}]NoneNoneFalse");
    mf_buf_free(&out);
}

static void test_nul_bytes_are_text(void **state)
{
    (void)state;
    mf_buf out = {0};
    minfer_error err = {0};
    mf_template_input in = {.messages = "[{\"content\":\"a\\u0000b\"}]"};
    assert_ok(render_src("{{ messages[0].content }}{{ messages[0].content|length }}", &in, NULL, &out, &err),
              &err);
    assert_int_equal(out.len, 4);
    assert_memory_equal(out.data, "a\0b3", 4);
    mf_buf_free(&out);
}

static void test_integers_are_exact(void **state)
{
    (void)state;
    assert_renders("{{ n }} {{ m }} {{ n - 1 }} {{ n|tojson }} {{ n == f }}",
                   "{\"n\":9223372036854775807,\"m\":-9223372036854775808,\"f\":9223372036854775807.0}",
                   "9223372036854775807 -9223372036854775808 9223372036854775806 9223372036854775807 False");
}

/* transformers refuses these; here a template may change what belongs to its own rendering. */
static void test_values_may_be_changed(void **state)
{
    (void)state;
    assert_renders("{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ l.pop(0) }}{{ l }}", NULL,
                   "[1, 2]1[2]");
    assert_renders("{% set _ = d.update({'b': 2}) %}{{ d }}{{ d.pop('a') }}", "{\"d\":{\"a\":1}}",
                   "{'a': 1, 'b': 2}1");
    mf_template *t = parse_ok("{% set _ = messages.append(1) %}{{ messages }}");
    for (int i = 0; i < 2; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        assert_ok(mf_template_render(t, &(mf_template_input){.messages = "[]"}, NULL, &out, &err), &err);
        assert_string_equal(out.data, "[1]");
        mf_buf_free(&out);
    }
    mf_template_free(t);
}

static void test_extensions(void **state)
{
    (void)state;
    assert_renders("{{ ('{\"a\": [1, null]}'|from_json).a[1] }}", NULL, "None");
    assert_render_fails("{{ '{'|from_json }}", NULL, MINFER_ERR_FORMAT, "ValueError: from_json:");
    assert_renders("{{ '<a>'|e }}{{ '<a>'|e|e }}{{ '<a>'|safe|e }}{{ '<a>'|safe }}{{ '<' }}", NULL,
                   "&lt;a&gt;&lt;a&gt;<a><a><");
}

/* The current time where none is given. */
static void test_now(void **state)
{
    (void)state;
    assert_renders("{{ strftime_now('%d %B %Y %H:%M') }}", NULL, "14 November 2023 22:13");
    mf_buf out = {0};
    minfer_error err = {0};
    assert_ok(render_src("{{ strftime_now('%Y')|int >= 2024 }}", &(mf_template_input){.messages = "[]"}, NULL,
                         &out, &err),
              &err);
    assert_string_equal(out.data, "True");
    mf_buf_free(&out);
}

/* The same as C's strftime says of many moments, in every directive that does not depend on a zone. */
static void test_strftime_agrees_with_c(void **state)
{
    (void)state;
    static char format[] = /* not const, so that the compiler does not forbid GNU's directives */
        "%a %A %b %B %C %d %D %e %F %g %G %h %H %I %j %k %l %m %M %n %p %P %r %R %S %t %T %u %U %V "
        "%w %W %x %X %y %Y %% %-d %_m %^a %c";
    char src[300], wanted[600];
    snprintf(src, sizeof src, "{{ strftime_now('%s') }}", format);
    mf_template *t = parse_ok(src);
    mf_rng rng;
    mf_rng_seed(&rng, 1);
    for (int i = 0; i < 3000; i++) {
        time_t now = i < 1500 ? (time_t)86400 * i * 20 + 1
                              : (time_t)(mf_rng_u64(&rng) % 8000000000u) - 2000000000;
        struct tm tm;
        mf_buf out = {0};
        minfer_error err = {0};
        strftime(wanted, sizeof wanted, format, gmtime_r(&now, &tm));
        assert_ok(mf_template_render(t, &(mf_template_input){.messages = "[]", .now = now}, NULL, &out, &err),
                  &err);
        assert_string_equal(out.data, wanted);
        mf_buf_free(&out);
    }
    mf_template_free(t);
}

static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *src, *words;
        mf_template_limits limits;
    } cases[] = {
        {"{% for i in range(1000) %}{% endfor %}", "more than 500 steps", {.steps = 500}},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "deeper than 50 levels", {.depth = 50}},
        {"{{ 'a' * 101 }}", "writes more than 100 bytes", {.output_bytes = 100}},
        {"{{ 'a' * 2000 }}", "more than 1500 bytes of values", {.memory_bytes = 1500}},
    };
    mf_template_input in = {.messages = "[]"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        assert_fails(render_src(cases[i].src, &in, &cases[i].limits, &out, &err), MINFER_ERR_LIMIT, &err,
                     cases[i].words);
        mf_buf_free(&out);
    }
    mf_buf out = {0};
    minfer_error err = {0};
    assert_ok(render_src("{{ 'a' * 100 }}", &in, &(mf_template_limits){.output_bytes = 100}, &out, &err),
              &err);
    mf_buf_free(&out);
}

/* A template that uses every kind of statement and most of the machinery below it. */
static const char rich[] =
    "{% set ns = namespace(n=0, l=[]) %}{% macro m(a, b='x', c=a) %}[{{ a }}{{ b }}{{ varargs }}{{ kwargs "
    "}}{{ caller() }}]{% endmacro %}"
    "{% for k, v in d|dictsort if v is not none %}{{ loop.index }}{{ k|upper }}={{ v|tojson(indent=2) }}{% "
    "set ns.n = ns.n + 1 %}"
    "{% set _ = ns.l.append(k) %}{% else %}none{% endfor %}{% call m(1, 2, 3, 4, z=5) %}body{{ ns.n }}{% "
    "endcall %}"
    "{% set t | replace('a', 'b') %}{% filter upper %}abc{% endfilter %}{% endset %}{{ t }}{% with q = [1, "
    "2, 3]|map('string')|join('-') %}{{ q }}{% endwith %}"
    "{% generation %}{{ '%s %5.2f %r' % ('a', 1.5, 'b') }}{{ '{:>8}|{a[k]}'.format('x', a={'k': 1}) }}{% "
    "endgeneration %}"
    "{{ people|groupby('age')|map(attribute='list')|map('first')|map(attribute='name')|list }}{{ "
    "people|sort(attribute='age,name')|tojson }}"
    "{{ 'ünï ß'|title }}{{ 'a b c'.split()[::-1] }}{{ 'the quick brown'|wordwrap(6) }}{{ people|pprint }}{{ "
    "(missing.x is defined) if false else strftime_now('%Y') }}"
    "{% for n in tree recursive %}{{ n.n }}{{ loop(n.kids) }}{% endfor %}{{ [3,1,2]|sort|batch(2)|list }}{{ "
    "'<b>'|e|striptags }}{{ dict(a=1)|xmlattr }}{{ range(5)|slice(2)|list }}";
static const char rich_vars[] = "{\"d\":{\"b\":[1,{\"x\":null}],\"a\":\"t\",\"z\":null},\"people\":[{"
                                "\"name\":\"Zoe\",\"age\":3},{\"name\":\"Al\",\"age\":3}],"
                                "\"tree\":[{\"n\":1,\"kids\":[{\"n\":2,\"kids\":[]}]}]}";

static minfer_status parse_and_render_rich(mf_buf *out, minfer_error *err)
{
    mf_template *t;
    mf_template_input in = {.messages = "[{\"role\":\"user\"}]", .kwargs = rich_vars, .now = TEST_NOW};
    MF_TRY(mf_template_parse(rich, strlen(rich), &t, err));
    minfer_status st = mf_template_render(t, &in, NULL, out, err);
    mf_template_free(t);
    return st;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    mf_buf whole = {0};
    minfer_error err = {0};
    mf_mem_fail_at(0);
    assert_ok(parse_and_render_rich(&whole, &err), &err);
    long n = mf_mem_fail_at(0);
    assert_true(n > 10);
    for (long k = -n; k <= n; k++) {
        mf_buf out = {0};
        if (k == 0) continue;
        mf_mem_fail_at(k);
        minfer_status st = parse_and_render_rich(&out, &err);
        mf_mem_fail_at(0);
        assert_int_equal(st, MINFER_ERR_NOMEM);
        assert_int_equal(out.len, 0);
        mf_buf_free(&out);
    }
    mf_buf_free(&whole);
}

/* With little memory allowed each step may be the one that is refused. */
static void test_every_memory_limit_is_an_error(void **state)
{
    (void)state;
    mf_template *t = parse_ok(rich);
    mf_template_input in = {.messages = "[{\"role\":\"user\"}]", .kwargs = rich_vars, .now = TEST_NOW};
    minfer_status st = MINFER_ERR_LIMIT;
    size_t limited = 0;
    for (size_t bytes = 16; st == MINFER_ERR_LIMIT && bytes < 1 << 22; bytes += 48, limited++) {
        mf_buf out = {0};
        minfer_error err = {0};
        st = mf_template_render(t, &in, &(mf_template_limits){.memory_bytes = bytes}, &out, &err);
        if (st != MINFER_OK) assert_int_equal(out.len, 0);
        mf_buf_free(&out);
    }
    assert_int_equal(st, MINFER_OK);
    assert_true(limited > 100);
    mf_template_free(t);
}

typedef struct shared {
    const mf_template *t;
    const char *wanted;
    atomic_int wrong;
} shared;

static void render_in_thread(void *arg, int ith, int nth)
{
    (void)ith, (void)nth;
    shared *s = arg;
    mf_template_input in = {.messages = "[{\"role\":\"user\"}]", .kwargs = rich_vars, .now = TEST_NOW};
    for (int i = 0; i < 50; i++) {
        mf_buf out = {0};
        minfer_error err;
        if (mf_template_render(s->t, &in, NULL, &out, &err) != MINFER_OK || strcmp(out.data, s->wanted) != 0)
            atomic_fetch_add(&s->wrong, 1);
        mf_buf_free(&out);
    }
}

static void test_one_template_many_threads(void **state)
{
    (void)state;
    mf_buf out = {0};
    minfer_error err = {0};
    mf_pool *pool;
    assert_ok(parse_and_render_rich(&out, &err), &err);
    mf_template *t = parse_ok(rich);
    shared s = {.t = t, .wanted = out.data};
    assert_ok(mf_pool_create(4, &pool, &err), &err);
    mf_pool_run(pool, render_in_thread, &s);
    mf_pool_free(pool);
    assert_int_equal(atomic_load(&s.wrong), 0);
    mf_template_free(t);
    mf_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax_errors_name_the_place),
        cmocka_unit_test(test_errors_while_rendering),
        cmocka_unit_test(test_raise_exception),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_nul_bytes_are_text),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_values_may_be_changed),
        cmocka_unit_test(test_extensions),
        cmocka_unit_test(test_now),
        cmocka_unit_test(test_strftime_agrees_with_c),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_every_memory_limit_is_an_error),
        cmocka_unit_test(test_one_template_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
