/* Generation: feed a prompt, then draw and feed one token after the other, and hand out text that is certain.
 */
#include "runtime/engine.h"

#include "base/clock.h"
#include "sampling/sampler.h"
#include "sampling/stop.h"

#include <string.h>

typedef struct {
    minfer_session *s;
    minfer_sampler *sampler;
    const minfer_model *model;
    const minfer_generate_options *o;
    minfer_generate_result *r;
    mf_stop stop;
    mf_detok detok;
    mf_buf piece, passed, text; /* bytes of a token; those past the stop matcher; whole characters */
    float *logits;
    minfer_error *err;
} gen;

static minfer_status nomem(gen *g)
{
    return mf_fail(g->err, MINFER_ERR_NOMEM, "out of memory while generating");
}

/* Tells the caller about id and the text that became certain; *go_on is false when it cancels. */
static void hand_out(gen *g, int32_t id, bool *go_on)
{
    if (g->o->on_text && !g->o->on_text(g->o->user, id, g->text.data ? g->text.data : "", g->text.len))
        *go_on = false;
    g->text.len = 0;
}

/* The token's text through stop matcher and detokenizer. *stopped: a stop string is complete. */
static minfer_status add_text(gen *g, int32_t id, bool *stopped, bool *go_on)
{
    g->piece.len = g->passed.len = 0;
    bool ok = mf_tokenizer_piece(g->model->tok, id, g->o->special, &g->piece) &&
              mf_stop_push(&g->stop, g->piece.data, g->piece.len, &g->passed, stopped) &&
              mf_detok_push(&g->detok, g->passed.data, g->passed.len, &g->text);
    if (!ok) return nomem(g);
    hand_out(g, id, go_on);
    return MINFER_OK;
}

/* The end of the turn belongs to the timeline; it is told like every token, its name only on request. */
static minfer_status end_turn(gen *g, int32_t id, bool *go_on)
{
    bool stopped = false;
    MF_TRY(minfer_session_feed(g->s, &id, 1, NULL, 0, g->err));
    if (g->o->special) return add_text(g, id, &stopped, go_on);
    hand_out(g, id, go_on);
    return MINFER_OK;
}

/* What was held back comes out at the end. */
static minfer_status flush(gen *g, bool *go_on)
{
    bool stopped = false;
    g->passed.len = 0;
    bool ok = mf_stop_finish(&g->stop, &g->passed, &stopped) &&
              mf_detok_push(&g->detok, g->passed.data, g->passed.len, &g->text) &&
              mf_detok_finish(&g->detok, &g->text);
    if (!ok) return nomem(g);
    if (stopped) g->r->finish = MINFER_FINISH_STOP;
    if (g->text.len) hand_out(g, -1, go_on);
    return MINFER_OK;
}

/* Rows of logits may be longer than the vocabulary: what lies beyond is padding and is never drawn. */
static minfer_status draw(gen *g, int32_t *id)
{
    return minfer_sampler_sample(g->sampler, g->logits, minfer_session_tokens(g->s),
                                 minfer_session_length(g->s), id, g->err);
}

static bool room_left(const gen *g)
{
    bool more = g->o->max_tokens < 0 || g->r->n_generated < (size_t)g->o->max_tokens;
    return more && minfer_session_length(g->s) < (size_t)g->s->e->n_ctx;
}

/* A grammar's end is the answer's, whatever else was asked for. */
static bool ends(const gen *g, int32_t id)
{
    return mf_tokenizer_is_eog(g->model->tok, id) &&
           (!g->o->ignore_end || mf_sampler_has_grammar(g->sampler));
}

static minfer_status decode(gen *g, int64_t start)
{
    bool stopped = false, go_on = true;
    g->r->finish = MINFER_FINISH_LENGTH;
    while (room_left(g) && go_on) {
        int32_t id;
        if (mf_sampler_exhausted(g->sampler)) {
            g->r->finish = MINFER_FINISH_STOP;
            break;
        }
        MF_TRY(draw(g, &id));
        if (g->r->n_generated++ == 0) g->r->first_ns = mf_clock_ns() - start;
        if (ends(g, id)) {
            g->r->finish = MINFER_FINISH_STOP;
            MF_TRY(end_turn(g, id, &go_on));
            break;
        }
        MF_TRY(add_text(g, id, &stopped, &go_on));
        if (stopped) {
            g->r->finish = MINFER_FINISH_STOP;
            break;
        }
        if (!go_on) break;
        bool last = g->o->max_tokens >= 0 && g->r->n_generated == (size_t)g->o->max_tokens;
        MF_TRY(minfer_session_feed(g->s, &id, 1, last ? NULL : g->logits, last ? 0 : 1, g->err));
    }
    MF_TRY(flush(g, &go_on));
    if (!go_on) g->r->finish = MINFER_FINISH_CANCELLED;
    g->r->decode_ns = g->r->n_generated ? mf_clock_ns() - start - g->r->first_ns : 0;
    return MINFER_OK;
}

static minfer_status run(gen *g, const int32_t *prompt, size_t n_prompt)
{
    minfer_engine *e = g->s->e;
    size_t room = (size_t)e->n_ctx - minfer_session_length(g->s);
    int64_t start = mf_clock_ns();
    if (n_prompt == 0) return mf_fail(g->err, MINFER_ERR_ARG, "the prompt has no tokens");
    if (n_prompt >= room)
        return mf_fail(g->err, MINFER_ERR_LIMIT,
                       "the prompt has %zu tokens; %zu of %d in the context are free, and one must stay free "
                       "for the answer",
                       n_prompt, room, e->n_ctx);
    MF_TRY(mf_sampler_restart_grammar(g->sampler, g->err));
    MF_TRY(mf_stop_init(&g->stop, g->o->stop, NULL, g->o->n_stop, g->err));
    g->logits = mf_malloc((size_t)e->model->bound->hp.n_vocab * sizeof *g->logits);
    if (!g->logits) return nomem(g);
    MF_TRY(minfer_session_feed(g->s, prompt, n_prompt, g->logits, 1, g->err));
    g->r->n_prompt = n_prompt;
    g->r->prompt_ns = mf_clock_ns() - start;
    return decode(g, start);
}

minfer_status minfer_generate(minfer_session *s, minfer_sampler *sampler, const int32_t *prompt,
                              size_t n_prompt, const minfer_generate_options *o,
                              minfer_generate_result *result, minfer_error *err)
{
    *result = (minfer_generate_result){0};
    gen g = {.s = s, .sampler = sampler, .model = s->e->model, .o = o, .r = result, .err = err};
    minfer_status st = run(&g, prompt, n_prompt);
    mf_stop_free(&g.stop);
    mf_buf_free(&g.piece);
    mf_buf_free(&g.passed);
    mf_buf_free(&g.text);
    mf_free(g.logits);
    return st;
}

const char *minfer_version(void)
{
    return MINFER_VERSION;
}
