/* Log-probabilities: out of a row of logits, and as JSON in the two forms of OpenAI's API. */
#include "server/token_out.h"

#include "base/utf8.h"
#include "server/json_out.h"

#include <math.h>
#include <string.h>

static bool put_logprob(mf_buf *b, float v)
{
    return isfinite(v) ? srv_put_float(b, v) : mf_buf_str(b, "-9999.0");
}

/* {"token":...,"logprob":...,"bytes":[...] without the closing brace. */
static bool put_object(mf_buf *b, const srv_logprob *p)
{
    bool ok = mf_buf_str(b, "{\"token\":") && srv_put_text(b, p->bytes, p->n) &&
              mf_buf_str(b, ",\"logprob\":") && put_logprob(b, p->logprob) && mf_buf_str(b, ",\"bytes\":[");
    for (size_t i = 0; i < p->n && ok; i++)
        ok = mf_buf_printf(b, "%s%u", i ? "," : "", (unsigned char)p->bytes[i]);
    return ok && mf_buf_char(b, ']');
}

static bool add_chat(srv_token_out *t, const srv_token *token)
{
    mf_buf *b = &t->tokens;
    bool ok = put_object(b, &token->drawn) && mf_buf_str(b, ",\"top_logprobs\":[");
    for (size_t i = 0; i < token->n_top && ok; i++)
        ok = (!i || mf_buf_char(b, ',')) && put_object(b, &token->top[i]) && mf_buf_char(b, '}');
    return ok && mf_buf_str(b, "]}");
}

/* Bytes that are no whole characters are written out, so that different tokens stay different. */
static bool put_name(mf_buf *b, const srv_logprob *p)
{
    if (mf_utf8_valid(p->bytes, p->n)) return srv_put_text(b, p->bytes, p->n);
    bool ok = mf_buf_str(b, "\"bytes:");
    for (size_t i = 0; i < p->n && ok; i++) ok = mf_buf_printf(b, "\\\\x%02x", (unsigned char)p->bytes[i]);
    return ok && mf_buf_char(b, '"');
}

static bool same(const srv_logprob *a, const srv_logprob *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* An object may not have one key twice: of tokens with the same text the likelier one counts. */
static bool put_top(mf_buf *b, const srv_token *token)
{
    bool ok = mf_buf_char(b, '{');
    for (size_t i = 0; i < token->n_top && ok; i++) {
        size_t k = 0;
        while (!same(&token->top[k], &token->top[i])) k++;
        if (k < i) continue;
        ok = (!i || mf_buf_char(b, ',')) && put_name(b, &token->top[i]) && mf_buf_char(b, ':') &&
             put_logprob(b, token->top[i].logprob);
    }
    return ok && mf_buf_char(b, '}');
}

size_t srv_count_starts(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

static bool add_completion(srv_token_out *t, const srv_token *token)
{
    bool ok = put_name(&t->tokens, &token->drawn) && put_logprob(&t->logprobs, token->drawn.logprob) &&
              put_top(&t->tops, token) && mf_buf_printf(&t->offsets, "%zu", t->offset);
    t->offset += srv_count_starts(token->drawn.bytes, token->drawn.n);
    return ok;
}

bool srv_token_out_add(srv_token_out *t, const srv_token *token)
{
    mf_buf *all[] = {&t->tokens, &t->logprobs, &t->tops, &t->offsets};
    for (int i = 0; i < (t->chat ? 1 : 4); i++)
        if (all[i]->len && !mf_buf_char(all[i], ',')) return false;
    return t->chat ? add_chat(t, token) : add_completion(t, token);
}

static bool put_list(mf_buf *out, const char *before, mf_buf *list)
{
    bool ok = mf_buf_str(out, before) && mf_buf_append(out, list->data, list->len) && mf_buf_char(out, ']');
    list->len = 0;
    return ok;
}

bool srv_token_out_take(srv_token_out *t, mf_buf *out)
{
    if (!t->tokens.len) return mf_buf_str(out, "null");
    if (t->chat) return put_list(out, "{\"content\":[", &t->tokens) && mf_buf_str(out, ",\"refusal\":null}");
    return put_list(out, "{\"tokens\":[", &t->tokens) &&
           put_list(out, ",\"token_logprobs\":[", &t->logprobs) &&
           put_list(out, ",\"top_logprobs\":[", &t->tops) &&
           put_list(out, ",\"text_offset\":[", &t->offsets) && mf_buf_char(out, '}');
}

void srv_token_out_free(srv_token_out *t)
{
    mf_buf_free(&t->tokens);
    mf_buf_free(&t->logprobs);
    mf_buf_free(&t->tops);
    mf_buf_free(&t->offsets);
}

/* ---- out of logits */

/* Keeps the n greatest in order; equal ones keep the order of their ids. */
static void insert(srv_rank *top, size_t *len, size_t n, int32_t id, float logit)
{
    size_t i = *len;
    if (i == n && !(logit > top[n - 1].logprob)) return;
    if (i < n)
        ++*len;
    else
        i--;
    for (; i && logit > top[i - 1].logprob; i--) top[i] = top[i - 1];
    top[i] = (srv_rank){id, logit};
}

size_t srv_logprobs(const float *logits, int32_t n_vocab, int32_t id, float *logprob, srv_rank *top, size_t n)
{
    float most = logits[0];
    double sum = 0;
    size_t len = 0;
    for (int32_t i = 1; i < n_vocab; i++)
        if (logits[i] > most) most = logits[i];
    for (int32_t i = 0; i < n_vocab; i++) sum += exp((double)logits[i] - (double)most);
    double log_sum = (double)most + log(sum);
    *logprob = (float)((double)logits[id] - log_sum);
    for (int32_t i = 0; i < n_vocab && n; i++) insert(top, &len, n, i, logits[i]);
    for (size_t i = 0; i < len; i++) top[i].logprob = (float)((double)top[i].logprob - log_sum);
    return len;
}
