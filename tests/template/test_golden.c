/* Every case of tests/data/template/golden.json, which Jinja rendered (make_golden.py): the same bytes, or an
 * error of the same class. */
#include "template/render_json.h"

static json_t *load_golden(void)
{
    size_t n;
    json_error_t e;
    char *text = read_all(data_path("template/golden.json"), &n);
    json_t *golden = json_loadb(text, n, JSON_ALLOW_NUL, &e);
    mf_free(text);
    if (!golden) fail_msg("golden.json:%d: %s", e.line, e.text);
    return golden;
}

/* "line 3, column 7: TypeError: ..." -> whether the class is the wanted one. */
static bool has_class(const char *message, const char *wanted)
{
    const char *p = strstr(message, ": ");
    size_t n = strlen(wanted);
    return p && strncmp(message, "line ", 5) == 0 && strncmp(p + 2, wanted, n) == 0 && p[2 + n] == ':';
}

static bool same_error(json_t *c, bool parsed, minfer_status st, const minfer_error *err)
{
    const char *wanted = json_string_value(json_object_get(c, "error"));
    if (!wanted || st == MINFER_OK) return false;
    if (strcmp(wanted, "syntax") == 0) return !parsed && strncmp(err->message, "line ", 5) == 0;
    if (strcmp(wanted, "TemplateError") != 0)
        return st == MINFER_ERR_FORMAT && parsed && has_class(err->message, wanted);
    minfer_error same;
    mf_fail(&same, MINFER_ERR_ARG, "%s", json_string_value(json_object_get(c, "message")));
    return st == MINFER_ERR_ARG && strcmp(err->message, same.message) == 0;
}

static bool parses(const char *src, size_t n)
{
    mf_template *t;
    bool ok = mf_template_parse(src, n, &t, NULL) == MINFER_OK;
    mf_template_free(t);
    return ok;
}

/* Returns whether the case came out right, and says what is wrong if not. */
static bool check_case(json_t *c, const char *name, const char *src, size_t n, json_t *vars)
{
    mf_buf out = {0};
    minfer_error err = {0};
    minfer_status st = render_json(src, n, vars, &out, &err);
    json_t *wanted = json_object_get(c, "out");
    bool right = wanted ? st == MINFER_OK && out.len == json_string_length(wanted) &&
                              (out.len == 0 || memcmp(out.data, json_string_value(wanted), out.len) == 0)
                        : same_error(c, parses(src, n), st, &err);
    if (!right) {
        print_error("%s: %.*s\n  wanted: %s\n  got:    %s\n", name, n > 400 ? 400 : (int)n, src,
                    json_string_value(wanted ? wanted : json_object_get(c, "error")),
                    st == MINFER_OK ? (out.data ? out.data : "") : err.message);
    }
    mf_buf_free(&out);
    return right;
}

static void test_small_cases(void **state)
{
    (void)state;
    json_t *golden = load_golden(), *cases = json_object_get(golden, "cases"), *c;
    size_t i, wrong = 0;
    json_array_foreach(cases, i, c)
    {
        json_t *src = json_object_get(c, "template");
        wrong += !check_case(c, json_string_value(json_object_get(c, "group")), json_string_value(src),
                             json_string_length(src), json_object_get(c, "vars"));
    }
    print_message("%zu small cases, %zu wrong\n", json_array_size(cases), wrong);
    assert_true(json_array_size(cases) > 2000);
    assert_int_equal(wrong, 0);
    json_decref(golden);
}

/* The golden file is of the template that is there now: the script writes nothing else. */
static char *read_chat(const char *name, size_t *n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/../template/chats/%s.jinja", MF_TEST_DATA, name);
    return read_all(path, n);
}

static void test_chat_templates(void **state)
{
    (void)state;
    json_t *golden = load_golden(), *chats = json_object_get(golden, "chats"), *c;
    json_t *conversations = json_object_get(golden, "conversations");
    size_t i, wrong = 0;
    json_array_foreach(chats, i, c)
    {
        size_t n;
        const char *name = json_string_value(json_object_get(c, "chat"));
        const char *label = json_string_value(json_object_get(c, "conversation"));
        char *src = read_chat(name, &n);
        wrong += !check_case(c, name, src, n, json_object_get(conversations, label));
        mf_free(src);
    }
    print_message("%zu chat renderings, %zu wrong\n", json_array_size(chats), wrong);
    assert_true(json_array_size(chats) > 300);
    assert_int_equal(wrong, 0);
    json_decref(golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_cases),
                                       cmocka_unit_test(test_chat_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
