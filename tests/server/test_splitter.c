/* server: answers taken apart, cut in every way. */
#include "parts.h"

#include <jansson.h>
#include <stdlib.h>

#define TOOLS     ",\"tools\":" TWO_TOOLS
#define ADD       "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}"
#define TAGGED(s) "<tool_call>\n" s "\n</tool_call>"
#define X10       "xxxxxxxxxx"
#define X100      X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X300      X100 X100 X100

static const struct splitting {
    const char *fields;
    srv_thinking thinking;
    const char *text, *shown;
} cases[] = {
    /* plain text, with and without tools */
    {"", SRV_THINKING_NEVER, "Hello\n there.\n", "content: Hello\\n there.\\n"},
    {"", SRV_THINKING_NEVER, "  Hi 🦊!", "content:   Hi 🦊!"},
    {TOOLS, SRV_THINKING_NEVER, "Hello\n there.\n", "content: Hello\\n there.\\n"},
    {TOOLS, SRV_THINKING_NEVER, "1 < 2, <tool, <tool_cal", "content: 1 < 2, <tool, <tool_cal"},
    {"", SRV_THINKING_NEVER, TAGGED(ADD), "content: <tool_call>\\n" ADD "\\n</tool_call>"},
    {TOOLS ",\"tool_choice\":\"none\"", SRV_THINKING_NEVER, TAGGED(ADD),
     "content: <tool_call>\\n" ADD "\\n</tool_call>"},
    {"", SRV_THINKING_NEVER, "", ""},
    {"", SRV_THINKING_NEVER, " \n", "content:  \\n"},

    /* thoughts */
    {"", SRV_THINKING_OPEN, "plan A</think>\n\nDone.", "reasoning: plan A\ncontent: Done."},
    {"", SRV_THINKING_POSSIBLE, "<think>\nplan A\n</think>\n\nDone.", "reasoning: plan A\ncontent: Done."},
    {"", SRV_THINKING_NEVER, "\n<think>\nplan A\n</think>\n\nDone.", "reasoning: plan A\ncontent: Done."},
    {"", SRV_THINKING_OPEN, "plan < A </thi", "reasoning: plan < A </thi"},
    {"", SRV_THINKING_OPEN, "plan\n\nB\n", "reasoning: plan\\n\\nB"},
    {"", SRV_THINKING_POSSIBLE, "<think>\n\n</think>\n\nDone.", "content: Done."},
    {"", SRV_THINKING_POSSIBLE, "<thinking", "content: <thinking"},
    {"", SRV_THINKING_POSSIBLE, "a <think>b</think>", "content: a <think>b</think>"},
    {"", SRV_THINKING_OPEN, "a</think></think>b", "reasoning: a\ncontent: </think>b"},
    {",\"reasoning_format\":\"none\"", SRV_THINKING_OPEN, "plan A\n</think>\n\nDone.",
     "content: <think>\\nplan A\\n</think>\\n\\nDone."},
    {",\"reasoning_format\":\"none\"", SRV_THINKING_POSSIBLE, "<think>\nplan A\n</think>\n\nDone.",
     "content: <think>\\nplan A\\n</think>\\n\\nDone."},
    {TOOLS, SRV_THINKING_OPEN, "maybe " TAGGED(ADD) "</think>\n\n" TAGGED(ADD),
     "reasoning: maybe <tool_call>\\n" ADD "\\n</tool_call>\ncall 0: add {\"a\": 1, \"b\": 2}"},

    /* calls */
    {TOOLS, SRV_THINKING_NEVER, "Ok.\n" TAGGED(ADD) "\n" TAGGED("{\"name\": \"now\", \"arguments\": {}}"),
     "content: Ok.\ncall 0: add {\"a\": 1, \"b\": 2}\ncall 1: now {}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED(ADD) "\nDone.\n",
     "call 0: add {\"a\": 1, \"b\": 2}\ncontent: \\nDone.\\n"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED(ADD) "\n\n", "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS ",\"parallel_tool_calls\":false", SRV_THINKING_NEVER, TAGGED(ADD) "\n" TAGGED(ADD) " more",
     "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"arguments\": {\"a\": \"</tool_call>}\"}, \"name\": \"add\"}"),
     "call 0: add {\"a\": \"</tool_call>}\"}"},
    {TOOLS, SRV_THINKING_NEVER,
     TAGGED("{\"name\": \"now\", \"parameters\": {\"x\": [1, {\"y\": null}]}, \"id\": -1.5e3}"),
     "call 0: now {\"x\": [1, {\"y\": null}]}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"now\"}"), "call 0: now {}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"n\\u006fw\", \"arguments\": null}"), "call 0: now {}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1}\"}"),
     "call 0: add {\"a\": 1}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": \"x\ny\"}}"),
     "call 0: add {\"a\": \"x\\ny\"}"}, /* a line end within a string is escaped */
    {TOOLS, SRV_THINKING_NEVER, TAGGED(ADD "\n" ADD),
     "call 0: add {\"a\": 1, \"b\": 2}\ncall 1: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED(ADD "}") "x", "call 0: add {\"a\": 1, \"b\": 2}\ncontent: x"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": 1}"),
     "call 0: add {\"a\": 1}"},
    {TOOLS, SRV_THINKING_NEVER, "<tool_call>" ADD, "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}",
     "call 0: add {\"a\": 1}"},
    {TOOLS, SRV_THINKING_NEVER, "<tool_call>" ADD "</tool_ca", "call 0: add {\"a\": 1, \"b\": 2}"},

    /* without a tag */
    {TOOLS, SRV_THINKING_NEVER, "\n" ADD "\n", "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, "{\"name\": \"bob\", \"age\": 3}",
     "content: {\"name\": \"bob\", \"age\": 3}"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n" ADD "\n```\n", "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n" ADD "\n{\"name\": \"now\"}\n```",
     "call 0: add {\"a\": 1, \"b\": 2}\ncall 1: now {}"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n" ADD "\n```\n\n```json\n{\"name\": \"now\"}\n```\nSo.",
     "call 0: add {\"a\": 1, \"b\": 2}\ncall 1: now {}\ncontent: \\nSo."},
    {TOOLS, SRV_THINKING_NEVER, ADD "\n{\"name\": \"now\"}\n",
     "call 0: add {\"a\": 1, \"b\": 2}\ncall 1: now {}"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n" ADD "\n{\"x\": 1}\n```",
     "call 0: add {\"a\": 1, \"b\": 2}\ncontent: \\n{\"x\": 1}\\n```"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n" ADD "\n```\n```js\nf()\n```",
     "call 0: add {\"a\": 1, \"b\": 2}\ncontent: \\n```js\\nf()\\n```"},
    {TOOLS, SRV_THINKING_NEVER, "```" ADD "``", "call 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, "``` \n" ADD "```\nSo.", "call 0: add {\"a\": 1, \"b\": 2}\ncontent: \\nSo."},
    {TOOLS, SRV_THINKING_NEVER, "```js\nf()\n```", "content: ```js\\nf()\\n```"},
    {TOOLS, SRV_THINKING_NEVER, "```json\n{\"x\": 1}\n```", "content: ```json\\n{\"x\": 1}\\n```"},
    {TOOLS, SRV_THINKING_NEVER, "```jso", "content: ```jso"},
    {TOOLS, SRV_THINKING_NEVER, "{\"answer\": 42}", "content: {\"answer\": 42}"},
    {TOOLS, SRV_THINKING_NEVER, "Ok " ADD, "content: Ok " ADD},
    {TOOLS ",\"response_format\":{\"type\":\"json_object\"}", SRV_THINKING_NEVER, ADD, "content: " ADD},

    /* what is no call stays text */
    {TOOLS, SRV_THINKING_NEVER, "Say `<tool_call>` to call.", "content: Say `<tool_call>` to call."},
    {TOOLS, SRV_THINKING_NEVER, "a " TAGGED("{\"name\": \"zzz\", \"arguments\": {}}") " b",
     "content: a <tool_call>\\n{\"name\": \"zzz\", \"arguments\": {}}\\n</tool_call> b"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": }}"),
     "content: <tool_call>\\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": }}\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{'name': 'add'}") TAGGED(ADD),
     "content: <tool_call>\\n{'name': 'add'}\\n</tool_call>\ncall 0: add {\"a\": 1, \"b\": 2}"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("[1]"), "content: <tool_call>\\n[1]\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{}"), "content: <tool_call>\\n{}\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": [1]}"),
     "content: <tool_call>\\n{\"name\": \"add\", \"arguments\": [1]}\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": \"it\"s}}"),
     "content: <tool_call>\\n{\"name\": \"add\", \"arguments\": {\"a\": \"it\"s}}\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": \"x}}"),
     "content: <tool_call>\\n{\"name\": \"add\", \"arguments\": {\"a\": \"x}}\\n</tool_call>"},
    {TOOLS, SRV_THINKING_NEVER, "Ok.\n<tool_call>\n{\"name\": \"add\", \"argum",
     "content: Ok.\\n<tool_call>\\n{\"name\": \"add\", \"argum"}, /* cut off */
    {TOOLS, SRV_THINKING_NEVER, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1",
     "content: <tool_call>\\n{\"name\": \"add\", \"arguments\": {\"a\": 1"},

    /* long arguments come out before they are complete, whatever follows */
    {TOOLS, SRV_THINKING_NEVER, "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"" X300,
     "call 0: add {\"a\": \"" X300},
    {TOOLS, SRV_THINKING_NEVER, TAGGED("{\"name\": \"add\", \"arguments\": {\"a\": \"" X300 "\"b\"}}") "\nOk",
     "call 0: add {\"a\": \"" X300 "\"b\"}\ncontent: \\nOk"},
    {TOOLS, SRV_THINKING_NEVER, "{\"name\": \"add\", \"arguments\": {\"a\": \"" X300 "\"b\"}} x",
     "call 0: add {\"a\": \"" X300 "\"b\"}} x"},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER,
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a", "call 0: add {\"a"},
};

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        srv_request r;
        size_t n = strlen(cases[i].text);
        parse_chat(cases[i].fields, &r);
        for (size_t step = 1; step <= n + 1; step++) {
            shown s;
            split(&r, cases[i].thinking, cases[i].text, n, step, &s);
            if (strcmp(s.text.data, cases[i].shown) != 0) print_error("case %zu in pieces of %zu\n", i, step);
            assert_string_equal(s.text.data, cases[i].shown);
            mf_buf_free(&s.text);
        }
        srv_request_free(&r);
    }
}

/* Text comes out with the byte that makes it certain. */
static void test_nothing_is_held_too_long(void **state)
{
    static const char text[] = "Ok, a  b <\n<tool_call>\n" ADD;
    static const size_t prefixes[] = {2, 4, 9, 10, 11, 12, 22}, certain[] = {2, 3, 8, 8, 10, 10, 10};
    (void)state;
    srv_request r;
    parse_chat(TOOLS, &r);
    for (size_t i = 0; i < sizeof certain / sizeof *certain; i++) {
        srv_splitter s;
        shown out = {0};
        srv_splitter_init(&s, &r, SRV_THINKING_NEVER, show_part, &out);
        assert_true(srv_splitter_push(&s, text, prefixes[i]));
        assert_int_equal(out.text.len, strlen("content: ") + certain[i]);
        srv_splitter_free(&s);
        mf_buf_free(&out.text);
    }
    srv_request_free(&r);
}

static void test_done_after_one_call(void **state)
{
    (void)state;
    srv_request r;
    srv_splitter s;
    shown out = {0};
    parse_chat(TOOLS ",\"parallel_tool_calls\":false", &r);
    srv_splitter_init(&s, &r, SRV_THINKING_NEVER, show_part, &out);
    assert_true(srv_splitter_push(&s, "<tool_call>" ADD, sizeof("<tool_call>" ADD) - 2));
    assert_false(s.done);
    assert_true(srv_splitter_push(&s, "}", 1));
    assert_true(s.done);
    assert_int_equal(s.n_calls, 1);
    srv_splitter_free(&s);
    mf_buf_free(&out.text);
    srv_request_free(&r);
}

/* A call that never ends and says nothing is given up; nothing is lost. */
static void test_endless_call(void **state)
{
    (void)state;
    srv_request r;
    shown out;
    mf_buf text = {0};
    parse_chat(TOOLS, &r);
    assert_true(mf_buf_str(&text, "<tool_call>{\"x\": \""));
    for (int i = 0; i < 70000; i++) assert_true(mf_buf_char(&text, 'y'));
    for (size_t step = 1; step < text.len; step = step * 7 + 1) {
        split(&r, SRV_THINKING_NEVER, text.data, text.len, step, &out);
        assert_int_equal(out.text.len, strlen("content: ") + text.len);
        mf_buf_free(&out.text);
    }
    mf_buf_free(&text);
    srv_request_free(&r);
}

static bool split_quietly(const srv_request *r, const char *text, size_t n)
{
    srv_splitter s;
    shown out = {0};
    srv_splitter_init(&s, r, SRV_THINKING_POSSIBLE, show_part, &out);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) ok = srv_splitter_push(&s, text + i, 1);
    ok = ok && srv_splitter_finish(&s);
    srv_splitter_free(&s);
    mf_buf_free(&out.text);
    return ok;
}

static void test_memory_runs_out(void **state)
{
    static const char text[] = "<think>a</think> b " TAGGED(ADD)
        TAGGED("{\"name\": \"now\", \"arguments\": \"{}\"}");
    (void)state;
    srv_request r;
    parse_chat(TOOLS, &r);
    json_set_alloc_funcs(mf_malloc, mf_free);
    for (int once = 0; once < 2; once++) {
        bool ok = false;
        long n = 0;
        while (!ok) {
            mf_mem_fail_at(once ? -++n : ++n);
            ok = split_quietly(&r, text, sizeof text - 1);
            assert_int_equal(ok, mf_mem_fail_at(0) < n);
        }
        assert_true(n > 5);
    }
    json_set_alloc_funcs(malloc, free);
    srv_request_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut),           cmocka_unit_test(test_nothing_is_held_too_long),
        cmocka_unit_test(test_done_after_one_call), cmocka_unit_test(test_endless_call),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
