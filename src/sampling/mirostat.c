/* Mirostat 1 and 2 (Basu et al., 2021): the set of candidates is cut so that the surprise of the tokens, in
 * bits, stays near tau. The state mu, 2 * tau at first, is the surprise that the next cut allows; after a
 * draw mu -= eta * (surprise - tau), the surprise being that among the candidates left by the cut. */
#include "sampling/stages.h"

#include "base/mathfn.h"

#include <math.h>

#define LOG2E 0x1.71547652b82fep+0

enum { HEAD = 100 }; /* best candidates that the exponent is estimated from, as in the paper */

/* The exponent of Zipf's law by least squares: sum t b / sum t^2 over neighbours among the best, with
 * t_i = ln((i + 2) / (i + 1)) and b_i = ln(p_i / p_i+1), which is the difference of their logits. */
static double zipf_exponent(const mf_cand *best, size_t n, double temperature)
{
    double tb = 0, tt = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double t = mf_math_log_f64((double)(i + 2) / (double)(i + 1));
        tb += t * (((double)best[i].logit - best[i + 1].logit) / temperature);
        tt += t * t;
    }
    return tb / tt;
}

/* How many of n >= 2 candidates of Zipf's law with exponent s have the cross-entropy mu:
 * k = (scale * 2^mu)^(1/s), scale = e / (1 - n^-e), e = s - 1; at e = 0 its limit 1 / ln n. */
static double zipf_count(double s, double mu, double n)
{
    double e = s - 1, scale = fabs(e) < 1e-9 ? 1 / mf_math_log_f64(n) : e / (1 - mf_math_pow(n, -e));
    return mf_math_exp_f64((mf_math_log_f64(scale) + mu / LOG2E) / s);
}

static minfer_status cut_v1(minfer_sampler *s, minfer_error *err)
{
    mf_cands *c = &s->cands;
    size_t n_best;
    const mf_cand *best = mf_cands_rank(c, (mf_rank){0}, HEAD, &n_best);
    if (!best) return MF_NOMEM(err);
    double k = zipf_count(zipf_exponent(best, n_best, s->p.temperature), s->mu, (double)c->n);
    if (!(k < (double)c->n)) return MINFER_OK; /* no number, either: all alike, or one */
    return mf_cands_keep_best(c, (mf_rank){0}, k > 1 ? (size_t)k : 1) ? MINFER_OK : MF_NOMEM(err);
}

/* Drops what is more surprising than mu; the best always stays. */
static void cut_v2(minfer_sampler *s)
{
    mf_cands *c = &s->cands;
    double least = mf_math_pow(2, -s->mu) * mf_cands_total(c);
    if (!(least < 1)) least = 1; /* the weight of the best */
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].weight >= least) c->v[n++] = c->v[i];
    c->n = n;
}

minfer_status mf_stage_mirostat(minfer_sampler *s, minfer_error *err)
{
    if (s->p.mirostat == 1) return cut_v1(s, err);
    cut_v2(s);
    return MINFER_OK;
}

void mf_mirostat_observe(minfer_sampler *s, double share)
{
    double surprise = -mf_math_log_f64(share) * LOG2E;
    s->mu -= s->p.mirostat_eta * (surprise - s->p.mirostat_tau);
}
