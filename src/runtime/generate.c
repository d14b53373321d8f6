/* Generation: feed a prompt, then draw one token after the other, and hand out text that is certain. How
 * drawn tokens are fed, and whether some are drafted, is speculate.c. */
#include "runtime/speculate.h"

#include "base/clock.h"
#include "sampling/sampler.h"
#include "sampling/stop.h"

#include <string.h>

typedef struct {
    mf_speculate text;
    minfer_sampler *sampler;
    const minfer_model *model;
    const minfer_generate_options *o;
    minfer_generate_result *r;
    mf_stop stop;
    mf_detok detok;
    mf_buf piece, passed, whole; /* bytes of a token; those past the stop matcher; whole characters */
    minfer_error *err;
} gen;

static minfer_status nomem(gen *g)
{
    return mf_fail(g->err, MINFER_ERR_NOMEM, "out of memory while generating");
}

/* Tells the caller about id and the text that became certain; *go_on is false when it cancels. */
static void hand_out(gen *g, int32_t id, bool *go_on)
{
    if (g->o->on_text && !g->o->on_text(g->o->user, id, g->whole.data ? g->whole.data : "", g->whole.len))
        *go_on = false;
    g->whole.len = 0;
}

/* The token's text through stop matcher and detokenizer. *stopped: a stop string is complete. */
static minfer_status add_text(gen *g, int32_t id, bool *stopped, bool *go_on)
{
    g->piece.len = g->passed.len = 0;
    bool ok = mf_tokenizer_piece(g->model->tok, id, g->o->special, &g->piece) &&
              mf_stop_push(&g->stop, g->piece.data, g->piece.len, &g->passed, stopped) &&
              mf_detok_push(&g->detok, g->passed.data, g->passed.len, &g->whole);
    if (!ok) return nomem(g);
    hand_out(g, id, go_on);
    return MINFER_OK;
}

/* The end of the turn belongs to the timeline; it is told like every token, its name only on request. */
static minfer_status end_turn(gen *g, int32_t id, bool *go_on)
{
    bool stopped = false;
    MF_TRY(mf_speculate_push(&g->text, id, 0, g->err));
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
              mf_detok_push(&g->detok, g->passed.data, g->passed.len, &g->whole) &&
              mf_detok_finish(&g->detok, &g->whole);
    if (!ok) return nomem(g);
    if (stopped) g->r->finish = MINFER_FINISH_STOP;
    if (g->whole.len) hand_out(g, -1, go_on);
    return MINFER_OK;
}

/* Rows of logits may be longer than the vocabulary: what lies beyond is padding and is never drawn. */
static minfer_status draw(gen *g, int32_t *id)
{
    return minfer_sampler_sample(g->sampler, mf_speculate_logits(&g->text), minfer_session_tokens(g->text.s),
                                 g->text.n, id, g->err);
}

/* How many tokens may still be drawn, as max_tokens says. */
static size_t wanted(const gen *g)
{
    return g->o->max_tokens < 0 ? SIZE_MAX : (size_t)g->o->max_tokens - g->r->n_generated;
}

static bool room_left(const gen *g)
{
    return wanted(g) > 0 && g->text.n < (size_t)g->text.s->e->n_ctx;
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
        MF_TRY(mf_speculate_push(&g->text, id, wanted(g), g->err));
    }
    MF_TRY(flush(g, &go_on));
    if (!go_on) g->r->finish = MINFER_FINISH_CANCELLED;
    g->r->decode_ns = g->r->n_generated ? mf_clock_ns() - start - g->r->first_ns : 0;
    return MINFER_OK;
}

static minfer_status run(gen *g, minfer_session *s, const int32_t *prompt, size_t n_prompt)
{
    minfer_engine *e = s->e;
    size_t room = (size_t)e->n_ctx - minfer_session_length(s);
    int64_t start = mf_clock_ns();
    if (n_prompt == 0) return mf_fail(g->err, MINFER_ERR_ARG, "the prompt has no tokens");
    if (n_prompt >= room)
        return mf_fail(g->err, MINFER_ERR_LIMIT,
                       "the prompt has %zu tokens; %zu of %d in the context are free, and one must stay free "
                       "for the answer",
                       n_prompt, room, e->n_ctx);
    MF_TRY(mf_sampler_restart_grammar(g->sampler, g->err));
    MF_TRY(mf_stop_init(&g->stop, g->o->stop, NULL, g->o->n_stop, g->err));
    MF_TRY(mf_speculate_open(&g->text, s, g->o->draft, g->r, prompt, n_prompt, g->err));
    g->r->n_prompt = n_prompt;
    g->r->prompt_ns = mf_clock_ns() - start;
    return decode(g, start);
}

minfer_status minfer_generate(minfer_session *s, minfer_sampler *sampler, const int32_t *prompt,
                              size_t n_prompt, const minfer_generate_options *o,
                              minfer_generate_result *result, minfer_error *err)
{
    *result = (minfer_generate_result){0};
    gen g = {.sampler = sampler, .model = s->e->model, .o = o, .r = result, .err = err};
    minfer_status st = run(&g, s, prompt, n_prompt);
    mf_speculate_close(&g.text);
    mf_stop_free(&g.stop);
    mf_buf_free(&g.piece);
    mf_buf_free(&g.passed);
    mf_buf_free(&g.whole);
    return st;
}

const char *minfer_version(void)
{
    return MINFER_VERSION;
}
