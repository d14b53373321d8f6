/* Samplers as the options want them. */
#include "cli/sampler.h"

#include <sys/random.h>

static minfer_status choose_seed(const app_seed *given, uint64_t *seed, minfer_error *err)
{
    *seed = given->value;
    if (given->fixed || getrandom(seed, sizeof *seed, 0) == sizeof *seed) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_IO, "no random seed to be had; give --seed");
}

minfer_status cli_sampler_create(const app_options *o, const minfer_model *m, minfer_grammar *grammar,
                                 minfer_sampler **out, uint64_t *seed, minfer_error *err)
{
    minfer_sampling p = o->sampling;
    unsigned given = o->sampling_given;
    if (o->greedy) {
        p.temperature = 0;
        if (!(given & MINFER_SAMPLING_REPEAT_PENALTY)) p.repeat_penalty = 1;
        given |= MINFER_SAMPLING_TEMPERATURE | MINFER_SAMPLING_REPEAT_PENALTY;
    }
    MF_TRY(choose_seed(&o->seed, seed, err));
    MF_TRY(minfer_sampling_recommended(m, given, &p, err));
    p.seed = *seed;
    p.logit_bias = o->bias.v;
    p.n_logit_bias = o->bias.n;
    MF_TRY(minfer_sampler_create(m, &p, out, err));
    return minfer_sampler_set_grammar(*out, m, grammar, err);
}
