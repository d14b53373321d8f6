/* Stages that edit the row of logits: bias, penalties, mask, grammar. What is -infinity stays so, and what is
 * finite stays finite unless a bias, the mask or the grammar forbids it. */
#include "sampling/stages.h"

#include <float.h>
#include <math.h>

void mf_stage_set(minfer_sampler *s, int32_t id, double logit)
{
    if (s->logits[id] == -INFINITY) return;
    s->logits[id] = (float)(logit > FLT_MAX ? FLT_MAX : logit < -FLT_MAX ? -FLT_MAX : logit);
}

minfer_status mf_stage_check_history(const minfer_sampler *s, size_t from, minfer_error *err)
{
    for (size_t i = from; i < s->n_history; i++)
        if (s->history[i] < 0 || s->history[i] >= s->n_vocab)
            return mf_fail(err, MINFER_ERR_ARG, "history[%zu] is %d, expected 0 to %d", i, s->history[i],
                           s->n_vocab - 1);
    return MINFER_OK;
}

minfer_status mf_stage_bias(minfer_sampler *s, minfer_error *err)
{
    (void)err;
    for (size_t i = 0; i < s->p.n_logit_bias; i++) {
        minfer_logit_bias b = s->p.logit_bias[i];
        if (b.bias == -INFINITY)
            s->logits[b.id] = -INFINITY;
        else
            mf_stage_set(s, b.id, (double)s->logits[b.id] + b.bias);
    }
    return MINFER_OK;
}

/* count: how often the token stands in the window, at least once. A negative logit is multiplied, so that a
 * penalty above 1 never raises it. */
static void penalize(minfer_sampler *s, int32_t id, uint32_t count)
{
    double l = s->logits[id], repeat = s->p.repeat_penalty;
    l = l > 0 ? l / repeat : l * repeat;
    mf_stage_set(s, id, l - (double)count * s->p.frequency_penalty - s->p.presence_penalty);
}

minfer_status mf_stage_penalties(minfer_sampler *s, minfer_error *err)
{
    const minfer_sampling *p = &s->p;
    if (p->repeat_penalty == 1 && p->frequency_penalty == 0 && p->presence_penalty == 0) return MINFER_OK;
    size_t window = p->repeat_last_n < 0 ? s->n_history : (size_t)p->repeat_last_n;
    size_t from = window < s->n_history ? s->n_history - window : 0;
    MF_TRY(mf_stage_check_history(s, from, err));
    for (size_t i = from; i < s->n_history; i++) s->marks[s->history[i]]++;
    for (size_t i = from; i < s->n_history; i++) {
        int32_t id = s->history[i];
        if (s->marks[id]) penalize(s, id, s->marks[id]);
        s->marks[id] = 0;
    }
    return MINFER_OK;
}

minfer_status mf_stage_mask(minfer_sampler *s, minfer_error *err)
{
    return s->mask ? s->mask(s->mask_user, s->logits, s->n_vocab, err) : MINFER_OK;
}

minfer_status mf_stage_grammar(minfer_sampler *s, minfer_error *err)
{
    return mf_reader_mask(&s->grammar, s->logits, s->n_vocab, err);
}
