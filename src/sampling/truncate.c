/* Stages from the row to fewer candidates: greedy choice, top-k, typical, top-p, min-p, XTC; and the weights
 * of the temperature. Each keeps at least one candidate. */
#include "sampling/stages.h"

#include "base/mathfn.h"

#include <math.h>

static const mf_rank by_logit = {0};

static minfer_status gather(minfer_sampler *s, size_t k, minfer_error *err)
{
    if (!mf_cands_gather(&s->cands, s->logits, (size_t)s->n_vocab, k)) return MF_NOMEM(err);
    if (s->cands.n > 0) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_ARG, "no token is left to choose from: %s forbids all %d",
                   s->mask ? "the mask or the logit bias" : "the logit bias", s->n_vocab);
}

minfer_status mf_stage_argmax(minfer_sampler *s, minfer_error *err)
{
    MF_TRY(gather(s, 1, err));
    mf_cands_weigh(&s->cands, 1);
    return MINFER_OK;
}

minfer_status mf_stage_gather(minfer_sampler *s, minfer_error *err)
{
    return gather(s, 0, err);
}

minfer_status mf_stage_top_k(minfer_sampler *s, minfer_error *err)
{
    return gather(s, s->p.top_k > 0 ? (size_t)s->p.top_k : 0, err);
}

/* The entropy of the candidates in nats, from weights of temperature 1: ln Z - sum w (l - top) / Z. */
static double entropy(const mf_cands *c, double top, double total)
{
    double sum = 0;
    for (size_t i = 0; i < c->n; i++) sum += c->v[i].weight * ((double)c->v[i].logit - top);
    return mf_math_log_f64(total) - sum / total;
}

/* Locally typical sampling (Meister et al., 2022): those whose surprise is nearest to the entropy. A surprise
 * is ln Z - (l - top), so near in surprise is near in logit. */
minfer_status mf_stage_typical(minfer_sampler *s, minfer_error *err)
{
    mf_cands *c = &s->cands;
    if (s->p.typical_p >= 1) return MINFER_OK;
    mf_cands_weigh(c, 1);
    double top = mf_cands_top(c), total = mf_cands_total(c);
    mf_rank by = {true, top + mf_math_log_f64(total) - entropy(c, top, total)};
    return mf_cands_keep_share(c, by, s->p.typical_p) ? MINFER_OK : MF_NOMEM(err);
}

minfer_status mf_stage_top_p(minfer_sampler *s, minfer_error *err)
{
    if (s->p.top_p >= 1) return MINFER_OK;
    mf_cands_weigh(&s->cands, 1);
    return mf_cands_keep_share(&s->cands, by_logit, s->p.top_p) ? MINFER_OK : MF_NOMEM(err);
}

minfer_status mf_stage_min_p(minfer_sampler *s, minfer_error *err)
{
    (void)err;
    mf_cands *c = &s->cands;
    if (s->p.min_p <= 0) return MINFER_OK;
    double top = mf_cands_top(c), least = mf_math_log_f64(s->p.min_p);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if ((double)c->v[i].logit - top >= least) c->v[n++] = c->v[i];
    c->n = n;
    return MINFER_OK;
}

/* XTC ("exclude top choices"): with some probability, of all tokens whose share reaches the threshold only
 * the least likely stays. */
minfer_status mf_stage_xtc(minfer_sampler *s, minfer_error *err)
{
    (void)err;
    mf_cands *c = &s->cands;
    if (s->p.xtc_probability <= 0 || mf_rng_f64(&s->rng) >= s->p.xtc_probability) return MINFER_OK;
    mf_cands_weigh(c, 1);
    double enough = s->p.xtc_threshold * mf_cands_total(c);
    size_t least = SIZE_MAX, n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].weight >= enough && (least == SIZE_MAX || c->v[i].logit <= c->v[least].logit)) least = i;
    for (size_t i = 0; i < c->n; i++)
        if (i == least || c->v[i].weight < enough) c->v[n++] = c->v[i];
    c->n = n;
    return MINFER_OK;
}

minfer_status mf_stage_temperature(minfer_sampler *s, minfer_error *err)
{
    (void)err;
    mf_cands_weigh(&s->cands, s->p.temperature);
    return MINFER_OK;
}
