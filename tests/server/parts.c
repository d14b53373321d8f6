/* Requests from texts, and what came out of a splitter as text. */
#include "parts.h"

static const char *const names[] = {"made", "made.gguf"};
const srv_context plain_context = {
    .models = names,
    .n_models = 2,
    .n_vocab = 1000,
    .n_embd = 8,
    .sampling = {.temperature = 0.75f, .top_p = 0.5f, .top_k = 7, .repeat_penalty = 1}};

void parse_ok(srv_endpoint endpoint, const char *body, srv_request *r)
{
    srv_error e;
    bool ok = srv_request_parse(endpoint, body, strlen(body), &plain_context, r, &e);
    if (!ok) print_error("%s\n%s (%s)\n", body, e.message, e.param);
    assert_true(ok);
    assert_int_equal(e.status, 0);
}

void parse_chat(const char *fields, srv_request *r)
{
    mf_buf b = {0};
    assert_true(mf_buf_printf(&b, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]%s}", fields));
    parse_ok(SRV_CHAT, b.data, r);
    mf_buf_free(&b);
}

bool show_part(void *user, srv_part part, size_t call, const char *text, size_t n)
{
    shown *s = user;
    bool joined = s->text.len &&
                  ((int)part == s->last || (part == SRV_CALL_ARGS && s->last == SRV_CALL_START)) &&
                  part != SRV_CALL_START && (part != SRV_CALL_ARGS || call == s->call);
    bool ok = true;
    if (!joined) {
        if (s->text.len) ok = mf_buf_char(&s->text, '\n');
        if (part == SRV_REASONING) ok = ok && mf_buf_str(&s->text, "reasoning: ");
        if (part == SRV_CONTENT) ok = ok && mf_buf_str(&s->text, "content: ");
        if (part == SRV_CALL_START) ok = ok && mf_buf_printf(&s->text, "call %zu: ", call);
        if (part == SRV_CALL_ARGS) ok = ok && mf_buf_str(&s->text, "arguments of nothing: ");
    } else if (s->last == SRV_CALL_START) {
        ok = mf_buf_char(&s->text, ' ');
    }
    for (size_t i = 0; i < n && ok; i++)
        ok = text[i] == '\n' ? mf_buf_str(&s->text, "\\n") : mf_buf_char(&s->text, text[i]);
    s->last = (int)part;
    s->call = call;
    return ok && (n || part == SRV_CALL_START);
}

void split(const srv_request *r, srv_thinking thinking, const char *text, size_t n, size_t step, shown *out)
{
    srv_splitter s;
    *out = (shown){0};
    assert_true(mf_buf_str(&out->text, ""));
    srv_splitter_init(&s, r, thinking, show_part, out);
    for (size_t i = 0; i < n; i += step)
        assert_true(srv_splitter_push(&s, text + i, n - i < step ? n - i : step));
    assert_true(srv_splitter_finish(&s));
    srv_splitter_free(&s);
}
