/* Drafts from a smaller model with the same vocabulary: its most likely tokens, one after the other. */
#include "runtime/draft.h"
#include "runtime/engine.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIZE_APART = 128, /* paddings of one vocabulary differ by as much */
    KIND = 1,         /* all drafts are trusted alike */
    LATE = 2,         /* more tokens than this were not fed because of the round before */
};

typedef struct from_model {
    minfer_draft base;
    minfer_session *session;
    float *logits;
    int32_t n_ids; /* ids that both models have */
} from_model;

/* ---- the same vocabulary ---- */

static minfer_status differ(const minfer_model *target, const minfer_model *draft, const char *what,
                            minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_ARG, "%s cannot draft for %s: %s", mf_gguf_path(draft->gguf),
                   mf_gguf_path(target->gguf), what);
}

/* The beginning of a token's text, in whole characters. */
static int shown(mf_str s)
{
    size_t n = s.n < 60 ? s.n : 60;
    return (int)(n - mf_utf8_incomplete_tail(s.s, n));
}

static minfer_status check_text(const minfer_model *target, const minfer_model *draft, int32_t id,
                                minfer_error *err)
{
    mf_str own = mf_tokenizer_text(draft->tok, id), theirs = mf_tokenizer_text(target->tok, id);
    char text[192];
    if (own.n == theirs.n && memcmp(own.s, theirs.s, own.n) == 0) return MINFER_OK;
    snprintf(text, sizeof text, "its token %d is '%.*s', not '%.*s'", id, shown(own), own.s, shown(theirs),
             theirs.s);
    return differ(target, draft, text, err);
}

static minfer_status check_id(const minfer_model *target, const minfer_model *draft, const char *name,
                              int32_t theirs, int32_t own, minfer_error *err)
{
    char text[64];
    if (own == theirs) return MINFER_OK;
    snprintf(text, sizeof text, "its %s is token %d, not %d (-1: none)", name, own, theirs);
    return differ(target, draft, text, err);
}

static minfer_status check_vocabulary(const minfer_model *target, const minfer_model *draft,
                                      minfer_error *err)
{
    const mf_tokenizer *t = target->tok, *d = draft->tok;
    int32_t n = mf_tokenizer_n_vocab(t), own = mf_tokenizer_n_vocab(d);
    char what[96];
    snprintf(what, sizeof what, "its vocabulary has %d tokens, not %d (at most %d apart)", own, n,
             SIZE_APART);
    if (abs(own - n) > SIZE_APART) return differ(target, draft, what, err);
    MF_TRY(check_id(target, draft, "BOS", mf_tokenizer_bos(t), mf_tokenizer_bos(d), err));
    MF_TRY(check_id(target, draft, "EOS", mf_tokenizer_eos(t), mf_tokenizer_eos(d), err));
    for (int32_t id = 0; id < n && id < own; id++) MF_TRY(check_text(target, draft, id, err));
    return MINFER_OK;
}

/* ---- drafting ---- */

static minfer_status look(minfer_draft *d, mf_draft_text t, int32_t *kind, minfer_error *err)
{
    const from_model *m = (const from_model *)d;
    (void)err;
    *kind = t.n <= (size_t)m->session->e->n_ctx ? KIND : -1;
    return MINFER_OK;
}

/* Takes back what the text has otherwise; *from: the first token that is to be fed, at least the last. */
static minfer_status agree(from_model *m, mf_draft_text t, size_t *from, minfer_error *err)
{
    const int32_t *have = minfer_session_tokens(m->session);
    size_t n = minfer_session_length(m->session), same = 0;
    while (same < n && same + 1 < t.n && have[same] == t.tokens[same]) same++;
    *from = same;
    return minfer_session_rollback(m->session, same, err);
}

static minfer_status prepare(minfer_draft *d, mf_draft_text t, minfer_error *err)
{
    from_model *m = (from_model *)d;
    size_t from;
    MF_TRY(agree(m, t, &from, err));
    if (t.n - from <= LATE) return MINFER_OK;
    return minfer_session_feed(m->session, t.tokens + from, t.n - 1 - from, NULL, 0, err);
}

/* The most likely id, the first among equal ones; -1 when the row has no number. */
static int32_t best_of(const float *logits, int32_t n)
{
    int32_t best = -1;
    float top = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        if (logits[i] > top) {
            top = logits[i];
            best = i;
        }
    return best;
}

static minfer_status propose(minfer_draft *d, mf_draft_text t, int32_t n, int32_t *out, int32_t *got,
                             minfer_error *err)
{
    from_model *m = (from_model *)d;
    size_t from, room = (size_t)m->session->e->n_ctx - t.n; /* for drafted tokens that are fed, too */
    if ((size_t)n > room + 1) n = (int32_t)room + 1;
    MF_TRY(agree(m, t, &from, err));
    MF_TRY(minfer_session_feed(m->session, t.tokens + from, t.n - from, m->logits, 1, err));
    for (;;) {
        int32_t id = best_of(m->logits, m->n_ids);
        if (id < 0) return MINFER_OK;
        out[(*got)++] = id;
        if (*got == n) return MINFER_OK;
        MF_TRY(minfer_session_feed(m->session, &id, 1, m->logits, 1, err));
    }
}

static void from_model_free(minfer_draft *d)
{
    from_model *m = (from_model *)d;
    minfer_session_free(m->session);
    mf_free(m->logits);
    mf_free(m);
}

static minfer_status setup(from_model *m, minfer_engine *e, const minfer_model *target,
                           const minfer_draft_options *o, minfer_error *err)
{
    static const mf_draft_ops ops = {
        .look = look, .prepare = prepare, .propose = propose, .free = from_model_free};
    MF_TRY(mf_draft_init(&m->base, &ops, o, err));
    if (!target->bound)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its weights",
                       mf_gguf_path(target->gguf));
    MF_TRY(check_vocabulary(target, e->model, err));
    int32_t n = mf_tokenizer_n_vocab(target->tok), own = mf_tokenizer_n_vocab(e->model->tok);
    m->n_ids = n < own ? n : own;
    m->base.target = target;
    m->logits = mf_malloc((size_t)e->model->bound->hp.n_vocab * sizeof *m->logits);
    if (!m->logits) return MF_NOMEM(err);
    return minfer_session_create(e, &m->session, err);
}

minfer_status minfer_draft_create_model(minfer_engine *e, const minfer_model *target,
                                        const minfer_draft_options *o, minfer_draft **out, minfer_error *err)
{
    *out = NULL;
    from_model *m = mf_calloc(1, sizeof *m);
    if (!m) return MF_NOMEM(err);
    minfer_status st = setup(m, e, target, o, err);
    if (st != MINFER_OK) {
        from_model_free(&m->base);
        return st;
    }
    *out = &m->base;
    return MINFER_OK;
}
