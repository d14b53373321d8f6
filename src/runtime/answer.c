/* An answer: tokens are drawn from logits that somebody else computes, and text that is certain comes out.
 * Owns what stands between a token and its text; knows neither session nor engine. */
#include "runtime/answer.h"

minfer_status minfer_answer_create(const minfer_model *m, minfer_sampler *sampler,
                                   const minfer_answer_options *o, minfer_answer **out, minfer_error *err)
{
    *out = NULL;
    if (!m->tok)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its vocabulary", mf_gguf_path(m->gguf));
    minfer_answer *a = mf_calloc(1, sizeof *a);
    if (!a) return MF_NOMEM(err);
    minfer_status st = mf_answer_init(a, m, sampler, o, err);
    if (st == MINFER_OK) {
        *out = a;
        return MINFER_OK;
    }
    minfer_answer_free(a);
    return st;
}

minfer_status mf_answer_init(minfer_answer *a, const minfer_model *m, minfer_sampler *sampler,
                             const minfer_answer_options *o, minfer_error *err)
{
    *a = (minfer_answer){.model = m,
                         .sampler = sampler,
                         .max_tokens = o->max_tokens,
                         .ignore_end = o->ignore_end,
                         .special = o->special};
    MF_TRY(mf_sampler_restart_grammar(sampler, err));
    return mf_stop_init(&a->stop, o->stop, NULL, o->n_stop, err);
}

void mf_answer_reset(minfer_answer *a)
{
    mf_stop_free(&a->stop);
    mf_buf_free(&a->piece);
    mf_buf_free(&a->passed);
    mf_buf_free(&a->whole);
}

void minfer_answer_free(minfer_answer *a)
{
    if (!a) return;
    mf_answer_reset(a);
    mf_free(a);
}

size_t mf_answer_left(const minfer_answer *a)
{
    return a->max_tokens < 0 ? SIZE_MAX : (size_t)a->max_tokens - a->n_drawn;
}

static minfer_status nomem(minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_NOMEM, "out of memory while generating");
}

static void hand_out(const minfer_answer *a, int32_t id, minfer_piece *p)
{
    *p = (minfer_piece){.id = id,
                        .text = a->whole.len ? a->whole.data : "",
                        .n = a->whole.len,
                        .ended = a->ended || mf_answer_left(a) == 0,
                        .end_token = a->end_token};
}

/* The token's text through stop matcher and detokenizer. */
static minfer_status add_text(minfer_answer *a, int32_t id, minfer_error *err)
{
    bool stopped = false;
    a->piece.len = a->passed.len = 0;
    bool ok = mf_tokenizer_piece(a->model->tok, id, a->special, &a->piece) &&
              mf_stop_push(&a->stop, a->piece.data, a->piece.len, &a->passed, &stopped) &&
              mf_detok_push(&a->detok, a->passed.data, a->passed.len, &a->whole);
    if (stopped) a->ended = true;
    return ok ? MINFER_OK : nomem(err);
}

/* A grammar's end is the answer's, whatever else was asked for. */
static bool ends(const minfer_answer *a, int32_t id)
{
    return mf_tokenizer_is_eog(a->model->tok, id) && (!a->ignore_end || mf_sampler_has_grammar(a->sampler));
}

minfer_status minfer_answer_next(minfer_answer *a, const float *logits, const int32_t *history, size_t n,
                                 minfer_piece *p, minfer_error *err)
{
    int32_t id = -1;
    a->whole.len = 0;
    if (mf_sampler_exhausted(a->sampler)) a->ended = true;
    if (a->ended || mf_answer_left(a) == 0) {
        hand_out(a, -1, p);
        return MINFER_OK;
    }
    MF_TRY(minfer_sampler_sample(a->sampler, logits, history, n, &id, err));
    a->n_drawn++;
    a->end_token = ends(a, id);
    if (a->end_token) a->ended = true;
    if (!a->end_token || a->special) MF_TRY(add_text(a, id, err));
    hand_out(a, id, p);
    return MINFER_OK;
}

minfer_status minfer_answer_finish(minfer_answer *a, minfer_piece *p, minfer_finish *finish,
                                   minfer_error *err)
{
    bool stopped = false;
    a->passed.len = a->whole.len = 0;
    bool ok = mf_stop_finish(&a->stop, &a->passed, &stopped) &&
              mf_detok_push(&a->detok, a->passed.data, a->passed.len, &a->whole) &&
              mf_detok_finish(&a->detok, &a->whole);
    if (!ok) return nomem(err);
    if (stopped) a->ended = true;
    *finish = a->ended ? MINFER_FINISH_STOP : MINFER_FINISH_LENGTH;
    hand_out(a, -1, p);
    p->ended = true;
    return MINFER_OK;
}
