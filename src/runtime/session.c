/* Sessions: making, sharing, cutting back, removing. What feeds them is batch.c. */
#include "runtime/engine.h"

#include <string.h>

minfer_status minfer_session_create(minfer_engine *e, minfer_session **out, minfer_error *err)
{
    *out = NULL;
    minfer_session *s = mf_calloc(1, sizeof *s);
    if (s) s->tokens = mf_calloc((size_t)e->n_ctx, 2 * sizeof *s->tokens);
    minfer_status st = s && s->tokens ? mf_kv_open(&e->kv, &s->seq, err) : MF_NOMEM(err);
    if (st != MINFER_OK) {
        if (s) mf_free(s->tokens);
        mf_free(s);
        return st;
    }
    s->e = e;
    s->positions = s->tokens + e->n_ctx;
    *out = s;
    return MINFER_OK;
}

void minfer_session_free(minfer_session *s)
{
    if (!s) return;
    mf_kv_close(&s->e->kv, &s->seq);
    mf_free(s->tokens);
    mf_free(s);
}

minfer_status minfer_session_fork(const minfer_session *s, size_t n, minfer_session **out, minfer_error *err)
{
    *out = NULL;
    if (n > minfer_session_length(s))
        return mf_fail(err, MINFER_ERR_ARG, "fork at %zu of %zu tokens", n, minfer_session_length(s));
    MF_TRY(minfer_session_create(s->e, out, err));
    mf_kv_share(&s->e->kv, &(*out)->seq, &s->seq, (int32_t)n);
    memcpy((*out)->tokens, s->tokens, n * sizeof *s->tokens);
    memcpy((*out)->positions, s->positions, n * sizeof *s->positions);
    return MINFER_OK;
}

size_t minfer_session_length(const minfer_session *s)
{
    return (size_t)s->seq.n;
}
const int32_t *minfer_session_tokens(const minfer_session *s)
{
    return s->tokens;
}

minfer_status minfer_session_rollback(minfer_session *s, size_t n, minfer_error *err)
{
    if (n > minfer_session_length(s))
        return mf_fail(err, MINFER_ERR_ARG, "rollback to %zu of %zu tokens", n, minfer_session_length(s));
    mf_kv_truncate(&s->e->kv, &s->seq, (int32_t)n);
    return MINFER_OK;
}

int32_t mf_session_next(const minfer_session *s)
{
    return s->seq.n ? s->positions[s->seq.n - 1] + 1 : 0;
}

minfer_status minfer_session_remove(minfer_session *s, size_t from, size_t to, minfer_error *err)
{
    size_t n = minfer_session_length(s);
    if (from > to || to > n)
        return mf_fail(err, MINFER_ERR_ARG, "removing %zu..%zu of %zu tokens", from, to, n);
    MF_TRY(mf_kv_remove(&s->e->kv, &s->seq, (int32_t)from, (int32_t)to, err));
    memmove(s->tokens + from, s->tokens + to, (n - to) * sizeof *s->tokens);
    memmove(s->positions + from, s->positions + to, (n - to) * sizeof *s->positions);
    return MINFER_OK;
}
