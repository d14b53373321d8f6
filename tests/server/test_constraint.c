/* server: the grammar made out of response_format, tools and thoughts: which answers it takes. */
#include "parts.h"

#include "grammar/common.h"

#include <jansson.h>
#include <stdlib.h>

#define TOOLS ",\"tools\":" TWO_TOOLS
#define ADD   "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n</tool_call>"
#define NOW   "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"
#define SCHEMA                                                                                         \
    ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":\"object\"," \
    "\"properties\":{\"tag\":{\"enum\":[\"x\",\"y\"]}},\"required\":[\"tag\"]}}}"
#define STRICT_TOOL                                                                                 \
    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"say \\\"hi\\\"\",\"strict\":true," \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/"                \
    "n\"}},\"required\":[\"n\"],"                                                                   \
    "\"$defs\":{\"n\":{\"type\":\"integer\"}}}}}]"

static const struct sample {
    const char *fields;
    srv_thinking thinking;
    const char *text;
    bool taken;
} samples[] = {
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER, ADD, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER, ADD "\n" NOW "\n" ADD, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER, "Ok", false},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER, "", false},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER,
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>", false},
    {TOOLS ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false", SRV_THINKING_NEVER, ADD, true},
    {TOOLS ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false", SRV_THINKING_NEVER, ADD "\n" NOW,
     false},
    {TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"now\"}}", SRV_THINKING_NEVER,
     NOW, true},
    {TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"now\"}}", SRV_THINKING_NEVER,
     ADD, false},

    /* behind thoughts */
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_OPEN, "</ </thi </think>\n\n" NOW, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_OPEN, "</think>" NOW, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_OPEN, NOW, false},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_OPEN, "a<</think>" NOW, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_OPEN, "a</think>b</think>" NOW, false},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_POSSIBLE, "<think>\nhm\n</think>\n\n" NOW, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_POSSIBLE, NOW, true},
    {TOOLS ",\"tool_choice\":\"required\"", SRV_THINKING_NEVER, "<think>\n</think>" NOW, false},
    {SCHEMA, SRV_THINKING_OPEN, "so</think>\n\n{\"tag\":\"x\"}", true},
    {SCHEMA, SRV_THINKING_OPEN, "{\"tag\":\"x\"}", false},
    {SCHEMA, SRV_THINKING_NEVER, "{\"tag\":\"y\"}", true},
    {SCHEMA, SRV_THINKING_NEVER, "{\"tag\":\"z\"}", false},
    {",\"grammar\":\"root ::= [a-c]{2,3} other # \\\"x\\nother::= \\\"root\\\" | root2\\nroot2 ::= "
     "[[\\\\]\\\"]\"",
     SRV_THINKING_OPEN, "x</think>abroot", true},
    {",\"grammar\":\"root ::= [a-c]{2,3} other # \\\"x\\nother::= \\\"root\\\" | root2\\nroot2 ::= "
     "[[\\\\]\\\"]\"",
     SRV_THINKING_OPEN, "x</think>ab]", true},

    /* an answer or calls */
    {TOOLS SCHEMA, SRV_THINKING_NEVER, "{\"tag\":\"x\"}", true},
    {TOOLS SCHEMA, SRV_THINKING_NEVER, ADD "\n" NOW, true},
    {TOOLS SCHEMA, SRV_THINKING_NEVER, "Ok", false},

    /* strict tools: text goes free, calls do not */
    {STRICT_TOOL, SRV_THINKING_NEVER, "Plain <tool>, <<tool_cal text.\n", true},
    {STRICT_TOOL, SRV_THINKING_NEVER, "", true},
    {STRICT_TOOL, SRV_THINKING_NEVER,
     "a <tool_call>\n{\"name\": \"say \\\"hi\\\"\", \"arguments\": {\"n\": 5}}\n</tool_call> b", true},
    {STRICT_TOOL, SRV_THINKING_NEVER,
     "<tool_call>\n{\"name\": \"say \\\"hi\\\"\", \"arguments\": {\"n\": \"5\"}}\n</tool_call>", false},
    {STRICT_TOOL, SRV_THINKING_NEVER, "<tool_call> x", false},
    {STRICT_TOOL ",\"parallel_tool_calls\":false", SRV_THINKING_NEVER,
     "<tool_call>\n{\"name\": \"say \\\"hi\\\"\", \"arguments\": {\"n\": 5}}\n</tool_call> b", false},
};

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct sample *c = &samples[i];
        srv_request r;
        srv_error e;
        mf_buf text = {0};
        machine m;
        parse_chat(c->fields, &r);
        bool ok = srv_request_gbnf(&r, c->thinking, &text, &e);
        if (!ok) print_error("%s\n", e.message);
        assert_true(ok);
        machine_open(&m, text.data, 8);
        bool taken = machine_accepts(&m, c->text, strlen(c->text));
        if (taken != c->taken) print_error("sample %zu: %s\n%s\n", i, c->text, text.data);
        assert_int_equal(taken, c->taken);
        machine_close(&m);
        mf_buf_free(&text);
        srv_request_free(&r);
    }
}

/* What a forced grammar writes is what the splitter reads. */
static void test_forced_texts_are_calls(void **state)
{
    (void)state;
    srv_request r;
    srv_error e;
    mf_buf text = {0};
    machine m;
    mf_rng rng;
    mf_rng_seed(&rng, 5);
    parse_chat(TOOLS ",\"tool_choice\":\"required\"", &r);
    assert_true(srv_request_gbnf(&r, SRV_THINKING_NEVER, &text, &e));
    machine_open(&m, text.data, 8);
    for (int i = 0; i < 100; i++) {
        mf_buf answer = {0};
        shown out;
        if (machine_random(&m, &rng, 0.5, 4000, &answer)) {
            split(&r, SRV_THINKING_NEVER, answer.data, answer.len, 1 + below(&rng, 40), &out);
            assert_true(strncmp(out.text.data, "call 0: ", 8) == 0);
            assert_null(strstr(out.text.data, "content: "));
            mf_buf_free(&out.text);
        }
        mf_buf_free(&answer);
    }
    machine_close(&m);
    mf_buf_free(&text);
    srv_request_free(&r);
}

static void test_none(void **state)
{
    (void)state;
    srv_request r;
    srv_error e;
    minfer_grammar *g;
    parse_chat(TOOLS, &r);
    assert_true(srv_request_grammar(&r, SRV_THINKING_OPEN, &g, &e));
    assert_null(g);
    srv_request_free(&r);
}

#define FORMAT(schema)                                                                                \
    ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"t\",\"strict\":true," \
    "\"schema\":" schema "}}"
#define TOOL(parameters, more)                                                                             \
    ",\"tools\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\",\"parameters\":" parameters \
    "}}]" more

static const struct {
    const char *fields, *param, *word; /* param NULL: it is taken */
} compiled[] = {
    {FORMAT("{\"type\":\"string\",\"pattern\":\"^(?<q>a)\\\\1$\"}"), "response_format.json_schema.schema",
     "pattern"},
    {FORMAT("{\"$ref\":\"#/$defs/none\"}"), "response_format.json_schema.schema", "none"},
    {FORMAT("{\"type\":\"wat\"}"), "response_format.json_schema.schema", "wat"},
    {FORMAT("{\"$defs\":{\"l\":{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
            "l\"},"
            "{\"type\":\"null\"}]}},\"required\":[\"next\"]}},\"$ref\":\"#/$defs/l\"}"),
     NULL, NULL},
    {FORMAT("{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":100000}"), NULL,
     NULL},
    {FORMAT("{\"type\":\"object\",\"properties\":{\"a\\\"b\\\\n\":{\"type\":\"number\"}},\"required\":["
            "\"a\\\"b\\\\n\"]}"),
     NULL, NULL},
    {",\"response_format\":{\"type\":\"json_object\"}", NULL, NULL},
    {",\"grammar\":\"root ::= x\"", "grammar", "line 1, column"},
    {",\"grammar\":\"\"", "grammar", ""},
    {",\"grammar\":\"root ::= root \\\"a\\\"\"", "grammar", ""},
    {TOOL("{\"type\":\"object\",\"not\":{}}", ",\"tool_choice\":\"required\""),
     "tools[1].function.parameters", "not"},
    {TOOL("{\"type\":\"object\",\"not\":{}}",
          ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g\"}}"),
     "tools[1].function.parameters", "not"},
    {TOOL("{\"type\":\"object\",\"not\":{}}",
          ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
     NULL, NULL},
    {TOOL("{\"type\":\"object\",\"not\":{}}", ""), NULL, NULL},
    {TOOL("{\"type\":\"object\",\"not\":{}}", FORMAT("{\"type\":\"string\"}")), NULL, NULL},
};

static void test_compiling(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++) {
        for (int thinking = 0; thinking < 3; thinking++) {
            srv_request r;
            srv_error e;
            minfer_grammar *g;
            parse_chat(compiled[i].fields, &r);
            bool ok = srv_request_grammar(&r, (srv_thinking)thinking, &g, &e);
            const char *param = compiled[i].param;
            bool right = ok ? !param
                            : param && strcmp(e.param, param) == 0 && strstr(e.message, compiled[i].word);
            if (!right) print_error("case %zu: %s: %s\n", i, e.param, e.message);
            assert_true(right);
            if (!ok) assert_int_equal(e.status, 400);
            if (!ok) assert_null(g);
            minfer_grammar_free(g);
            srv_request_free(&r);
        }
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    srv_request r;
    long n = 1;
    parse_chat(TOOLS SCHEMA, &r);
    json_set_alloc_funcs(mf_malloc, mf_free);
    for (int once = 0; once < 2; once++)
        for (n = 1;; n++) {
            srv_error e;
            minfer_grammar *g;
            mf_mem_fail_at(once ? -n : n);
            bool ok = srv_request_grammar(&r, SRV_THINKING_OPEN, &g, &e);
            assert_int_equal(ok, mf_mem_fail_at(0) < n);
            if (!ok) assert_int_equal(e.status, 500);
            minfer_grammar_free(g);
            if (ok) break;
        }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 50);
    srv_request_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_forced_texts_are_calls),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_compiling),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
