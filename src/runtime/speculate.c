/* Rounds of speculation. */
#include "runtime/speculate.h"

#include "base/clock.h"

minfer_status mf_speculate_open(mf_speculate *sp, minfer_session *s, minfer_draft *draft,
                                minfer_generate_result *r, const int32_t *tokens, size_t n, minfer_error *err)
{
    *sp = (mf_speculate){.s = s, .draft = draft, .r = r, .n = minfer_session_length(s)};
    if (draft && draft->target && draft->target != s->e->model)
        return mf_fail(err, MINFER_ERR_ARG, "the draft was made for another model than the session's");
    size_t n_rows = draft ? 1 + (size_t)draft->depth.most : 1, size;
    if (!mf_mul_ok((size_t)s->e->model->bound->hp.n_vocab * sizeof *sp->rows, n_rows, &size) ||
        !(sp->rows = mf_malloc(size)))
        return MF_NOMEM(err);
    MF_TRY(minfer_session_feed(s, tokens, n, sp->rows, 1, err));
    sp->n += n;
    return MINFER_OK;
}

const float *mf_speculate_logits(const mf_speculate *sp)
{
    return sp->rows + (size_t)sp->row * (size_t)sp->s->e->model->bound->hp.n_vocab;
}

/* The most tokens a draft can have: all rows of the pass can be drawn from, within what may be drawn at all,
 * and it is one pass. */
static int32_t most_of(const mf_speculate *sp, size_t more)
{
    const minfer_engine *e = sp->s->e;
    size_t room = (size_t)e->n_ctx - sp->n, most = (size_t)sp->draft->depth.most;
    if (most > (size_t)e->n_batch - 1) most = (size_t)e->n_batch - 1;
    if (most > more - 1) most = more - 1;
    if (room < 2) return 0;
    return (int32_t)(most > room - 2 ? room - 2 : most);
}

/* The text ends with ids[0]; what may follow goes behind that. */
static minfer_status draft(mf_speculate *sp, size_t more, int32_t *ids, int32_t *n, minfer_error *err)
{
    minfer_draft *d = sp->draft;
    int32_t most = most_of(sp, more), depth;
    mf_draft_text t = {minfer_session_tokens(sp->s), sp->n + 1};
    if (most == 0) return MINFER_OK;
    sp->s->tokens[sp->n] = ids[0]; /* the session does not have it yet, its place it has */
    MF_TRY(d->ops->look(d, t, &sp->kind, err));
    if (sp->kind < 0 || (depth = mf_draft_depth(d, sp->kind)) == 0) return MINFER_OK;
    minfer_status st = d->ops->prepare ? d->ops->prepare(d, t, err) : MINFER_OK;
    int64_t start = mf_clock_ns();
    if (st == MINFER_OK) st = d->ops->propose(d, t, depth < most ? depth : most, ids + 1, n, err);
    if (*n) mf_depth_saw_draft(&d->depth, *n, mf_clock_ns() - start);
    return st == MINFER_ERR_LIMIT ? MINFER_OK : st; /* what the source has no room for is not drafted */
}

/* One pass over the drawn token and n drafted ones. Where the cache has no room for a draft there is none. */
static minfer_status verify(mf_speculate *sp, const int32_t *ids, int32_t n, minfer_error *err)
{
    size_t n_tokens = 1 + (size_t)n;
    int64_t start = mf_clock_ns();
    minfer_status st = minfer_session_feed(sp->s, ids, n_tokens, sp->rows, n_tokens, err);
    if (st == MINFER_ERR_LIMIT && n > 0) return verify(sp, ids, 0, err);
    if (st != MINFER_OK || !sp->draft) return st;
    mf_depth_saw_pass(&sp->draft->depth, n, mf_clock_ns() - start);
    sp->r->n_rounds++;
    sp->r->n_drafted += (size_t)n;
    return MINFER_OK;
}

static minfer_status begin_round(mf_speculate *sp, int32_t id, size_t more, minfer_error *err)
{
    int32_t ids[1 + MF_DEPTH_MAX] = {id}, n = 0;
    MF_TRY(minfer_session_rollback(sp->s, sp->n, err));
    if (more == 0) {
        MF_TRY(minfer_session_feed(sp->s, &id, 1, NULL, 0, err));
    } else {
        if (sp->draft) MF_TRY(draft(sp, more, ids, &n, err));
        MF_TRY(verify(sp, ids, n, err));
    }
    sp->n++;
    sp->row = 0;
    return MINFER_OK;
}

minfer_status mf_speculate_push(mf_speculate *sp, int32_t id, size_t more, minfer_error *err)
{
    bool drafted = minfer_session_length(sp->s) > sp->n,
         right = drafted && minfer_session_tokens(sp->s)[sp->n] == id;
    if (drafted) mf_depth_saw_token(&sp->draft->depth, sp->kind, sp->row, right);
    if (!right) return begin_round(sp, id, more, err);
    sp->n++;
    sp->row++;
    sp->r->n_accepted++;
    return MINFER_OK;
}

void mf_speculate_close(mf_speculate *sp)
{
    if (sp->s && minfer_session_length(sp->s) > sp->n) minfer_session_rollback(sp->s, sp->n, NULL);
    mf_free(sp->rows);
    sp->rows = NULL;
}
