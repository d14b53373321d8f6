/* Answers taken apart: what comes out does not depend on how the text came, nothing is made up, and every
 * frame of the stream is JSON. The first byte has the request's choices, the second how the text is cut. */
#include "server/reply.h"
#include "server/splitter.h"

#include "base/rng.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came out: each part begins with a byte of its kind, and goes on while the kind is the same. */
typedef struct seen {
    mf_buf text;
    int last;
    size_t n_calls, n_bytes;
} seen;

static bool see(void *user, srv_part part, size_t call, const char *text, size_t n)
{
    seen *s = user;
    if (part != SRV_CALL_START && !n) abort();
    if (part == SRV_CALL_START && call != s->n_calls++) abort();
    if (part == SRV_CALL_ARGS && call + 1 != s->n_calls) abort();
    if (((int)part != s->last || part == SRV_CALL_START) && !mf_buf_char(&s->text, (char)part)) abort();
    if (!mf_buf_append(&s->text, text, n)) abort();
    s->last = (int)part;
    if (part == SRV_CONTENT || part == SRV_REASONING) s->n_bytes += n;
    return true;
}

static void parse(uint8_t flags, srv_request *r)
{
    static const char *const choices[] = {"none", "auto", "required", "auto"};
    const srv_context c = {.n_vocab = 1000};
    srv_error e;
    mf_buf body = {0};
    bool ok = mf_buf_printf(
        &body,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"stream\":true,\"parallel_tool_calls\":%s,"
        "\"reasoning_format\":\"%s\",\"tool_choice\":\"%s\",\"tools\":[{\"function\":{\"name\":\"add\"}},"
        "{\"function\":{\"name\":\"n\"}}]}",
        flags & 4 ? "false" : "true", flags & 8 ? "none" : "auto", choices[flags & 3]);
    if (!ok || !srv_request_parse(SRV_CHAT, body.data, body.len, &c, r, &e)) abort();
    mf_buf_free(&body);
}

/* Cuts the text at random places; a seed of 0 leaves it whole. */
static void split(const srv_request *r, srv_thinking thinking, const char *text, size_t n, uint8_t seed,
                  seen *out)
{
    srv_splitter s;
    mf_rng rng;
    *out = (seen){.last = -1};
    mf_rng_seed(&rng, seed);
    srv_splitter_init(&s, r, thinking, see, out);
    while (n) {
        size_t most = seed % 4 ? 7 * (size_t)(seed % 4) : n;
        size_t k = seed ? 1 + (size_t)(mf_rng_f64(&rng) * (double)most) : n;
        if (k > n) k = n;
        if (!srv_splitter_push(&s, text, k)) abort();
        text += k;
        n -= k;
    }
    if (!srv_splitter_finish(&s)) abort();
    if (s.n_calls != out->n_calls || (s.done && r->parallel_tool_calls)) abort();
    srv_splitter_free(&s);
}

static void check_frames(const srv_request *r, srv_thinking thinking, const char *text, size_t n)
{
    const srv_reply_info info = {.model = "m"};
    const srv_usage usage = {0};
    mf_buf out = {0};
    bool done;
    srv_reply *p = srv_reply_create(r, &info);
    if (!p || !srv_reply_begin(p, 0, thinking, NULL, 0, &out) ||
        !srv_reply_text(p, 0, text, n, NULL, &done, &out) || !srv_reply_finish(p, 0, SRV_FINISH_STOP, &out) ||
        !srv_reply_end(p, &usage, &out))
        abort();
    char *at = out.data, *end;
    while ((end = strstr(at, "\n\n")) && end[2]) {
        json_error_t e;
        json_t *j = memcmp(at, "data: ", 6) == 0
                        ? json_loadb(at + 6, (size_t)(end - at) - 6, JSON_ALLOW_NUL, &e)
                        : NULL;
        if (!j) abort();
        json_decref(j);
        at = end + 2;
    }
    if (strcmp(at, "data: [DONE]\n\n") != 0) abort();
    srv_reply_free(p);
    mf_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    srv_request r;
    seen whole, cut;
    if (size < 2) return 0;
    srv_thinking thinking = (srv_thinking)((data[0] >> 4) % 3);
    const char *text = (const char *)data + 2;
    parse(data[0], &r);
    split(&r, thinking, text, size - 2, 0, &whole);
    split(&r, thinking, text, size - 2, data[1], &cut);
    if (whole.text.len != cut.text.len ||
        (cut.text.len && memcmp(whole.text.data, cut.text.data, cut.text.len) != 0))
        abort();
    if (whole.n_bytes > size - 2 + strlen("<think>\n")) abort();
    bool plain = r.tool_choice == SRV_TOOLS_NONE && !r.reasoning && thinking != SRV_THINKING_OPEN && size > 2;
    if (plain && (whole.text.len != size - 1 || memcmp(whole.text.data + 1, text, size - 2) != 0)) abort();
    check_frames(&r, thinking, text, size - 2);
    mf_buf_free(&whole.text);
    mf_buf_free(&cut.text);
    srv_request_free(&r);
    return 0;
}
