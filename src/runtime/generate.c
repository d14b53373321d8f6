/* Generation: feed a prompt, then draw one token after the other, and hand out text that is certain. How
 * drawn tokens are fed, and whether some are drafted, is speculate.c. */
#include "runtime/answer.h"
#include "runtime/speculate.h"

#include "base/clock.h"

typedef struct {
    mf_speculate text;
    minfer_answer answer;
    const minfer_generate_options *o;
    minfer_generate_result *r;
    bool go_on; /* the caller has not cancelled */
    minfer_error *err;
} gen;

static void hand_out(gen *g, const minfer_piece *p)
{
    if (g->o->on_text && !g->o->on_text(g->o->user, p->id, p->text, p->n)) g->go_on = false;
}

/* Rows of logits may be longer than the vocabulary: what lies beyond is padding and is never drawn. */
static minfer_status next(gen *g, minfer_piece *p)
{
    return minfer_answer_next(&g->answer, mf_speculate_logits(&g->text), minfer_session_tokens(g->text.s),
                              g->text.n, p, g->err);
}

/* What was held back comes out at the end. */
static minfer_status finish(gen *g)
{
    minfer_piece p;
    MF_TRY(minfer_answer_finish(&g->answer, &p, &g->r->finish, g->err));
    if (p.n) hand_out(g, &p);
    if (!g->go_on) g->r->finish = MINFER_FINISH_CANCELLED;
    return MINFER_OK;
}

/* The end of the turn belongs to the timeline, tokens of a matched stop string do not. */
static minfer_status decode(gen *g, int64_t start)
{
    minfer_piece p = {0};
    while (!p.ended && g->go_on && g->text.n < (size_t)g->text.s->e->n_ctx) {
        MF_TRY(next(g, &p));
        if (p.id < 0) break;
        if (g->r->n_generated++ == 0) g->r->first_ns = mf_clock_ns() - start;
        if (p.end_token) MF_TRY(mf_speculate_push(&g->text, p.id, 0, g->err));
        hand_out(g, &p);
        if (!g->answer.ended && g->go_on)
            MF_TRY(mf_speculate_push(&g->text, p.id, mf_answer_left(&g->answer), g->err));
    }
    MF_TRY(finish(g));
    g->r->decode_ns = g->r->n_generated ? mf_clock_ns() - start - g->r->first_ns : 0;
    return MINFER_OK;
}

static minfer_status run(gen *g, minfer_session *s, minfer_sampler *sampler, const int32_t *prompt,
                         size_t n_prompt)
{
    const minfer_generate_options *o = g->o;
    minfer_engine *e = s->e;
    size_t room = (size_t)e->n_ctx - minfer_session_length(s);
    int64_t start = mf_clock_ns();
    if (n_prompt == 0) return mf_fail(g->err, MINFER_ERR_ARG, "the prompt has no tokens");
    if (n_prompt >= room)
        return mf_fail(g->err, MINFER_ERR_LIMIT,
                       "the prompt has %zu tokens; %zu of %d in the context are free, and one must stay free "
                       "for the answer",
                       n_prompt, room, e->n_ctx);
    minfer_answer_options a = {o->max_tokens, o->stop, o->n_stop, o->ignore_end, o->special};
    MF_TRY(mf_answer_init(&g->answer, e->model, sampler, &a, g->err));
    MF_TRY(mf_speculate_open(&g->text, s, o->draft, g->r, prompt, n_prompt, g->err));
    g->r->n_prompt = n_prompt;
    g->r->prompt_ns = mf_clock_ns() - start;
    return decode(g, start);
}

minfer_status minfer_generate(minfer_session *s, minfer_sampler *sampler, const int32_t *prompt,
                              size_t n_prompt, const minfer_generate_options *o,
                              minfer_generate_result *result, minfer_error *err)
{
    *result = (minfer_generate_result){0};
    gen g = {.o = o, .r = result, .go_on = true, .err = err};
    minfer_status st = run(&g, s, sampler, prompt, n_prompt);
    mf_speculate_close(&g.text);
    mf_answer_reset(&g.answer);
    return st;
}

const char *minfer_version(void)
{
    return MINFER_VERSION;
}
