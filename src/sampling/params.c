/* Parameters of sampling: defaults and the ranges they may have. Owns no state. */
#include "sampling/sampler.h"

#include <math.h>
#include <stddef.h>

void minfer_sampling_init(minfer_sampling *p)
{
    *p = (minfer_sampling){
        .temperature = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .typical_p = 1,
        .repeat_penalty = 1.1f,
        .repeat_last_n = 64,
        .xtc_threshold = 0.1f,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .mirostat_tau = 5,
        .mirostat_eta = 0.1f,
    };
}

/* Finite numbers from low to high; `above`: low itself is out. high 0: no end. */
static const struct range {
    const char *name;
    size_t offset;
    float low, high;
    bool above;
} ranges[] = {
#define FIELD(f) #f, offsetof(minfer_sampling, f)
    {FIELD(temperature), 0, 0, false},
    {FIELD(top_p), 0, 1, false},
    {FIELD(min_p), 0, 1, false},
    {FIELD(typical_p), 0, 1, false},
    {FIELD(repeat_penalty), 0, 0, true},
    {FIELD(frequency_penalty), -2, 2, false},
    {FIELD(presence_penalty), -2, 2, false},
    {FIELD(xtc_probability), 0, 1, false},
    {FIELD(xtc_threshold), 0, 1, false},
    {FIELD(dry_multiplier), 0, 0, false},
    {FIELD(dry_base), 1, 0, false},
    {FIELD(mirostat_tau), 0, 0, false},
    {FIELD(mirostat_eta), 0, 0, false},
#undef FIELD
};

static minfer_status check_range(const minfer_sampling *p, const struct range *r, minfer_error *err)
{
    float v = *(const float *)(const void *)((const char *)p + r->offset);
    bool low_ok = r->above ? v > r->low : v >= r->low;
    if (low_ok && v < INFINITY && (r->high == 0 || v <= r->high)) return MINFER_OK;
    if (r->high == 0)
        return mf_fail(err, MINFER_ERR_ARG, "%s is %g, expected a finite number %s %g", r->name, (double)v,
                       r->above ? "above" : "from", (double)r->low);
    return mf_fail(err, MINFER_ERR_ARG, "%s is %g, expected %g to %g", r->name, (double)v, (double)r->low,
                   (double)r->high);
}

static minfer_status check_bias(const minfer_sampling *p, int32_t n_vocab, minfer_error *err)
{
    if (p->n_logit_bias > 0 && !p->logit_bias)
        return mf_fail(err, MINFER_ERR_ARG, "logit_bias is NULL, expected %zu entries", p->n_logit_bias);
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        minfer_logit_bias b = p->logit_bias[i];
        if (b.id < 0 || b.id >= n_vocab)
            return mf_fail(err, MINFER_ERR_ARG, "logit_bias: token %d, expected 0 to %d", b.id, n_vocab - 1);
        if (!(b.bias < INFINITY))
            return mf_fail(err, MINFER_ERR_ARG, "logit_bias of token %d is %g, expected a number or -inf",
                           b.id, (double)b.bias);
    }
    return MINFER_OK;
}

minfer_status minfer_sampling_check(const minfer_sampling *p, int32_t n_vocab, minfer_error *err)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) MF_TRY(check_range(p, &ranges[i], err));
    if (p->repeat_last_n < -1)
        return mf_fail(err, MINFER_ERR_ARG, "repeat_last_n is %d, expected -1 or more", p->repeat_last_n);
    if (p->dry_allowed_length < 0)
        return mf_fail(err, MINFER_ERR_ARG, "dry_allowed_length is %d, expected 0 or more",
                       p->dry_allowed_length);
    if (p->mirostat < 0 || p->mirostat > 2)
        return mf_fail(err, MINFER_ERR_ARG, "mirostat is %d, expected 0, 1 or 2", p->mirostat);
    if (n_vocab < 1) return mf_fail(err, MINFER_ERR_ARG, "n_vocab is %d, expected 1 or more", n_vocab);
    return check_bias(p, n_vocab, err);
}
