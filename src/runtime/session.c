/* A session: one timeline of tokens, whose keys and values lie in the engine's cells 0, 1, 2, ... */
#include "runtime/engine.h"

#include <string.h>

struct minfer_session {
    minfer_engine *e;
    int32_t *tokens; /* [n_ctx] */
    size_t n;
};

minfer_status minfer_session_create(minfer_engine *e, minfer_session **out, minfer_error *err)
{
    *out = NULL;
    if (e->cache_busy) return mf_fail(err, MINFER_ERR_STATE, "the engine's cache belongs to another session");
    minfer_session *s = mf_calloc(1, sizeof *s);
    if (s) s->tokens = mf_calloc((size_t)e->n_ctx, sizeof *s->tokens);
    if (!s || !s->tokens) {
        mf_free(s);
        return MF_NOMEM(err);
    }
    s->e = e;
    e->cache_busy = true;
    *out = s;
    return MINFER_OK;
}

void minfer_session_free(minfer_session *s)
{
    if (!s) return;
    s->e->cache_busy = false;
    mf_free(s->tokens);
    mf_free(s);
}

static minfer_status check_ids(const minfer_session *s, const int32_t *tokens, size_t n, minfer_error *err)
{
    int32_t n_vocab = s->e->model->bound->hp.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= n_vocab)
            return mf_fail(err, MINFER_ERR_ARG, "token %d at place %zu is not in 0..%d", tokens[i], i,
                           n_vocab - 1);
    return MINFER_OK;
}

/* One chunk: tokens [at, at + n) of the session's timeline, logits of the last n_out. */
static minfer_status forward(minfer_session *s, size_t at, size_t n, float *logits, size_t n_out,
                             minfer_error *err)
{
    minfer_engine *e = s->e;
    for (size_t i = 0; i < n; i++) e->cells[i] = (int32_t)(at + i);
    mf_batch b = {(int32_t)n, (int32_t)n_out, s->tokens + at, e->cells, e->cells};
    return mf_engine_forward(e, &b, logits, err);
}

minfer_status minfer_session_feed(minfer_session *s, const int32_t *tokens, size_t n, float *logits,
                                  size_t n_logits, minfer_error *err)
{
    size_t room = (size_t)s->e->n_ctx - s->n, chunk = (size_t)s->e->n_batch, from = s->n;
    size_t n_vocab = (size_t)s->e->model->bound->hp.n_vocab;
    if (n > room)
        return mf_fail(err, MINFER_ERR_LIMIT, "%zu tokens do not fit: %zu of %d in the context are used", n,
                       s->n, s->e->n_ctx);
    if (n_logits > n || (n_logits > 0 && !logits))
        return mf_fail(err, MINFER_ERR_ARG, "%zu rows of logits from %zu tokens", n_logits, n);
    MF_TRY(check_ids(s, tokens, n, err));
    if (n) memcpy(s->tokens + from, tokens, n * sizeof *tokens);
    for (size_t done = 0; done < n;) {
        size_t take = n - done < chunk ? n - done : chunk,
               silent = n - n_logits; /* rows before `silent` are not wanted */
        size_t out = done + take > silent ? done + take - (done > silent ? done : silent) : 0;
        MF_TRY(forward(s, from + done, take, logits, out, err));
        if (out) logits += out * n_vocab;
        done += take;
    }
    s->n += n;
    return MINFER_OK;
}

minfer_engine *mf_session_engine(const minfer_session *s)
{
    return s->e;
}
size_t minfer_session_length(const minfer_session *s)
{
    return s->n;
}
const int32_t *minfer_session_tokens(const minfer_session *s)
{
    return s->tokens;
}

minfer_status minfer_session_rollback(minfer_session *s, size_t n, minfer_error *err)
{
    if (n > s->n) return mf_fail(err, MINFER_ERR_ARG, "rollback to %zu of %zu tokens", n, s->n);
    s->n = n;
    return MINFER_OK;
}
