/* server: replies and streams: both say the same, in the shape of OpenAI's API. */
#include "parts.h"

#include "server/reply.h"
#include "server/token_out.h"

#include "base/utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#define TOOLS ",\"tools\":" TWO_TOOLS
#define CALLS                                                                                           \
    "Ok.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": \"\\\"\"}}\n</tool_call>\n" \
    "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"

static const srv_reply_info info = {.model = "made", .created = 1700000000, .nonce = 42};
static const srv_usage usage = {.n_prompt = 10, .n_generated = 5, .n_cached = 8};

/* The whole exchange of one text, byte by byte where step is 1. */
static bool tell(const srv_request *r, const char *text, size_t n, size_t step, srv_finish why, mf_buf *out)
{
    srv_reply *p = srv_reply_create(r, &info);
    bool ok = p, done = false;
    for (size_t c = 0; c < srv_reply_choices(r) && ok; c++) {
        const char *prompt = r->echo ? "said: " : NULL;
        ok = srv_reply_begin(p, c, SRV_THINKING_POSSIBLE, prompt, prompt ? 6 : 0, out);
        for (size_t i = 0; i < n && ok; i += step) {
            size_t k = n - i < step ? n - i : step;
            const srv_logprob top[2] = {{text + i, k, -0.5f}, {"\xF0\x9F", 2, -INFINITY}};
            const srv_token token = {{text + i, k, -0.5f}, top, 2};
            ok = srv_reply_text(p, c, text + i, k, r->logprobs ? &token : NULL, &done, out);
        }
        ok = ok && srv_reply_finish(p, c, why, out);
    }
    ok = ok && srv_reply_end(p, &usage, out);
    srv_reply_free(p);
    return ok;
}

static json_t *load(const char *text, size_t n)
{
    json_error_t e;
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    if (!j) print_error("%s: %.*s\n", e.text, (int)n, text);
    assert_non_null(j);
    return j;
}

/* The value at a path: names and indices, ended by NULL. */
static const json_t *at(const json_t *j, const char *path)
{
    while (*path && j) {
        size_t n = strcspn(path, ".");
        char name[40] = {0};
        memcpy(name, path, n);
        j = name[0] >= '0' && name[0] <= '9' ? json_array_get(j, (size_t)atoi(name))
                                             : json_object_get(j, name);
        path += n + (path[n] == '.');
    }
    return j;
}

static const char *text_at(const json_t *j, const char *path)
{
    return json_string_value(at(j, path));
}

/* ---- what a client makes of a stream */

typedef struct client {
    mf_buf content, reasoning, calls; /* calls: "name(args) " */
    char finish[20];
    const json_t *first; /* ids are those of the first frame */
    json_t *frames;
    size_t n_tokens;
    int open_call;
} client;

static void take_calls(client *c, const json_t *calls)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        int index = (int)json_integer_value(at(call, "index"));
        const char *name = text_at(call, "function.name"), *args = text_at(call, "function.arguments");
        assert_true(json_is_integer(at(call, "index")));
        assert_non_null(args);
        if (name) {
            assert_int_equal(index, c->open_call + 1); /* one after the other */
            assert_true(strncmp(text_at(call, "id"), "call_", 5) == 0);
            assert_string_equal(text_at(call, "type"), "function");
            assert_true(mf_buf_printf(&c->calls, "%s%s:", index ? " " : "", name));
            c->open_call = index;
        }
        assert_int_equal(index, c->open_call);
        assert_true(mf_buf_str(&c->calls, args));
    }
}

static void append(mf_buf *b, const json_t *j)
{
    if (j) assert_true(mf_buf_append(b, json_string_value(j), json_string_length(j)));
}

static void take_choice(client *c, const json_t *choice)
{
    const char *finish = text_at(choice, "finish_reason");
    assert_string_equal(c->finish, ""); /* nothing after the end */
    append(&c->content, at(choice, "delta.content"));
    append(&c->content, at(choice, "text"));
    append(&c->reasoning, at(choice, "delta.reasoning_content"));
    take_calls(c, at(choice, "delta.tool_calls"));
    c->n_tokens += json_array_size(at(choice, "logprobs.content")) +
                   json_array_size(at(choice, "logprobs.tokens"));
    if (finish) snprintf(c->finish, sizeof c->finish, "%s", finish);
}

static void take_frame(client *c, const char *line, size_t n)
{
    static const char *const same[] = {"id", "object", "created", "model"};
    json_t *j = load(line, n);
    json_array_append_new(c->frames, j);
    c->first = json_array_get(c->frames, 0);
    for (int i = 0; i < 4; i++) assert_true(json_equal(at(j, same[i]), at(c->first, same[i])));
    for (size_t i = 0; i < json_array_size(at(j, "choices")); i++)
        take_choice(c, json_array_get(at(j, "choices"), i));
}

/* Reads a stream strictly: lines of data, an empty line after each, [DONE] at the end. */
static void read_stream(client *c, const mf_buf *stream)
{
    const char *s = stream->data, *end = s + stream->len;
    *c = (client){.frames = json_array(), .open_call = -1};
    assert_true(mf_utf8_valid(stream->data, stream->len));
    assert_true(mf_buf_str(&c->content, "") && mf_buf_str(&c->reasoning, "") && mf_buf_str(&c->calls, ""));
    for (;;) {
        const char *line_end = memchr(s, '\n', (size_t)(end - s));
        assert_non_null(line_end);
        assert_true(strncmp(s, "data: ", 6) == 0 && line_end[1] == '\n');
        if (strncmp(s, "data: [DONE]\n", 13) == 0) break;
        take_frame(c, s + 6, (size_t)(line_end - s) - 6);
        s = line_end + 2;
    }
    assert_true(s + strlen("data: [DONE]\n\n") == end);
}

static void free_client(client *c)
{
    mf_buf_free(&c->content);
    mf_buf_free(&c->reasoning);
    mf_buf_free(&c->calls);
    json_decref(c->frames);
}

/* ---- streams and whole replies */

static const struct exchange {
    const char *fields, *text, *content, *reasoning, *calls,
        *finish; /* content NULL: null in whole replies */
    srv_finish why;
} exchanges[] = {
    {"", "Hi 🦊!", "Hi 🦊!", "", "", "stop", SRV_FINISH_STOP},
    {"", "Hi \"\\\n\x01\x7f", "Hi \"\\\n\x01\x7f", "", "", "length", SRV_FINISH_LENGTH},
    {"", "", "", "", "", "length", SRV_FINISH_LENGTH},
    {"", "<think>\nplan A\n</think>\n\nDone.", "Done.", "plan A", "", "stop", SRV_FINISH_STOP},
    {"", "<think>\nplan", "", "plan", "", "length", SRV_FINISH_LENGTH},
    {TOOLS, CALLS, "Ok.", "", "add:{\"a\": 1, \"b\": \"\\\"\"} now:{}", "tool_calls", SRV_FINISH_STOP},
    {TOOLS, CALLS, "Ok.", "", "add:{\"a\": 1, \"b\": \"\\\"\"} now:{}", "length", SRV_FINISH_LENGTH},
    {TOOLS, "<tool_call>{\"name\": \"now\"}</tool_call>", NULL, "", "now:{}", "tool_calls", SRV_FINISH_STOP},
    {TOOLS ",\"parallel_tool_calls\":false", CALLS, "Ok.", "", "add:{\"a\": 1, \"b\": \"\\\"\"}",
     "tool_calls", SRV_FINISH_STOP},
};

static void check_stream(const struct exchange *x, const char *more, size_t step)
{
    srv_request r;
    mf_buf fields = {0}, out = {0};
    client c;
    assert_true(mf_buf_printf(&fields, "%s,\"stream\":true%s", x->fields, more));
    parse_chat(fields.data, &r);
    assert_true(tell(&r, x->text, strlen(x->text), step, x->why, &out));
    read_stream(&c, &out);
    assert_string_equal(c.content.data, x->content ? x->content : "");
    assert_string_equal(c.reasoning.data, x->reasoning);
    assert_string_equal(c.calls.data, x->calls);
    assert_string_equal(c.finish, x->finish);
    assert_string_equal(text_at(c.first, "choices.0.delta.role"), "assistant");
    assert_string_equal(text_at(c.first, "object"), "chat.completion.chunk");
    size_t n = json_array_size(c.frames), last = n - 1 - r.include_usage;
    const json_t *end = json_array_get(c.frames, last);
    assert_non_null(text_at(end, "choices.0.finish_reason"));
    assert_int_equal(json_object_size(at(end, "choices.0.delta")), 0);
    if (r.include_usage) {
        const json_t *u = json_array_get(c.frames, n - 1);
        assert_true(json_is_array(at(u, "choices")) && json_array_size(at(u, "choices")) == 0);
        assert_int_equal(json_integer_value(at(u, "usage.total_tokens")), 15);
        assert_true(json_is_null(at(end, "usage")));
    } else {
        assert_null(at(end, "usage"));
    }
    free_client(&c);
    mf_buf_free(&fields);
    mf_buf_free(&out);
    srv_request_free(&r);
}

static void test_streams(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++)
        for (size_t step = 1; step < 200; step = step * 3 + 1) {
            size_t n = strlen(exchanges[i].text);
            if (strstr(exchanges[i].text, "🦊") && step < n) continue; /* texts come in whole characters */
            check_stream(&exchanges[i], "", step);
            check_stream(&exchanges[i], ",\"stream_options\":{\"include_usage\":true}", step);
        }
}

static void check_calls(const json_t *calls, const char *expected)
{
    mf_buf b = {0};
    assert_true(mf_buf_str(&b, ""));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        assert_true(mf_buf_printf(&b, "%s%s:%s", i ? " " : "", text_at(call, "function.name"),
                                  text_at(call, "function.arguments")));
        assert_true(strncmp(text_at(call, "id"), "call_", 5) == 0);
    }
    assert_string_equal(b.data, expected);
    mf_buf_free(&b);
}

static void test_whole_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
        const struct exchange *x = &exchanges[i];
        srv_request r;
        mf_buf out = {0};
        parse_chat(x->fields, &r);
        assert_true(tell(&r, x->text, strlen(x->text), 1000, x->why, &out));
        json_t *j = load(out.data, out.len);
        const json_t *content = at(j, "choices.0.message.content");
        assert_string_equal(text_at(j, "object"), "chat.completion");
        assert_true(strncmp(text_at(j, "id"), "chatcmpl-", 9) == 0);
        assert_string_equal(text_at(j, "model"), "made");
        assert_int_equal(json_integer_value(at(j, "created")), 1700000000);
        assert_int_equal(json_integer_value(at(j, "usage.prompt_tokens_details.cached_tokens")), 8);
        if (x->content)
            assert_string_equal(json_string_value(content), x->content);
        else
            assert_true(json_is_null(content));
        if (x->reasoning[0])
            assert_string_equal(text_at(j, "choices.0.message.reasoning_content"), x->reasoning);
        check_calls(at(j, "choices.0.message.tool_calls"), x->calls);
        assert_string_equal(text_at(j, "choices.0.finish_reason"), x->finish);
        assert_true(json_is_null(at(j, "choices.0.logprobs")));
        json_decref(j);
        mf_buf_free(&out);
        srv_request_free(&r);
    }
}

static void test_choices(void **state)
{
    (void)state;
    srv_request r;
    mf_buf out = {0};
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"],\"n\":2,\"echo\":true,\"seed\":18}", &r);
    assert_true(tell(&r, "text", 4, 1, SRV_FINISH_LENGTH, &out));
    json_t *j = load(out.data, out.len);
    assert_string_equal(text_at(j, "object"), "text_completion");
    assert_true(strncmp(text_at(j, "id"), "cmpl-", 5) == 0);
    assert_int_equal(json_array_size(at(j, "choices")), 4);
    assert_int_equal(json_integer_value(at(j, "choices.3.index")), 3);
    assert_string_equal(text_at(j, "choices.3.text"), "said: text");
    assert_string_equal(text_at(j, "choices.3.finish_reason"), "length");
    assert_int_equal(json_integer_value(at(j, "seed")), 18);
    json_decref(j);
    mf_buf_free(&out);
    srv_request_free(&r);

    client c;
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":\"a\",\"stream\":true}", &r);
    assert_true(tell(&r, "<think>x</think>", 16, 3, SRV_FINISH_STOP, &out));
    read_stream(&c, &out);
    assert_string_equal(c.content.data, "<think>x</think>"); /* completions are not taken apart */
    free_client(&c);
    mf_buf_free(&out);
    srv_request_free(&r);
}

/* ---- log-probabilities */

static void test_chat_logprobs(void **state)
{
    (void)state;
    srv_request r;
    mf_buf out = {0};
    client c;
    parse_chat(TOOLS ",\"logprobs\":true,\"top_logprobs\":2", &r);
    assert_true(tell(&r, "ab", 2, 1, SRV_FINISH_STOP, &out));
    json_t *j = load(out.data, out.len);
    const json_t *second = at(j, "choices.0.logprobs.content.1");
    assert_int_equal(json_array_size(at(j, "choices.0.logprobs.content")), 2);
    assert_string_equal(text_at(second, "token"), "b");
    assert_true(json_real_value(at(second, "logprob")) == -0.5);
    assert_int_equal(json_integer_value(at(second, "bytes.0")), 'b');
    assert_string_equal(text_at(second, "top_logprobs.1.token"), "\xEF\xBF\xBD");
    assert_int_equal(json_array_size(at(second, "top_logprobs.1.bytes")), 2);
    assert_true(json_real_value(at(second, "top_logprobs.1.logprob")) == -9999);
    json_decref(j);
    mf_buf_free(&out);
    srv_request_free(&r);

    parse_chat(TOOLS ",\"logprobs\":true,\"stream\":true", &r);
    assert_true(tell(&r, CALLS, sizeof CALLS - 1, 1, SRV_FINISH_STOP, &out));
    read_stream(&c, &out);
    assert_int_equal(c.n_tokens, sizeof CALLS - 1); /* none is lost, though text was held back */
    free_client(&c);
    mf_buf_free(&out);
    srv_request_free(&r);
}

static void test_completion_logprobs(void **state)
{
    (void)state;
    srv_request r;
    mf_buf out = {0};
    parse_ok(SRV_COMPLETIONS, "{\"prompt\":\"a\",\"logprobs\":2,\"echo\":true}", &r);
    assert_true(tell(&r, "\xC3\xA9z", 3, 2, SRV_FINISH_STOP, &out));
    json_t *j = load(out.data, out.len);
    const json_t *l = at(j, "choices.0.logprobs");
    assert_string_equal(text_at(l, "tokens.0"), "é");
    assert_true(json_real_value(at(l, "token_logprobs.1")) == -0.5);
    assert_int_equal(json_integer_value(at(l, "text_offset.0")), 6); /* behind the echo */
    assert_int_equal(json_integer_value(at(l, "text_offset.1")), 7);
    assert_true(json_real_value(json_object_get(at(l, "top_logprobs.0"), "bytes:\\xf0\\x9f")) == -9999);
    json_decref(j);
    mf_buf_free(&out);
    srv_request_free(&r);
}

static void test_ranks(void **state)
{
    (void)state;
    const float logits[] = {1, 3, -INFINITY, 3, 2};
    srv_rank top[8];
    float logprob;
    size_t n = srv_logprobs(logits, 5, 0, &logprob, top, 3);
    double sum = exp(1 - 3.0) + 1 + 1 + exp(2 - 3.0);
    assert_int_equal(n, 3);
    assert_true(top[0].id == 1 && top[1].id == 3 && top[2].id == 4);
    assert_true(fabs((double)logprob - (1 - 3 - log(sum))) < 1e-6);
    assert_true(fabs((double)top[0].logprob + log(sum)) < 1e-6);
    n = srv_logprobs(logits, 5, 2, &logprob, top, 8);
    assert_int_equal(n, 5);
    assert_true(top[4].id == 2 && isinf(logprob) && isinf(top[4].logprob));
    assert_int_equal(srv_logprobs(logits, 5, 2, &logprob, NULL, 0), 0);
}

/* ---- other bodies */

static void check_body(mf_buf *b, bool ok, const char *expected)
{
    assert_true(ok);
    assert_string_equal(b->data, expected);
    json_decref(load(b->data, b->len));
    mf_buf_free(b);
}

static void test_bodies(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b\""};
    const float v[4] = {1, 0.5f, -2, 0};
    srv_request r = {.base64 = false};
    srv_error e;
    mf_buf b = {0};
    srv_refuse(&e, 400, NULL, "n", "n: \"\xff\"");
    check_body(&b, srv_error_body(&e, &b),
               "{\"error\":{\"message\":\"n: "
               "\\\"\xEF\xBF\xBD\\\"\",\"type\":\"invalid_request_error\",\"param\":\"n\","
               "\"code\":null}}");
    assert_true(srv_stream_error(&e, &b));
    assert_true(strncmp(b.data, "data: {\"error\":", 15) == 0 && strstr(b.data, "}}\n\ndata: [DONE]\n\n"));
    mf_buf_free(&b);
    check_body(&b, srv_models_body(names, 2, 5, &b),
               "{\"object\":\"list\",\"data\":[{\"id\":\"a\",\"object\":\"model\",\"created\":5,\"owned_by\":"
               "\"minfer\"},"
               "{\"id\":\"b\\\"\",\"object\":\"model\",\"created\":5,\"owned_by\":\"minfer\"}]}");
    check_body(&b, srv_embeddings_body(&r, "m", v, 2, 2, 7, &b),
               "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[1,0.5]},"
               "{\"object\":\"embedding\",\"index\":1,\"embedding\":[-2,0]}],\"model\":\"m\","
               "\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}");
    r.base64 = true;
    check_body(&b, srv_embeddings_body(&r, "m", v, 1, 4, 7, &b),
               "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,"
               "\"embedding\":\"AACAPwAAAD8AAADAAAAAAA==\"}],\"model\":\"m\","
               "\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}");
    check_body(&b, srv_text_body("a\xF0\x9F", 3, &b), "{\"content\":\"a\xEF\xBF\xBD\"}");
    check_body(&b, srv_text_body(NULL, 0, &b), "{\"content\":\"\"}");
    check_body(&b, mf_buf_str(&b, srv_nomem_body), srv_nomem_body);
    const int32_t ids[] = {1, 22};
    check_body(&b, srv_tokens_body(&r, NULL, ids, 2, &b), "{\"tokens\":[1,22]}");
    check_body(&b, srv_tokens_body(&r, NULL, ids, 0, &b), "{\"tokens\":[]}");
}

/* Ids come from the nonce alone. */
static void test_ids(void **state)
{
    (void)state;
    srv_request r;
    mf_buf a = {0}, b = {0};
    parse_chat(TOOLS, &r);
    assert_true(tell(&r, CALLS, sizeof CALLS - 1, 1, SRV_FINISH_STOP, &a));
    assert_true(tell(&r, CALLS, sizeof CALLS - 1, 1, SRV_FINISH_STOP, &b));
    assert_string_equal(a.data, b.data);
    json_t *j = load(a.data, a.len);
    assert_string_not_equal(text_at(j, "choices.0.message.tool_calls.0.id"),
                            text_at(j, "choices.0.message.tool_calls.1.id"));
    json_decref(j);
    mf_buf_free(&a);
    mf_buf_free(&b);
    srv_request_free(&r);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool stream = i & 1, once = i & 2;
        srv_request r;
        long n = 1;
        parse_chat(stream ? TOOLS ",\"stream\":true,\"logprobs\":true" : TOOLS ",\"logprobs\":true", &r);
        json_set_alloc_funcs(mf_malloc, mf_free);
        for (;; n++) {
            mf_buf out = {0};
            mf_mem_fail_at(once ? -n : n);
            bool ok = tell(&r, "<think>t</think>" CALLS, sizeof("<think>t</think>" CALLS) - 1, 1,
                           SRV_FINISH_STOP, &out);
            assert_int_equal(ok, mf_mem_fail_at(0) < n);
            mf_buf_free(&out);
            if (ok) break;
        }
        json_set_alloc_funcs(malloc, free);
        assert_true(n > 10);
        srv_request_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_whole_replies),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_chat_logprobs),
        cmocka_unit_test(test_completion_logprobs),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
