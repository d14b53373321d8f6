/* Shared by the sampling tests: parameters with everything off, random rows. */
#ifndef MF_TESTS_SAMPLING_COMMON_H
#define MF_TESTS_SAMPLING_COMMON_H

#include "support/support.h"

#include "sampling/sampler.h"

/* Temperature 1 and nothing else. */
static inline minfer_sampling plain(void)
{
    minfer_sampling p;
    minfer_sampling_init(&p);
    p.temperature = 1;
    p.top_k = 0;
    p.top_p = 1;
    p.repeat_penalty = 1;
    return p;
}

static inline minfer_sampler *make_sampler(const minfer_sampling *p, int n_vocab)
{
    minfer_sampler *s = NULL;
    minfer_error err = {0};
    assert_ok(mf_sampler_create(p, n_vocab, &s, &err), &err);
    return s;
}

static inline int32_t sample(minfer_sampler *s, const float *logits, const int32_t *history, size_t n)
{
    minfer_error err = {0};
    int32_t id = -1;
    assert_ok(minfer_sampler_sample(s, logits, history, n, &id, &err), &err);
    return id;
}

/* Roughly normal, exact in float on every machine; spread is the standard deviation. */
static inline float random_logit(mf_rng *r, float spread)
{
    int32_t sum = 0;
    for (int i = 0; i < 12; i++) sum += (int32_t)(mf_rng_u64(r) >> 48);
    return (float)(sum - 6 * 65536) * 0x1p-16f * spread;
}

static inline int below(mf_rng *r, int n)
{
    return (int)(mf_rng_f64(r) * n);
}

#endif
