/* Templates of real models, against what transformers rendered (templates-given.json in the fixtures). Skips
 * where the fixtures or a model are absent. */
#include "template/render_json.h"

#include "base/bytes.h"
#include "base/filemap.h"

/* The chat template in a GGUF file's metadata, found by its key; freed with mf_free. */
static char *template_of(const char *path, size_t *n)
{
    static const char key[] = "tokenizer.chat_template";
    mf_filemap m;
    minfer_error err = {0};
    assert_ok(mf_filemap_open(path, &m, &err), &err);
    size_t metadata = m.size < (size_t)1 << 26 ? m.size : (size_t)1 << 26;
    const uint8_t *p = memmem(m.data, metadata, key, sizeof key - 1);
    char *text = NULL;
    if (p && p + sizeof key - 1 + 12 < m.data + metadata) {
        *n = (size_t)mf_load_u64(p + sizeof key - 1 + 4); /* after the value's type */
        text = mf_strndup((const char *)p + sizeof key - 1 + 12, *n);
    }
    mf_filemap_close(&m);
    assert_non_null(text);
    return text;
}

static char *load_template(const char *name, size_t *n)
{
    const char *path = strcmp(name, "qwen3") == 0     ? fixture_path("models/qwen3-vocab.gguf")
                       : strcmp(name, "smollm2") == 0 ? real_model("SmolLM2-135M-Instruct.Q4_1.gguf")
                                                      : real_model("Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf");
    return path && file_exists(path) ? template_of(path, n) : NULL;
}

static json_t *load_given(void)
{
    size_t n;
    if (!file_exists(fixture_path("models/templates-given.json"))) return NULL;
    char *text = read_all(fixture_path("models/templates-given.json"), &n);
    json_t *given = json_loadb(text, n, 0, NULL);
    mf_free(text);
    assert_non_null(given);
    return given;
}

static char *dump(json_t *j)
{
    return j && !json_is_null(j) ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
}

static void check_given(json_t *given, json_t *c, const mf_template *t)
{
    mf_buf out = {0};
    minfer_error err = {0};
    char *messages = dump(json_object_get(c, "messages")), *tools = dump(json_object_get(c, "tools"));
    char *kwargs = dump(json_object_get(c, "kwargs")),
         *tokens = dump(json_object_get(given, "special_tokens"));
    mf_template_input in = {
        messages, tools, kwargs, tokens, json_is_true(json_object_get(c, "add_generation_prompt")), 1};
    assert_ok(mf_template_render(t, &in, NULL, &out, &err), &err);
    assert_string_equal(out.data ? out.data : "", json_string_value(json_object_get(c, "text")));
    free(messages);
    free(tools);
    free(kwargs);
    free(tokens);
    mf_buf_free(&out);
}

static void check_model(const char *name)
{
    json_t *given = load_given(), *c;
    size_t n = 0, i, done = 0;
    minfer_error err = {0};
    mf_template *t;
    char *src = given ? load_template(name, &n) : NULL;
    if (!src) {
        json_decref(given);
        SKIP_BECAUSE("the fixtures or the model %s are not here", name);
    }
    assert_ok(mf_template_parse(src, n, &t, &err), &err);
    json_array_foreach(json_object_get(given, "cases"), i, c)
    {
        if (strcmp(json_string_value(json_object_get(c, "template")), name) != 0) continue;
        check_given(given, c, t);
        done++;
    }
    print_message("%s: %zu conversations\n", name, done);
    assert_true(done > 10);
    mf_template_free(t);
    mf_free(src);
    json_decref(given);
}

static void test_qwen25(void **state)
{
    (void)state;
    check_model("qwen2.5");
}
static void test_qwen3(void **state)
{
    (void)state;
    check_model("qwen3");
}
static void test_smollm2(void **state)
{
    (void)state;
    check_model("smollm2");
}

/* Renders Qwen3's template with one user message and these kwargs. */
static char *qwen3(const mf_template *t, const char *messages, const char *kwargs)
{
    mf_buf out = {0};
    minfer_error err = {0};
    mf_template_input in = {.messages = messages, .kwargs = kwargs, .add_generation_prompt = true, .now = 1};
    assert_ok(mf_template_render(t, &in, NULL, &out, &err), &err);
    return out.data;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Only false switches thinking off: the template asks `is false`. */
static void test_thinking_switch(void **state)
{
    (void)state;
    static const char *const on[] = {"{}", "{\"enable_thinking\":true}", "{\"enable_thinking\":null}",
                                     "{\"enable_thinking\":0}"};
    size_t n;
    mf_template *t;
    minfer_error err = {0};
    char *src = load_template("qwen3", &n);
    if (!src) SKIP_BECAUSE("the fixtures are not here");
    assert_ok(mf_template_parse(src, n, &t, &err), &err);
    for (size_t i = 0; i < 4; i++) {
        char *text = qwen3(t, "[{\"role\":\"user\",\"content\":\"hi\"}]", on[i]);
        assert_true(ends_with(text, "<|im_start|>assistant\n"));
        mf_free(text);
    }
    char *text = qwen3(t, "[{\"role\":\"user\",\"content\":\"hi\"}]", "{\"enable_thinking\":false}");
    assert_true(ends_with(text, "<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    mf_free(text);
    mf_template_free(t);
    mf_free(src);
}

/* Arguments of tool calls as an object; a caller that has them as text parses them first. */
static void test_tool_call_in_history(void **state)
{
    (void)state;
    static const char messages[] =
        "[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
        "\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"clock\",\"arguments\":{\"zone\":\"Riga\"}}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"14:05\"}]";
    static const char wanted[] =
        "<tool_call>\n{\"name\": \"clock\", \"arguments\": {\"zone\": \"Riga\"}}\n</tool_call>";
    static const char *const models[] = {"qwen3", "qwen2.5"};
    for (size_t i = 0; i < 2; i++) {
        size_t n;
        mf_template *t;
        minfer_error err = {0};
        char *src = load_template(models[i], &n);
        if (!src) SKIP_BECAUSE("the model %s is not here", models[i]);
        assert_ok(mf_template_parse(src, n, &t, &err), &err);
        char *text = qwen3(t, messages, NULL);
        assert_non_null(strstr(text, wanted));
        assert_null(strstr(text, "\"{\\\"zone"));
        mf_free(text);
        mf_template_free(t);
        mf_free(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen25),
        cmocka_unit_test(test_qwen3),
        cmocka_unit_test(test_smollm2),
        cmocka_unit_test(test_thinking_switch),
        cmocka_unit_test(test_tool_call_in_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
