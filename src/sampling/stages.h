/* Inside of the sampler, shared by the files of its stages: the state, and one function per stage. A stage
 * whose parameter is off changes nothing. Errors do not repeat the stage's name; the chain puts it in front.
 */
#ifndef MF_SAMPLING_STAGES_H
#define MF_SAMPLING_STAGES_H

#include "base/rng.h"
#include "grammar/grammar.h"
#include "sampling/sampler.h"

struct minfer_sampler {
    minfer_sampling p; /* checked; logit_bias is our own copy */
    int32_t n_vocab;
    mf_rng rng;
    double mu; /* mirostat: the surprise, in bits, that is allowed next */

    mf_mask_fn *mask;
    void *mask_user;
    mf_reader grammar;
    bool *breaker; /* [n_vocab], or NULL */

    float *logits;   /* [n_vocab], edited by the first stages */
    uint32_t *marks; /* [n_vocab], all 0 between stages */
    uint32_t *match; /* scratch of DRY */
    size_t match_cap;
    mf_cands cands;

    const int32_t *history; /* of the running call */
    size_t n_history;
};

typedef minfer_status mf_stage_fn(minfer_sampler *s, minfer_error *err);

/* Editing the row (edit.c, dry.c). */
mf_stage_fn mf_stage_bias, mf_stage_penalties, mf_stage_dry, mf_stage_mask, mf_stage_grammar;
/* Adds to a logit that is not -infinity and keeps it finite. */
void mf_stage_set(minfer_sampler *s, int32_t id, double logit);
/* Tokens of the history from `from` on are ids of the vocabulary. */
minfer_status mf_stage_check_history(const minfer_sampler *s, size_t from, minfer_error *err);

/* From the row to candidates, and fewer of them (truncate.c, mirostat.c). */
mf_stage_fn mf_stage_argmax, mf_stage_gather, mf_stage_top_k, mf_stage_typical, mf_stage_top_p,
    mf_stage_min_p, mf_stage_xtc, mf_stage_temperature, mf_stage_mirostat;

/* Tells mirostat the share 0..1 that the drawn token had among the last candidates. */
void mf_mirostat_observe(minfer_sampler *s, double share);

#endif
