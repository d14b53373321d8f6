/* Replies of chat completions and completions, as they come about. */
#include "server/reply.h"

#include "base/rng.h"
#include "server/json_out.h"
#include "server/splitter.h"
#include "server/token_out.h"

#include <string.h>

enum { ID_LETTERS = 24 };
typedef char random_id[ID_LETTERS + 1];

/* One choice. For whole replies texts pile up here; for streams they leave at once. */
typedef struct choice {
    srv_reply *reply;
    size_t index;
    srv_splitter split;
    srv_token_out tokens;
    mf_buf content, reasoning;
    mf_buf calls; /* JSON of the tool calls, the last one's arguments still open */
    mf_buf *out;  /* of the running call */
    const char *finish;
} choice;

struct srv_reply {
    const srv_request *r;
    mf_buf head; /* {"id":...,"model":..., */
    mf_rng rng;
    choice *choices;
    size_t n;
};

static void make_id(mf_rng *rng, random_id id)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int i = 0; i < ID_LETTERS; i++) id[i] = letters[(size_t)(mf_rng_f64(rng) * (sizeof letters - 1))];
    id[ID_LETTERS] = 0;
}

size_t srv_reply_choices(const srv_request *r)
{
    return (r->endpoint == SRV_COMPLETIONS ? r->n_prompts : 1) * (size_t)r->n;
}

static bool put_head(srv_reply *p, const srv_reply_info *i)
{
    bool chat = p->r->endpoint == SRV_CHAT;
    const char *object = !chat          ? "text_completion"
                         : p->r->stream ? "chat.completion.chunk"
                                        : "chat.completion";
    random_id id;
    make_id(&p->rng, id);
    return mf_buf_printf(&p->head, "{\"id\":\"%s-%s\",\"object\":\"%s\",\"created\":%lld,\"model\":",
                         chat ? "chatcmpl" : "cmpl", id, object, (long long)i->created) &&
           srv_put_string(&p->head, i->model) && mf_buf_char(&p->head, ',');
}

srv_reply *srv_reply_create(const srv_request *r, const srv_reply_info *i)
{
    srv_reply *p = mf_calloc(1, sizeof *p);
    if (!p) return NULL;
    p->r = r;
    p->n = srv_reply_choices(r);
    p->choices = mf_calloc(p->n, sizeof *p->choices);
    mf_rng_seed(&p->rng, i->nonce);
    if (p->choices && put_head(p, i)) return p;
    srv_reply_free(p);
    return NULL;
}

void srv_reply_free(srv_reply *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n && p->choices; i++) {
        choice *c = &p->choices[i];
        srv_splitter_free(&c->split);
        srv_token_out_free(&c->tokens);
        mf_buf_free(&c->content);
        mf_buf_free(&c->reasoning);
        mf_buf_free(&c->calls);
    }
    mf_buf_free(&p->head);
    mf_free(p->choices);
    mf_free(p);
}

/* ---- frames of a stream */

static bool open_frame(const srv_reply *p, mf_buf *out)
{
    return mf_buf_str(out, "data: ") && mf_buf_append(out, p->head.data, p->head.len) &&
           mf_buf_str(out, "\"choices\":[");
}

static bool put_seed(const srv_reply *p, mf_buf *out)
{
    return mf_buf_printf(out, ",\"seed\":%llu", (unsigned long long)p->r->sampling.seed);
}

static bool close_frame(const srv_reply *p, mf_buf *out)
{
    return mf_buf_char(out, ']') && put_seed(p, out) &&
           mf_buf_str(out, p->r->include_usage ? ",\"usage\":null}\n\n" : "}\n\n");
}

/* From before the delta (or text) to before its value. */
static bool open_choice(choice *c)
{
    return open_frame(c->reply, c->out) &&
           mf_buf_printf(c->out, "{\"index\":%zu,\"%s\":", c->index,
                         c->reply->r->endpoint == SRV_CHAT ? "delta" : "text");
}

static bool close_choice(choice *c, const char *finish)
{
    bool ok = true;
    if (c->reply->r->logprobs)
        ok = mf_buf_str(c->out, ",\"logprobs\":") && srv_token_out_take(&c->tokens, c->out);
    ok = ok && mf_buf_str(c->out, ",\"finish_reason\":") && srv_put_string(c->out, finish);
    return ok && mf_buf_char(c->out, '}') && close_frame(c->reply, c->out);
}

/* A frame whose delta is {"name":"text"}. */
static bool text_frame(choice *c, const char *name, const char *text, size_t n)
{
    return open_choice(c) && mf_buf_printf(c->out, "{\"%s\":", name) && srv_put_text(c->out, text, n) &&
           mf_buf_char(c->out, '}') && close_choice(c, NULL);
}

/* {"id":...,"type":"function","function":{"name":...,"arguments":" , the rest to be closed by the caller. */
static bool put_call(choice *c, const char *name, size_t n, mf_buf *out)
{
    random_id id;
    make_id(&c->reply->rng, id);
    return mf_buf_printf(out, "\"id\":\"call_%s\",\"type\":\"function\",\"function\":{\"name\":", id) &&
           srv_put_text(out, name, n) && mf_buf_str(out, ",\"arguments\":\"");
}

static bool call_frame(choice *c, size_t call, const char *name, size_t n)
{
    return open_choice(c) && mf_buf_printf(c->out, "{\"tool_calls\":[{\"index\":%zu,", call) &&
           put_call(c, name, n, c->out) && mf_buf_str(c->out, "\"}}]}") && close_choice(c, NULL);
}

static bool args_frame(choice *c, size_t call, const char *text, size_t n)
{
    return open_choice(c) &&
           mf_buf_printf(c->out, "{\"tool_calls\":[{\"index\":%zu,\"function\":{\"arguments\":\"", call) &&
           srv_put_inside(c->out, text, n) && mf_buf_str(c->out, "\"}}]}") && close_choice(c, NULL);
}

/* ---- parts of an answer */

static bool stream_part(choice *c, srv_part part, size_t call, const char *text, size_t n)
{
    switch (part) {
    case SRV_REASONING: return text_frame(c, "reasoning_content", text, n);
    case SRV_CONTENT: return text_frame(c, "content", text, n);
    case SRV_CALL_START: return call_frame(c, call, text, n);
    case SRV_CALL_ARGS: return args_frame(c, call, text, n);
    }
    return false;
}

static bool collect_part(choice *c, srv_part part, size_t call, const char *text, size_t n)
{
    switch (part) {
    case SRV_REASONING: return mf_buf_append(&c->reasoning, text, n);
    case SRV_CONTENT: return mf_buf_append(&c->content, text, n);
    case SRV_CALL_START:
        return mf_buf_str(&c->calls, call ? "\"}},{" : "{") && put_call(c, text, n, &c->calls);
    case SRV_CALL_ARGS: return srv_put_inside(&c->calls, text, n);
    }
    return false;
}

static bool take_part(void *user, srv_part part, size_t call, const char *text, size_t n)
{
    choice *c = user;
    return c->reply->r->stream ? stream_part(c, part, call, text, n) : collect_part(c, part, call, text, n);
}

/* Completions have neither thoughts nor calls. */
static bool take_text(choice *c, const char *text, size_t n)
{
    if (!n) return true;
    if (!c->reply->r->stream) return mf_buf_append(&c->content, text, n);
    return open_choice(c) && srv_put_text(c->out, text, n) && close_choice(c, NULL);
}

/* ---- the calls of reply.h */

bool srv_reply_begin(srv_reply *p, size_t index, srv_thinking thinking, const char *prompt, size_t n_prompt,
                     mf_buf *out)
{
    choice *c = &p->choices[index];
    *c = (choice){.reply = p, .index = index, .out = out};
    c->tokens.chat = p->r->endpoint == SRV_CHAT;
    if (!c->tokens.chat) {
        if (prompt) c->tokens.offset = srv_count_starts(prompt, n_prompt);
        return !prompt || take_text(c, prompt, n_prompt);
    }
    bool ok = !p->r->stream ||
              (open_choice(c) && mf_buf_str(out, "{\"role\":\"assistant\",\"content\":\"\"}") &&
               close_choice(c, NULL));
    srv_splitter_init(&c->split, p->r, thinking, take_part, c);
    return ok && !c->split.failed;
}

bool srv_reply_text(srv_reply *p, size_t index, const char *text, size_t n, const srv_token *token,
                    bool *done, mf_buf *out)
{
    choice *c = &p->choices[index];
    c->out = out;
    *done = false;
    if (token && p->r->logprobs && !srv_token_out_add(&c->tokens, token)) return false;
    if (p->r->endpoint == SRV_COMPLETIONS) return take_text(c, text, n);
    bool ok = srv_splitter_push(&c->split, text, n);
    *done = c->split.done;
    return ok;
}

bool srv_reply_finish(srv_reply *p, size_t index, srv_finish why, mf_buf *out)
{
    choice *c = &p->choices[index];
    c->out = out;
    if (p->r->endpoint == SRV_CHAT && !srv_splitter_finish(&c->split)) return false;
    c->finish = why == SRV_FINISH_LENGTH ? "length" : c->split.n_calls ? "tool_calls" : "stop";
    if (!p->r->stream) return true;
    return open_choice(c) && mf_buf_str(out, p->r->endpoint == SRV_CHAT ? "{}" : "\"\"") &&
           close_choice(c, c->finish);
}

static bool put_message(const choice *c, mf_buf *out)
{
    bool ok = mf_buf_str(out, "\"message\":{\"role\":\"assistant\",\"content\":") &&
              srv_put_text(out,
                           !c->content.len && c->calls.len ? NULL
                           : c->content.len                ? c->content.data
                                                           : "",
                           c->content.len) &&
              mf_buf_str(out, ",\"refusal\":null");
    if (c->reasoning.len)
        ok = ok && mf_buf_str(out, ",\"reasoning_content\":") &&
             srv_put_text(out, c->reasoning.data, c->reasoning.len);
    if (c->calls.len)
        ok = ok && mf_buf_str(out, ",\"tool_calls\":[") && mf_buf_append(out, c->calls.data, c->calls.len) &&
             mf_buf_str(out, "\"}}]");
    return ok && mf_buf_char(out, '}');
}

static bool put_choice(choice *c, mf_buf *out)
{
    bool ok = mf_buf_printf(out, "%s{\"index\":%zu,", c->index ? "," : "", c->index);
    if (c->reply->r->endpoint == SRV_CHAT)
        ok = ok && put_message(c, out);
    else
        ok = ok && mf_buf_str(out, "\"text\":") &&
             srv_put_text(out, c->content.len ? c->content.data : "", c->content.len);
    return ok && mf_buf_str(out, ",\"logprobs\":") && srv_token_out_take(&c->tokens, out) &&
           mf_buf_str(out, ",\"finish_reason\":") && srv_put_string(out, c->finish) && mf_buf_char(out, '}');
}

static bool put_usage(const srv_usage *u, mf_buf *out)
{
    return mf_buf_printf(out,
                         "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu,"
                         "\"prompt_tokens_details\":{\"cached_tokens\":%zu}}",
                         u->n_prompt, u->n_generated, u->n_prompt + u->n_generated, u->n_cached);
}

static bool end_stream(const srv_reply *p, const srv_usage *u, mf_buf *out)
{
    if (p->r->include_usage && !(open_frame(p, out) && mf_buf_str(out, "],") && put_usage(u, out) &&
                                 put_seed(p, out) && mf_buf_str(out, "}\n\n")))
        return false;
    return mf_buf_str(out, "data: [DONE]\n\n");
}

bool srv_reply_end(srv_reply *p, const srv_usage *u, mf_buf *out)
{
    if (p->r->stream) return end_stream(p, u, out);
    bool ok = mf_buf_append(out, p->head.data, p->head.len) && mf_buf_str(out, "\"choices\":[");
    for (size_t i = 0; i < p->n && ok; i++) ok = put_choice(&p->choices[i], out);
    return ok && mf_buf_str(out, "],") && put_usage(u, out) && put_seed(p, out) && mf_buf_char(out, '}');
}
