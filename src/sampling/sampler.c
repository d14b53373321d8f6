/* The chain of stages, and the public sampler around it. */
#include "sampling/stages.h"

#include <math.h>
#include <string.h>

enum { GREEDY = 1, TRUNCATE = 2, MIROSTAT = 4, ALL = 7 };

/* In order of execution; those of other modes are passed over. */
static const struct stage {
    const char *name;
    int modes;
    mf_stage_fn *run;
} stages[] = {
    {"logit bias", ALL, mf_stage_bias},
    {"penalties", ALL, mf_stage_penalties},
    {"DRY", ALL, mf_stage_dry},
    {"mask", ALL, mf_stage_mask},
    {"grammar", ALL, mf_stage_grammar},
    {"greedy choice", GREEDY, mf_stage_argmax},
    {"candidates", MIROSTAT, mf_stage_gather},
    {"top-k", TRUNCATE, mf_stage_top_k},
    {"typical", TRUNCATE, mf_stage_typical},
    {"top-p", TRUNCATE, mf_stage_top_p},
    {"min-p", TRUNCATE, mf_stage_min_p},
    {"XTC", TRUNCATE, mf_stage_xtc},
    {"temperature", TRUNCATE | MIROSTAT, mf_stage_temperature},
    {"mirostat", MIROSTAT, mf_stage_mirostat},
};

static int mode(const minfer_sampling *p)
{
    if (p->temperature < 1e-6f) return GREEDY;
    return p->mirostat ? MIROSTAT : TRUNCATE;
}

static minfer_status bad_logit(const float *logits, int32_t n, minfer_error *err)
{
    int32_t i = 0;
    while (i < n && logits[i] < INFINITY) i++;
    return mf_fail(err, MINFER_ERR_STATE, "bad logits: token %d of %d has %s", i, n,
                   logits[i] > 0 ? "+infinity" : "NaN");
}

/* Copies the row. -infinity is a token that the model forbids; NaN and +infinity are defects. */
static minfer_status load(minfer_sampler *s, const float *logits, minfer_error *err)
{
    unsigned bad = 0, usable = 0;
    for (int32_t i = 0; i < s->n_vocab; i++) {
        float l = logits[i];
        s->logits[i] = l;
        bad |= !(l < INFINITY);
        usable |= l > -INFINITY;
    }
    if (bad) return bad_logit(logits, s->n_vocab, err);
    if (usable) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_STATE, "bad logits: all %d tokens have -infinity", s->n_vocab);
}

minfer_status mf_sampler_candidates(minfer_sampler *s, const float *logits, const int32_t *history,
                                    size_t n_history, const mf_cands **cands, minfer_error *err)
{
    s->history = history;
    s->n_history = n_history;
    MF_TRY(load(s, logits, err));
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        if (!(stages[i].modes & mode(&s->p))) continue;
        minfer_status st = stages[i].run(s, err);
        if (st != MINFER_OK) return mf_fail_prefix(err, st, "%s", stages[i].name);
    }
    *cands = &s->cands;
    return MINFER_OK;
}

/* The candidate at which the sum of weights, in order, exceeds u * total; 0 <= u < 1. The last one also where
 * rounding makes u * total the total. */
static mf_cand draw(const mf_cands *c, double total, double u)
{
    double sum = 0, wanted = u * total;
    size_t i = 0;
    while (i + 1 < c->n && (sum += c->v[i].weight) <= wanted) i++;
    return c->v[i];
}

minfer_status minfer_sampler_sample(minfer_sampler *s, const float *logits, const int32_t *history,
                                    size_t n_history, int32_t *id, minfer_error *err)
{
    const mf_cands *c;
    MF_TRY(mf_sampler_candidates(s, logits, history, n_history, &c, err));
    double total = mf_cands_total(c);
    mf_cand drawn = draw(c, total, mf_rng_f64(&s->rng));
    MF_TRY(minfer_sampler_accept(s, drawn.id, err));
    if (mode(&s->p) == MIROSTAT) mf_mirostat_observe(s, drawn.weight / total);
    *id = drawn.id;
    return MINFER_OK;
}

minfer_status minfer_sampler_accept(minfer_sampler *s, int32_t id, minfer_error *err)
{
    if (id < 0 || id >= s->n_vocab)
        return mf_fail(err, MINFER_ERR_ARG, "token %d is not in 0..%d", id, s->n_vocab - 1);
    return mf_reader_accept(&s->grammar, id, err);
}

minfer_status mf_sampler_set_grammar(minfer_sampler *s, minfer_grammar *g, mf_trie *trie, minfer_error *err)
{
    if (g && trie->n_vocab != s->n_vocab)
        return mf_fail(err, MINFER_ERR_ARG, "a grammar for a vocabulary of %d tokens, the sampler has %d",
                       trie->n_vocab, s->n_vocab);
    return mf_reader_open(&s->grammar, g, trie, err);
}

minfer_status mf_sampler_restart_grammar(minfer_sampler *s, minfer_error *err)
{
    return mf_reader_restart(&s->grammar, err);
}

bool mf_sampler_has_grammar(const minfer_sampler *s)
{
    return s->grammar.g != NULL;
}

bool mf_sampler_exhausted(const minfer_sampler *s)
{
    return mf_reader_exhausted(&s->grammar);
}

minfer_status minfer_sampler_copy(minfer_sampler *dst, const minfer_sampler *src, minfer_error *err)
{
    if (dst->n_vocab != src->n_vocab)
        return mf_fail(err, MINFER_ERR_ARG, "samplers for %d and %d tokens cannot be copied", dst->n_vocab,
                       src->n_vocab);
    dst->rng = src->rng;
    dst->mu = src->mu;
    mf_reader_copy(&dst->grammar, &src->grammar);
    return MINFER_OK;
}

/* ---- the object */

static bool allocate(minfer_sampler *s, size_t n_vocab)
{
    size_t n = s->p.n_logit_bias;
    minfer_logit_bias *bias = mf_calloc(n, sizeof *bias);
    if (bias && n) memcpy(bias, s->p.logit_bias, n * sizeof *bias);
    s->p.logit_bias = bias;
    s->logits = mf_calloc(n_vocab, sizeof *s->logits);
    s->marks = mf_calloc(n_vocab, sizeof *s->marks);
    return bias && s->logits && s->marks;
}

minfer_status mf_sampler_create(const minfer_sampling *p, int32_t n_vocab, minfer_sampler **out,
                                minfer_error *err)
{
    *out = NULL;
    MF_TRY(minfer_sampling_check(p, n_vocab, err));
    minfer_sampler *s = mf_calloc(1, sizeof *s);
    if (!s) return MF_NOMEM(err);
    s->p = *p;
    s->n_vocab = n_vocab;
    s->mu = 2.0 * p->mirostat_tau;
    mf_rng_seed(&s->rng, p->seed);
    if (!allocate(s, (size_t)n_vocab)) {
        minfer_sampler_free(s);
        return MF_NOMEM(err);
    }
    *out = s;
    return MINFER_OK;
}

void minfer_sampler_free(minfer_sampler *s)
{
    if (!s) return;
    mf_reader_close(&s->grammar);
    mf_cands_free(&s->cands);
    mf_free((void *)(uintptr_t)s->p.logit_bias);
    mf_free(s->breaker);
    mf_free(s->logits);
    mf_free(s->marks);
    mf_free(s->match);
    mf_free(s);
}

void mf_sampler_set_mask(minfer_sampler *s, mf_mask_fn *fn, void *user)
{
    s->mask = fn;
    s->mask_user = user;
}

minfer_status mf_sampler_set_dry_breakers(minfer_sampler *s, const int32_t *ids, size_t n, minfer_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->n_vocab)
            return mf_fail(err, MINFER_ERR_ARG, "DRY breaker %d, expected 0 to %d", ids[i], s->n_vocab - 1);
    bool *breaker = mf_calloc((size_t)s->n_vocab, sizeof *breaker);
    if (!breaker) return MF_NOMEM(err);
    for (size_t i = 0; i < n; i++) breaker[ids[i]] = true;
    mf_free(s->breaker);
    s->breaker = breaker;
    return MINFER_OK;
}
