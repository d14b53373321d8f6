/* server: bodies of requests, what is taken and what is refused. */
#include "parts.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#define HI             "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define CHAT(fields)   "{" HI "," fields "}"
#define FIRST(message) "{\"messages\":[" message "]}"
#define CALL(arguments)                                                                                    \
    FIRST("{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\"," \
          "\"function\":{\"name\":\"clock\",\"arguments\":" arguments "}}]}")

static const struct refusal {
    srv_endpoint endpoint;
    const char *body, *param, *word; /* param NULL: null; word: part of the message */
    int status;                      /* 0: 400 */
} refusals[] = {
    /* the body */
    {SRV_CHAT, "", NULL, "empty", 0},
    {SRV_CHAT, " \n", NULL, "empty", 0},
    {SRV_CHAT, "{", NULL, "line 1, column 2", 0},
    {SRV_CHAT, "{\"a\":1,}", NULL, "line 1, column", 0},
    {SRV_CHAT, "[1]", NULL, "the body is an array", 0},
    {SRV_CHAT, "null", NULL, "the body is null", 0},
    {SRV_CHAT, "{\"n\":1,\"n\":2}", NULL, "there twice", 0},
    {SRV_CHAT, "{\"a\":\"\xff\"}", NULL, "column 7: invalid UTF-8", 0},
    {SRV_CHAT, "{\"a\":\"\\ud800\"}", NULL, "line 1", 0},
    {SRV_CHAT, "{\"a\":1e999}", NULL, "beyond all doubles", 0},
    {SRV_CHAT, "{} x", NULL, "line 1", 0},

    /* messages */
    {SRV_CHAT, "{}", "messages", "missing", 0},
    {SRV_CHAT, "{\"messages\":null}", "messages", "missing", 0},
    {SRV_CHAT, "{\"messages\":\"hi\"}", "messages", "a string, expected an array", 0},
    {SRV_CHAT, "{\"messages\":[]}", "messages", "empty", 0},
    {SRV_CHAT, FIRST("5"), "messages[0]", "5, expected an object", 0},
    {SRV_CHAT, FIRST("{\"content\":\"a\"}"), "messages[0].role", "missing", 0},
    {SRV_CHAT, FIRST("{\"role\":1,\"content\":\"a\"}"), "messages[0].role", "expected a string", 0},
    {SRV_CHAT, FIRST("{\"role\":\"boss\",\"content\":\"a\"}"), "messages[0].role", "'boss'", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\"}"), "messages[0].content", "missing", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\",\"content\":42}"), "messages[0].content",
     "42, expected a string, null", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":{}}"),
     "messages[1].content", "an object", 0},
    {SRV_CHAT,
     FIRST("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\"}]}"),
     "messages[0].content[1].type", "'image_url'", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\",\"content\":[\"a\"]}"), "messages[0].content[0]", "an object", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"), "messages[0].content[0].text",
     "string", 0},
    {SRV_CHAT, FIRST("{\"role\":\"user\",\"content\":\"a\",\"name\":1}"), "messages[0].name", "string", 0},
    {SRV_CHAT, FIRST("{\"role\":\"assistant\"}"), "messages[0].content", "missing", 0},
    {SRV_CHAT, FIRST("{\"role\":\"assistant\",\"tool_calls\":{}}"), "messages[0].tool_calls", "array", 0},
    {SRV_CHAT, FIRST("{\"role\":\"assistant\",\"tool_calls\":[{}]}"), "messages[0].tool_calls[0].function",
     "missing", 0},
    {SRV_CHAT, FIRST("{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{}}]}"),
     "messages[0].tool_calls[0].function.name", "missing", 0},
    {SRV_CHAT, CALL("\"{zone:\""), "messages[0].tool_calls[0].function.arguments",
     "expected JSON of an object", 0},
    {SRV_CHAT, CALL("\"\\\"text\\\"\""), "messages[0].tool_calls[0].function.arguments", "expected JSON", 0},
    {SRV_CHAT, CALL("7"), "messages[0].tool_calls[0].function.arguments", "7", 0},

    /* tools */
    {SRV_CHAT, CHAT("\"tools\":{}"), "tools", "array", 0},
    {SRV_CHAT, CHAT("\"tools\":[1]"), "tools[0]", "object", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"type\":\"search\"}]"), "tools[0].type", "'function'", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"type\":\"function\"}]"), "tools[0].function", "missing", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"function\":{\"name\":\"\"}}]"), "tools[0].function.name", "1 to", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"function\":{\"name\":\"a\",\"parameters\":[]}}]"),
     "tools[0].function.parameters", "object", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"function\":{\"name\":\"a\",\"parameters\":{\"type\":\"array\"}}}]"),
     "tools[0].function.parameters.type", "'array'", 0},
    {SRV_CHAT, CHAT("\"tools\":[{\"function\":{\"name\":\"a\"}},{\"function\":{\"name\":\"a\"}}]"),
     "tools[1].function.name", "twice", 0},
    {SRV_CHAT, CHAT("\"tool_choice\":\"required\""), "tool_choice", "without tools", 0},
    {SRV_CHAT, CHAT("\"tool_choice\":\"always\""), "tool_choice", "'always'", 0},
    {SRV_CHAT, CHAT("\"tool_choice\":1"), "tool_choice", "string or an object", 0},
    {SRV_CHAT,
     CHAT("\"tools\":" TWO_TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"zzz\"}}"),
     "tool_choice.function.name", "'zzz'", 0},
    {SRV_CHAT, CHAT("\"tools\":" TWO_TOOLS ",\"tool_choice\":{\"type\":\"custom\"}"), "tool_choice.type",
     "'function'", 0},
    {SRV_CHAT, CHAT("\"tools\":" TWO_TOOLS ",\"tool_choice\":\"required\",\"grammar\":\"root ::= x\""),
     "tool_choice", "grammar forbids", 0},
    {SRV_CHAT, CHAT("\"parallel_tool_calls\":\"no\""), "parallel_tool_calls", "boolean", 0},

    /* numbers, as docs/server.md has them */
    {SRV_CHAT, CHAT("\"temperature\":-1"), "temperature", "-1, expected a number of at least 0", 0},
    {SRV_CHAT, CHAT("\"temperature\":\"hot\""), "temperature", "a string", 0},
    {SRV_CHAT, CHAT("\"top_p\":2"), "top_p", "from 0 to 1", 0},
    {SRV_CHAT, CHAT("\"min_p\":-0.1"), "min_p", "from 0 to 1", 0},
    {SRV_CHAT, CHAT("\"repeat_penalty\":0"), "repeat_penalty", "at least", 0},
    {SRV_CHAT, CHAT("\"presence_penalty\":2.5"), "presence_penalty", "from -2 to 2", 0},
    {SRV_CHAT, CHAT("\"top_k\":1.5"), "top_k", "whole number", 0},
    {SRV_CHAT, CHAT("\"mirostat\":3"), "mirostat", "from 0 to 2", 0},
    {SRV_CHAT, CHAT("\"dry_base\":0.5"), "dry_base", "at least 1", 0},
    {SRV_CHAT, CHAT("\"seed\":\"x\""), "seed", "whole number", 0},
    {SRV_CHAT, CHAT("\"seed\":1.5"), "seed", "whole number", 0},
    {SRV_CHAT, CHAT("\"max_tokens\":-2"), "max_tokens", "at least -1", 0},
    {SRV_CHAT, CHAT("\"max_tokens\":1.5"), "max_tokens", "1.5", 0},
    {SRV_CHAT, CHAT("\"max_tokens\":\"5\""), "max_tokens", "a string", 0},
    {SRV_CHAT, CHAT("\"max_completion_tokens\":true"), "max_completion_tokens", "a boolean", 0},
    {SRV_CHAT, CHAT("\"n\":0"), "n", "from 1", 0},
    {SRV_CHAT, CHAT("\"n\":129"), "n", "to 128", 0},
    {SRV_CHAT, CHAT("\"logit_bias\":[]"), "logit_bias", "object", 0},
    {SRV_CHAT, CHAT("\"logit_bias\":{\"x\":1}"), "logit_bias", "'x' is not a token id", 0},
    {SRV_CHAT, CHAT("\"logit_bias\":{\"1000\":1}"), "logit_bias", "'1000'", 0},
    {SRV_CHAT, CHAT("\"logit_bias\":{\"-1\":1}"), "logit_bias", "'-1'", 0},
    {SRV_CHAT, CHAT("\"logit_bias\":{\"5\":101}"), "logit_bias.5", "from -100 to 100", 0},
    {SRV_CHAT, CHAT("\"logprobs\":1"), "logprobs", "boolean", 0},
    {SRV_CHAT, CHAT("\"logprobs\":true,\"top_logprobs\":21"), "top_logprobs", "from 0 to 20", 0},
    {SRV_CHAT, CHAT("\"top_logprobs\":2"), "top_logprobs", "logprobs is not true", 0},

    /* the rest of a chat */
    {SRV_CHAT, CHAT("\"stop\":5"), "stop", "string or an array", 0},
    {SRV_CHAT, CHAT("\"stop\":\"\""), "stop", "0 bytes", 0},
    {SRV_CHAT, CHAT("\"stop\":[\"a\",\"\"]"), "stop[1]", "0 bytes", 0},
    {SRV_CHAT, CHAT("\"stop\":[\"a\",1]"), "stop[1]", "string", 0},
    {SRV_CHAT, CHAT("\"stop\":\"a\\u0000\""), "stop", "NUL", 0},
    {SRV_CHAT, CHAT("\"stop\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), "stop", "17 strings", 0},
    {SRV_CHAT, CHAT("\"stream\":1"), "stream", "boolean", 0},
    {SRV_CHAT, CHAT("\"stream_options\":true"), "stream_options", "object", 0},
    {SRV_CHAT, CHAT("\"stream_options\":{\"include_usage\":1}"), "stream_options.include_usage", "boolean",
     0},
    {SRV_CHAT, CHAT("\"response_format\":\"json\""), "response_format", "object", 0},
    {SRV_CHAT, CHAT("\"response_format\":{}"), "response_format.type", "string", 0},
    {SRV_CHAT, CHAT("\"response_format\":{\"type\":\"xml\"}"), "response_format.type", "'xml'", 0},
    {SRV_CHAT, CHAT("\"response_format\":{\"type\":\"json_schema\"}"), "response_format.json_schema",
     "missing", 0},
    {SRV_CHAT, CHAT("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}"),
     "response_format.json_schema.schema", "missing", 0},
    {SRV_CHAT, CHAT("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":3}}"),
     "response_format.json_schema.schema", "object", 0},
    {SRV_CHAT, CHAT("\"response_format\":{\"type\":\"json_object\"},\"grammar\":\"root ::= x\""), "grammar",
     "together", 0},
    {SRV_CHAT, CHAT("\"grammar\":1"), "grammar", "string", 0},
    {SRV_CHAT, CHAT("\"chat_template_kwargs\":[]"), "chat_template_kwargs", "object", 0},
    {SRV_CHAT, CHAT("\"reasoning_format\":\"deep\""), "reasoning_format", "'deep'", 0},
    {SRV_CHAT, CHAT("\"model\":7"), "model", "string", 0},
    {SRV_CHAT, CHAT("\"model\":\"gpt\""), "model", "'gpt'", 404},

    /* completions */
    {SRV_COMPLETIONS, "{}", "prompt", "missing", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[]}", "prompt", "empty", 0},
    {SRV_COMPLETIONS, "{\"prompt\":5}", "prompt", "5, expected a string", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[999999999]}", "prompt[0]", "from 0 to 999", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[-1]}", "prompt[0]", "-1", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[1.5]}", "prompt[0]", "1.5", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[\"a\",5]}", "prompt[1]", "like the first", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[5,\"a\"]}", "prompt[1]", "token id", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[[1],[]]}", "prompt[1]", "empty", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[[1],[2,1000]]}", "prompt[1][1]", "1000", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[null]}", "prompt[0]", "null", 0},
    {SRV_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"],\"n\":65}", "n", "65 for each of 2", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"logprobs\":true}", "logprobs", "a boolean", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"logprobs\":21}", "logprobs", "to 20", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"echo\":1}", "echo", "boolean", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"suffix\":\"b\"}", "suffix", "not supported", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"suffix\":{}}", "suffix", "string", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"best_of\":3}", "best_of", "not supported", 0},
    {SRV_COMPLETIONS, "{\"prompt\":\"a\",\"best_of\":\"3\"}", "best_of", "a string", 0},

    /* the others */
    {SRV_EMBEDDINGS, "{}", "input", "missing", 0},
    {SRV_EMBEDDINGS, "{\"input\":[]}", "input", "empty", 0},
    {SRV_EMBEDDINGS, "{\"input\":\"a\",\"encoding_format\":\"hex\"}", "encoding_format", "'hex'", 0},
    {SRV_EMBEDDINGS, "{\"input\":\"a\",\"dimensions\":4}", "dimensions", "have 8", 0},
    {SRV_TOKENIZE, "{}", "content", "missing", 0},
    {SRV_TOKENIZE, "{\"content\":1}", "content", "string", 0},
    {SRV_TOKENIZE, "{\"content\":\"a\",\"add_special\":1}", "add_special", "boolean", 0},
    {SRV_DETOKENIZE, "{}", "tokens", "missing", 0},
    {SRV_DETOKENIZE, "{\"tokens\":[1,2000]}", "tokens[1]", "2000", 0},
    {SRV_DETOKENIZE, "{\"tokens\":\"a\"}", "tokens", "array", 0},
};

static void check_refusal(const struct refusal *c)
{
    srv_request r;
    srv_error e;
    bool ok = srv_request_parse(c->endpoint, c->body, strlen(c->body), &plain_context, &r, &e);
    bool as_told = !ok && e.status == (c->status ? c->status : 400) && strstr(e.message, c->word) &&
                   strcmp(e.param, c->param ? c->param : "") == 0;
    if (!as_told) print_error("%s\nstatus %d, param %s: %s\n", c->body, e.status, e.param, e.message);
    assert_true(as_told);
    assert_true(!c->param || strstr(e.message, c->param)); /* the message alone tells the field, too */
    assert_null(r.mem.head);
}

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) check_refusal(&refusals[i]);
}

static void test_depth(void **state)
{
    (void)state;
    for (int depth = SRV_MAX_DEPTH - 1; depth < 200000; depth = depth * 2 + 1) {
        mf_buf b = {0};
        srv_request r;
        srv_error e;
        assert_true(mf_buf_str(&b, "{\"content\":\"[[[\\\"[[\",\"x\":"));
        for (int i = 1; i < depth; i++) assert_true(mf_buf_char(&b, '['));
        for (int i = 1; i < depth; i++) assert_true(mf_buf_char(&b, ']'));
        assert_true(mf_buf_char(&b, '}'));
        bool ok = srv_request_parse(SRV_TOKENIZE, b.data, b.len, &plain_context, &r, &e);
        assert_int_equal(ok, depth <= SRV_MAX_DEPTH);
        if (!ok) assert_non_null(strstr(e.message, "more than 100 deep"));
        srv_request_free(&r);
        mf_buf_free(&b);
    }
}

/* ---- what is taken */

static void check_messages(const char *body, const char *messages)
{
    srv_request r;
    parse_ok(SRV_CHAT, body, &r);
    assert_string_equal(r.chat.messages, messages);
    assert_true(r.chat.add_generation_prompt);
    srv_request_free(&r);
}

static void test_messages(void **state)
{
    (void)state;
    static const char user[] = "[{\"role\":\"user\",\"content\":\"tell me a riddle\"}]";
    check_messages(FIRST("{\"role\":\"user\",\"content\":\"tell me a riddle\"}"), user);
    check_messages(FIRST("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"tell me a \"},"
                         "{\"type\":\"text\",\"text\":\"riddle\"}]}"),
                   user);
    check_messages(FIRST("{\"role\":\"user\",\"content\":[]}"), "[{\"role\":\"user\",\"content\":\"\"}]");
    check_messages(FIRST("{\"role\":\"user\",\"content\":null}"), "[{\"role\":\"user\",\"content\":\"\"}]");
    check_messages(FIRST("{\"role\":\"developer\",\"content\":\"x\",\"extra\":{}}"),
                   "[{\"role\":\"system\",\"content\":\"x\"}]");
    check_messages(FIRST("{\"role\":\"tool\",\"content\":\"1\"},{\"role\":\"tool\",\"content\":\"a\\u0000\","
                         "\"tool_call_id\":\"c\",\"name\":\"n\"}"),
                   "[{\"role\":\"tool\",\"content\":\"1\"},"
                   "{\"role\":\"tool\",\"content\":\"a\\u0000\",\"name\":\"n\",\"tool_call_id\":\"c\"}]");
    check_messages(FIRST("{\"role\":\"assistant\",\"content\":\"a\",\"refusal\":null,\"tool_calls\":[],"
                         "\"reasoning_content\":\"t\"}"),
                   "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"t\"}]");
}

#define CALLED(arguments)                                                                             \
    "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"type\":\"function\",\"id\":\"c1\"," \
    "\"function\":{\"name\":\"clock\",\"arguments\":" arguments "}}]}]"

static void test_arguments_become_objects(void **state)
{
    (void)state;
    check_messages(CALL("\"{\\\"zone\\\": \\\"Riga\\\"}\""), CALLED("{\"zone\":\"Riga\"}"));
    check_messages(CALL("{\"zone\":\"Riga\"}"), CALLED("{\"zone\":\"Riga\"}"));
    check_messages(CALL("\"\""), CALLED("{}"));
    check_messages(CALL("\" \\n\""), CALLED("{}"));
    check_messages(CALL("null"), CALLED("{}"));
    check_messages(CALL("\"{\\\"a\\\":1,\\\"a\\\":0.1}\""),
                   CALLED("{\"a\":0.1}")); /* a model may have said that */
}

static void test_defaults_and_null(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{" HI "}",
        CHAT("\"model\":null,\"temperature\":null,\"seed\":null,\"stop\":null,\"tools\":null,\"n\":null,"
             "\"max_tokens\":null,\"stream\":null,\"stream_options\":null,\"logit_bias\":null,\"logprobs\":"
             "null,"
             "\"response_format\":null,\"tool_choice\":null,\"grammar\":null,\"chat_template_kwargs\":null"),
        CHAT("\"metadata\":{},\"user\":\"u\",\"store\":false,\"parallel_tool_calls\":true,"
             "\"reasoning_effort\":\"low\",\"response_format\":{\"type\":\"text\"},\"model\":\"made.gguf\","
             "\"seed\":-1"),
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        srv_request r;
        parse_ok(SRV_CHAT, bodies[i], &r);
        assert_true(r.sampling.temperature == 0.75f && r.sampling.top_k == 7);
        assert_false(r.seed_given || r.stream || r.include_usage || r.logprobs || r.n_stop || r.n_tools);
        assert_int_equal(r.max_tokens, -1);
        assert_int_equal(r.n, 1);
        assert_int_equal(r.constraint, SRV_FREE);
        assert_int_equal(r.tool_choice, SRV_TOOLS_NONE);
        assert_true(r.reasoning && r.parallel_tool_calls && !r.chat.tools && !r.chat.kwargs);
        srv_request_free(&r);
    }
}

static void test_everything_given(void **state)
{
    (void)state;
    srv_request r;
    parse_chat(
        ",\"model\":\"made\",\"temperature\":0,\"top_p\":1,\"top_k\":-1,\"min_p\":0.5,\"typical_p\":0.25,"
        "\"repeat_penalty\":1.5,\"repeat_last_n\":-1,\"frequency_penalty\":-2,\"presence_penalty\":2,"
        "\"xtc_probability\":0.5,\"xtc_threshold\":0.25,\"dry_multiplier\":1,\"dry_base\":2,"
        "\"dry_allowed_length\":3,\"mirostat\":2,\"mirostat_tau\":4,\"mirostat_eta\":0.5,\"seed\":7,"
        "\"logit_bias\":{\"5\":-100,\"999\":1.5},\"max_tokens\":5,\"max_completion_tokens\":3,\"n\":2.0,"
        "\"stop\":[\"a\",\"🦊\"],\"stream\":true,\"stream_options\":{\"include_usage\":true},\"logprobs\":"
        "true,"
        "\"top_logprobs\":20,\"ignore_eos\":true,\"chat_template_kwargs\":{\"enable_thinking\":false},"
        "\"grammar\":\"root ::= \\\"a\\\"\"",
        &r);
    const minfer_sampling *s = &r.sampling;
    assert_true(s->temperature == 0 && s->top_p == 1 && s->top_k == -1 && s->min_p == 0.5f &&
                s->typical_p == 0.25f);
    assert_true(s->repeat_penalty == 1.5f && s->repeat_last_n == -1 && s->frequency_penalty == -2);
    assert_true(s->presence_penalty == 2 && s->xtc_probability == 0.5f && s->xtc_threshold == 0.25f);
    assert_true(s->dry_multiplier == 1 && s->dry_base == 2 && s->dry_allowed_length == 3 && s->mirostat == 2);
    assert_true(s->mirostat_tau == 4 && s->mirostat_eta == 0.5f && s->seed == 7 && r.seed_given);
    assert_int_equal(s->n_logit_bias, 2);
    assert_true(s->logit_bias[0].id == 5 && s->logit_bias[0].bias == -100 && s->logit_bias[1].id == 999);
    assert_int_equal(r.max_tokens, 3);
    assert_int_equal(r.n, 2);
    assert_int_equal(r.n_stop, 2);
    assert_string_equal(r.stop[1], "🦊");
    assert_true(r.stream && r.include_usage && r.logprobs && r.ignore_end);
    assert_int_equal(r.n_logprobs, 20);
    assert_string_equal(r.chat.kwargs, "{\"enable_thinking\":false}");
    assert_int_equal(r.constraint, SRV_GBNF);
    assert_string_equal(r.grammar, "root ::= \"a\"");
    srv_request_free(&r);
}

static void check_max_tokens(const char *value, int32_t expected)
{
    srv_request r;
    mf_buf b = {0};
    assert_true(mf_buf_printf(&b, ",\"max_tokens\":%s", value));
    parse_chat(b.data, &r);
    assert_int_equal(r.max_tokens, expected);
    srv_request_free(&r);
    mf_buf_free(&b);
}

static void test_max_tokens(void **state)
{
    (void)state;
    check_max_tokens("0", 0);
    check_max_tokens("1", 1);
    check_max_tokens("-1", -1);
    check_max_tokens("2147483648", INT32_MAX);
    check_max_tokens("5.0", 5);
}

static void test_tool_choices(void **state)
{
    (void)state;
    srv_request r;
    parse_chat(",\"tools\":" TWO_TOOLS, &r);
    assert_int_equal(r.tool_choice, SRV_TOOLS_AUTO);
    assert_int_equal(r.n_tools, 2);
    assert_non_null(strstr(r.chat.tools, "\"now\""));
    srv_request_free(&r);
    parse_chat(",\"tools\":" TWO_TOOLS ",\"tool_choice\":\"none\"", &r);
    assert_int_equal(r.tool_choice, SRV_TOOLS_NONE);
    assert_null(r.chat.tools);
    assert_int_equal(r.n_tools, 0);
    srv_request_free(&r);
    parse_chat(",\"tools\":" TWO_TOOLS ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false", &r);
    assert_int_equal(r.tool_choice, SRV_TOOLS_FORCED);
    assert_false(r.parallel_tool_calls);
    srv_request_free(&r);
    parse_chat(",\"tools\":" TWO_TOOLS
               ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"now\"}}",
               &r);
    assert_int_equal(r.tool_choice, SRV_TOOLS_FORCED);
    assert_int_equal(r.n_tools, 1);
    assert_string_equal(r.tools[0].name, "now");
    assert_int_equal(r.tools[0].index, 1);
    assert_non_null(strstr(r.chat.tools, "\"add\"")); /* the prompt has all of them */
    srv_request_free(&r);
}

static void test_prompts(void **state)
{
    (void)state;
    srv_request r;
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":\"a\\u0000b\",\"echo\":true,\"logprobs\":0,\"suffix\":\"\"}", &r);
    assert_int_equal(r.n_prompts, 1);
    assert_memory_equal(r.prompts[0].text, "a\0b", 4);
    assert_int_equal(r.prompts[0].n_text, 3);
    assert_true(r.echo && r.logprobs && r.n_logprobs == 0);
    srv_request_free(&r);
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":[87,88.0],\"n\":2,\"best_of\":2}", &r);
    assert_int_equal(r.n_prompts, 1);
    assert_null(r.prompts[0].text);
    assert_int_equal(r.prompts[0].n_ids, 2);
    assert_int_equal(r.prompts[0].ids[1], 88);
    srv_request_free(&r);
    parse_ok(SRV_COMPLETIONS,
             "{\"prompt\":[[87],[88,89]],\"n\":64,\"max_completion_tokens\":\"not a field here\"}", &r);
    assert_int_equal(r.n_prompts, 2);
    assert_int_equal(r.prompts[1].n_ids, 2);
    srv_request_free(&r);
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":[\"a\",\"\"]}", &r);
    assert_int_equal(r.n_prompts, 2);
    assert_string_equal(r.prompts[1].text, "");
    srv_request_free(&r);
}

static void test_other_endpoints(void **state)
{
    (void)state;
    srv_request r;
    parse_ok(SRV_EMBEDDINGS,
             "{\"input\":[\"alpha\",\"beta\"],\"encoding_format\":\"base64\",\"dimensions\":8}", &r);
    assert_int_equal(r.n_prompts, 2);
    assert_true(r.base64);
    srv_request_free(&r);
    parse_ok(SRV_TOKENIZE, "{\"content\":\"a\",\"parse_special\":true,\"with_pieces\":true}", &r);
    assert_string_equal(r.prompts[0].text, "a");
    assert_true(r.parse_special && r.with_pieces && !r.add_special);
    srv_request_free(&r);
    parse_ok(SRV_DETOKENIZE, "{\"tokens\":[1,2,3]}", &r);
    assert_int_equal(r.n_ids, 3);
    assert_true(r.special);
    srv_request_free(&r);
    parse_ok(SRV_DETOKENIZE, "{\"tokens\":[],\"special\":false}", &r);
    assert_int_equal(r.n_ids, 0);
    assert_false(r.special);
    srv_request_free(&r);
}

/* ---- errors as values */

static void test_long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    srv_error e;
    char long_text[4000];
    for (size_t i = 0; i + 4 < sizeof long_text; i += 4) memcpy(long_text + i, "🦊", 5);
    for (int pad = 0; pad < 4; pad++) {
        assert_false(srv_refuse(&e, 400, NULL, long_text + 4 - pad, "%.*s%s", pad, "abc", long_text));
        assert_true(strlen(e.message) >= sizeof e.message - 4);
        assert_int_equal((unsigned char)e.message[strlen(e.message) - 1], 0x8A);
    }
}

static void test_library_errors(void **state)
{
    (void)state;
    srv_error e;
    minfer_error err = {MINFER_ERR_ARG, "line 3: bad"};
    assert_false(srv_refuse_status(&e, "grammar", MINFER_ERR_ARG, &err));
    assert_int_equal(e.status, 400);
    assert_string_equal(e.message, "grammar: line 3: bad");
    assert_false(srv_refuse_status(&e, "grammar", MINFER_ERR_NOMEM, &err));
    assert_int_equal(e.status, 500);
    assert_string_equal(e.type, "server_error");
    assert_string_equal(e.param, "");
    assert_false(srv_refuse_context(&e, SRV_CHAT, 300, 256));
    assert_string_equal(e.code, "context_length_exceeded");
    assert_non_null(strstr(e.message, "300"));
}

static const char full_body[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},{\"role\":"
    "\"assistant\","
    "\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]}],"
    "\"tools\":" TWO_TOOLS ",\"stop\":[\"x\"],\"logit_bias\":{\"1\":1},\"chat_template_kwargs\":{\"a\":1},"
    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":\"object\"}}}}";

static void test_memory_runs_out(void **state)
{
    (void)state;
    long n = 1;
    json_set_alloc_funcs(mf_malloc, mf_free);
    for (int once = 0; once < 2; once++)
        for (n = 1;; n++) {
            srv_request r;
            srv_error e;
            mf_mem_fail_at(once ? -n : n);
            bool ok = srv_request_parse(SRV_CHAT, full_body, sizeof full_body - 1, &plain_context, &r, &e);
            bool failed = mf_mem_fail_at(0) >= n;
            srv_request_free(&r);
            assert_int_equal(ok, !failed);
            if (ok) break;
            assert_int_equal(e.status, 500);
            assert_string_equal(e.message, "out of memory");
        }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_arguments_become_objects),
        cmocka_unit_test(test_defaults_and_null),
        cmocka_unit_test(test_everything_given),
        cmocka_unit_test(test_max_tokens),
        cmocka_unit_test(test_tool_choices),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_other_endpoints),
        cmocka_unit_test(test_long_messages_are_cut_between_characters),
        cmocka_unit_test(test_library_errors),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
