/* Templates made to hurt: deep nesting, endless recursion, exploding strings, quadratic searches. Each ends
 * soon, with an error that says which limit it met, and never with an overflown stack. */
#include "template/render_json.h"

#include "base/clock.h"

#include <pthread.h>

enum { MANY = 100000 };

static char *repeated(const char *before, const char *part, size_t times, const char *middle,
                      const char *close, const char *after)
{
    mf_buf b = {0};
    assert_true(mf_buf_str(&b, before));
    for (size_t i = 0; i < times; i++) assert_true(mf_buf_str(&b, part));
    assert_true(mf_buf_str(&b, middle));
    for (size_t i = 0; i < times; i++) assert_true(mf_buf_str(&b, close));
    assert_true(mf_buf_str(&b, after));
    return b.data;
}

static void test_deep_nesting_is_a_syntax_error(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *middle, *close, *after;
    } cases[] = {
        {"{{ ", "(", "1", ")", " }}"},
        {"{{ ", "[", "1", "]", " }}"},
        {"{{ ", "{1:", "1", "}", " }}"},
        {"{{ ", "-", "1", "", " }}"},
        {"{{ ", "not ", "1", "", " }}"},
        {"{{ ", "1 if 1 else ", "1", "", " }}"},
        {"{{ ", "f(", "1", ")", " }}"},
        {"{{ ", "x[", "1", "]", " }}"},
        {"{{ x", ".a", "", "", " }}"},
        {"{{ x", "[0]", "", "", " }}"},
        {"{{ x", "()", "", "", " }}"},
        {"{{ x", "|e", "", "", " }}"},
        {"{{ x", "|d(1", "", ")", " }}"},
        {"{{ 1", " + 1", "", "", " }}"},
        {"{{ 1", " ** 1", "", "", " }}"},
        {"{{ 1", " and 1", "", "", " }}"},
        {"{{ x", " if 1", "", "", " }}"},
        {"{{ x is in ", "(", "1", ")", " }}"},
        {"", "{% if 1 %}", "", "{% endif %}", ""},
        {"", "{% for i in x %}", "", "{% endfor %}", ""},
        {"", "{% with %}", "", "{% endwith %}", ""},
        {"", "{% filter e %}", "", "{% endfilter %}", ""},
        {"", "{% set x %}", "", "{% endset %}", ""},
        {"", "{% macro m() %}", "", "{% endmacro %}", ""},
        {"", "{% call m() %}", "", "{% endcall %}", ""},
        {"", "{% generation %}", "", "{% endgeneration %}", ""},
        {"{% set ", "(", "a", ",)", " = 1 %}"},
        {"{{ ", "(", "", "", ""},
        {"", "{% if 1 %}", "", "", ""},
    };
    static const size_t times[] = {1000, MANY / 4, MANY};
    for (size_t k = 0; k < 3 * sizeof cases / sizeof cases[0]; k++) {
        size_t i = k / 3, n = times[k % 3];
        if (n * (strlen(cases[i].part) + strlen(cases[i].close)) > (1 << 20) - 100) continue;
        char *src = repeated(cases[i].before, cases[i].part, n, cases[i].middle, cases[i].close,
                             cases[i].after);
        mf_template *t;
        minfer_error err = {0};
        minfer_status st = mf_template_parse(src, strlen(src), &t, &err);
        if (st != MINFER_ERR_FORMAT) print_error("%zu times %s%s...\n", n, cases[i].before, cases[i].part);
        assert_fails(st, MINFER_ERR_FORMAT, &err, "line 1, column ");
        mf_free(src);
    }
}

/* Long, but not deep. */
static void test_long_templates_are_fine(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *middle;
    } cases[] = {
        {"{{ [", "1,", "]|length }}"},
        {"{{ (1", " ~ 1", ")|length }}"},
        {"{% if 0 %}", "{% elif 0 %}", "{% endif %}"},
        {"", "{{ 1 }}", ""},
        {"", "{# c #}\n", ""},
        {"{{ 'a' ", "'a' ", "}}"},
        {"{{ 1", " < 1", "}}"},
        {"", "{% set x = 1 %}", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *src = repeated(cases[i].before, cases[i].part, 20000, cases[i].middle, "", "");
        mf_buf out = {0};
        minfer_error err = {0};
        json_t *vars = json_object();
        assert_ok(render_json(src, strlen(src), vars, &out, &err), &err);
        json_decref(vars);
        mf_buf_free(&out);
        mf_free(src);
    }
}

static void test_too_long_templates_are_refused(void **state)
{
    (void)state;
    mf_template *t;
    minfer_error err = {0};
    char *src = mf_calloc(1, ((size_t)1 << 20) + 1);
    memset(src, 'a', ((size_t)1 << 20) + 1);
    assert_fails(mf_template_parse(src, ((size_t)1 << 20) + 1, &t, &err), MINFER_ERR_LIMIT, &err,
                 "1048577 bytes");
    mf_free(src);
}

/* clang-format off */
static const char *const wild[] = {
    /* recursion */
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(x) %}{% call m(x) %}{{ caller() }}{% endcall %}{% endmacro %}{{ m(1) }}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% macro m(x=m()) %}{% endmacro %}{{ m() }}",
    "{% set l = [] %}{% for i in range(5000) %}{% set l = [l] %}{% endfor %}{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = {'a': ns.l} %}{% endfor %}{{ ns.l|tojson }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = {'a': ns.l} %}{% endfor %}{{ ns.l|pprint }}",
    "{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(5000) %}{% set a.l = [a.l] %}{% set b.l = [b.l] %}{% endfor %}{{ a.l == b.l }}",
    "{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(5000) %}{% set a.l = [a.l] %}{% set b.l = [b.l] %}{% endfor %}{{ a.l < b.l }}",
    "{% set a = namespace(l=()) %}{% for i in range(5000) %}{% set a.l = (a.l,) %}{% endfor %}{{ {a.l: 1} }}",
    "{% set a = [] %}{% set b = [] %}{% set _ = a.append(b) %}{% set _ = b.append(a) %}{{ a == b }}",
    "{% set ns = namespace(g=[1]) %}{% for i in range(3000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}{{ ns.g|list }}",
    /* memory and output */
    "{{ 'a' * 10**9 }}",
    "{{ [1] * 10**9 }}",
    "{{ 'a'.center(10**12) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ 'a'|indent(10**10) }}",
    "{{ 'x'.zfill(10**15) }}",
    "{{ 'x'.ljust(10**18) }}",
    "{{ ('a' * 1000).replace('', 'b' * 10**6) }}",
    "{{ 'a\tb'.expandtabs(10**10) }}",
    "{{ '{:0{w}}'.format(1, w=10**10) }}",
    "{{ [1]|batch(10**12, 'x')|list }}",
    "{{ [1]|tojson(indent=10**11) }}",
    "{{ [1]|slice(10**12)|list }}",
    "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ ns.s }}",
    "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
    "{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}",
    "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
    "{% macro m() %}{% for i in range(100000) %}{{ 'x' * 10000 }}{% endfor %}{% endmacro %}{{ m()|length }}",
    "{% set ns = namespace(d={}) %}{% for i in range(100000) %}{% for j in range(1000) %}{% set _ = ns.d.update({i * 1000 + j: 1}) %}{% endfor %}{% endfor %}",
    /* time */
    "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
    "{% set s = 'a' * 10**6 %}{{ s.rfind('a' * 500000 ~ 'b') }}{% for i in range(100000) %}{{ s.rfind('b' ~ 'a' * 500000) }}{% endfor %}",
    "{% set s = 'a' * 10**7 %}{% for i in range(100000) %}{{ s.find('b') }}{% endfor %}",
    "{% set s = 'é' * 10**6 %}{% for i in range(100000) %}{{ s[i] }}{% endfor %}{% for i in range(100000) %}{{ s[-1] }}{% endfor %}",
    "{% set s = 'a' * 10**6 %}{% for i in range(100000) %}{{ s == s ~ '' }}{% endfor %}",
    "{% set l = range(100000)|list %}{% for i in range(100000) %}{{ -1 in l }}{% endfor %}",
    "{% set s = 'Σ' * 10**5 %}{% for i in range(1000) %}{{ s.lower()|length }}{% endfor %}",
    "{% set s = 'a' * 10**6 %}{{ s.strip('b' * 10**6) }}{{ ('ab' * 10**5).strip('b' * 10**5 ~ 'a') }}{% for i in range(100000) %}{{ s.strip('a') }}{% endfor %}",
    "{% set l = range(100000)|list %}{% for i in range(100000) %}{% set _ = l.insert(0, 1) %}{% endfor %}",
    "{% set s = ' -' * 10**5 %}{% for i in range(10000) %}{{ s|wordwrap(5)|length }}{% endfor %}",
    "{{ ('(' * 10**6 ~ '%s') % 1 * 1000 }}{{ '%(' ~ '(' * 10**6 }}{{ ('%(' ~ '(' * 10**6) % {} }}",
};
/* clang-format on */

static void test_running_wild_is_stopped(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        json_t *vars = json_object();
        int64_t start = mf_clock_ns();
        minfer_status st = render_json(wild[i], strlen(wild[i]), vars, &out, &err);
        double seconds = (double)(mf_clock_ns() - start) * 1e-9;
        if (st == MINFER_OK || seconds > 20) print_error("%.1f s: %.120s\n", seconds, wild[i]);
        assert_true(st == MINFER_ERR_LIMIT || st == MINFER_ERR_FORMAT);
        assert_true(seconds < 20);
        json_decref(vars);
        mf_buf_free(&out);
    }
}

/* A thread's stack can be small: 512 KiB on some systems. Sanitizers make frames several times as large. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK = 8 << 20 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { STACK = 8 << 20 };
#else
enum { STACK = 512 << 10 };
#endif
#else
enum { STACK = 512 << 10 };
#endif

/* clang-format off */
static const char *const deep[] = {
    "{% macro m(a) %}{{ [[{'k': (1|d(m(1)), 'x' ~ m(2) ~ 'y')}]] }}{% endmacro %}{{ m(0) }}",
    "{% macro m(a) %}{{ x|default(m(1))|replace('a', m(2)) }}{% endmacro %}{{ m(0) }}",
    "{% macro m(a) %}{{ -m(1) if not (1 < m(2)|length < 3) and m(3) else 1 }}{% endmacro %}{{ m(0) }}",
    "{% macro m(a, b=1, *c) %}{% endmacro %}",
    "{% macro m(a, b) %}{{ m(*[1], **{'b': m(2, b=3)}) }}{% endmacro %}{{ m(0, 1) }}",
    "{% macro m(a) %}{{ [3, 2, 1].sort(key=m) }}{% endmacro %}{{ m(0) }}",
    "{% macro m(a) %}{% if 1 %}{% for i in [1] if m(2) %}{% with q = m(1) %}{% filter upper %}{% set t %}{{ m(1) }}{% endset %}{% endfilter %}{% endwith %}{% endfor %}{% endif %}{% endmacro %}{{ m(0) }}",
    "{% macro m(a) %}{% call(x) m(1) %}{{ caller(x) }}{{ m(2) }}{% endcall %}{{ caller(1) }}{% endmacro %}{% call(x) m(0) %}{% endcall %}",
    "{% macro m(a) %}{% generation %}{% if 0 %}{% elif m(1) %}{% endif %}{% endgeneration %}{% endmacro %}{{ m(0) }}",
    "{% macro m(a) %}{{ '%s %s' % (m(1), 2) }}{{ '{:{}}'.format(m(1), 5) }}{{ m(1)[m(2):m(3)] }}{{ m(1) is eq(m(2)) }}{% endmacro %}{{ m(0) }}",
    "{% for i in [1] recursive %}{% for j in [1] if 1 %}{{ loop.index }}{% endfor %}{{ 'a' ~ loop([1])|upper }}{% endfor %}",
    "{% set ns = namespace(g=[1]) %}{% for i in range(3000) %}{% set ns.g = ns.g|map('default', 1)|select('defined')|unique|batch(1)|map('first') %}{% endfor %}{{ ns.g|list }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(3000) %}{% set ns.l = [{'a': (ns.l, 1)}] %}{% endfor %}{{ ns.l }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(3000) %}{% set ns.l = [{'a': (ns.l, 1)}] %}{% endfor %}{{ ns.l|tojson(indent=1, sort_keys=true) }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [{'a': (ns.l, 1)}] %}{% endfor %}{{ ns.l|pprint }}{{ [ns.l, ns.l]|sort }}{{ ns.l == ns.l|list }}{{ 1 / 0 }}",
};
/* clang-format on */

static void *run_deep(void *arg)
{
    size_t *wrong = arg;
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        json_t *vars = json_object();
        *wrong += render_json(deep[i], strlen(deep[i]), vars, &out, &err) == MINFER_OK;
        json_decref(vars);
        mf_buf_free(&out);
    }
    return NULL;
}

static void test_depth_fits_in_a_small_stack(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_attr_t attr;
    size_t wrong = 0;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, run_deep, &wrong), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    assert_int_equal(wrong, 0);
}

static void test_ranges_are_bounded(void **state)
{
    (void)state;
    static const char *const cases[] = {"{{ range(10**9) }}",
                                        "{{ range(-9223372036854775807, 9223372036854775807) }}",
                                        "{{ range(100001)|list }}"};
    for (size_t i = 0; i < 3; i++) {
        mf_buf out = {0};
        minfer_error err = {0};
        json_t *vars = json_object();
        assert_fails(render_json(cases[i], strlen(cases[i]), vars, &out, &err), MINFER_ERR_FORMAT, &err,
                     "OverflowError: Range too big");
        json_decref(vars);
        mf_buf_free(&out);
    }
}

static void test_deep_json_is_refused(void **state)
{
    (void)state;
    static const size_t depths[] = {1500, MANY};
    for (size_t i = 0; i < 2; i++) {
        char *json = repeated("", "[", depths[i], "", "]", "");
        mf_template *t;
        minfer_error err = {0};
        mf_buf out = {0};
        assert_ok(mf_template_parse("{{ messages }}", 14, &t, &err), &err);
        minfer_status st = mf_template_render(t, &(mf_template_input){.messages = json}, NULL, &out, &err);
        assert_true(st == MINFER_ERR_LIMIT || st == MINFER_ERR_ARG);
        assert_non_null(strstr(err.message, "messages: "));
        mf_template_free(t);
        mf_buf_free(&out);
        mf_free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep_nesting_is_a_syntax_error), cmocka_unit_test(test_long_templates_are_fine),
        cmocka_unit_test(test_too_long_templates_are_refused), cmocka_unit_test(test_running_wild_is_stopped),
        cmocka_unit_test(test_depth_fits_in_a_small_stack),    cmocka_unit_test(test_ranges_are_bounded),
        cmocka_unit_test(test_deep_json_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
