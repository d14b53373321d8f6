/* The answer behind minfer_answer, for minfer_generate, which has it on its stack. */
#ifndef MF_RUNTIME_ANSWER_H
#define MF_RUNTIME_ANSWER_H

#include "runtime/model.h"
#include "sampling/sampler.h"
#include "sampling/stop.h"

struct minfer_answer {
    const minfer_model *model;
    minfer_sampler *sampler;
    int32_t max_tokens;
    bool ignore_end, special;
    bool ended;     /* by an end-of-turn token, a stop string or the grammar */
    bool end_token; /* the last token drawn ends the turn */
    size_t n_drawn;
    mf_stop stop;
    mf_detok detok;
    mf_buf piece, passed, whole; /* bytes of a token; those past the stop matcher; whole characters */
};

/* *a needs no earlier state, and goes to mf_answer_reset also after an error. */
minfer_status mf_answer_init(minfer_answer *a, const minfer_model *m, minfer_sampler *sampler,
                             const minfer_answer_options *o, minfer_error *err);
void mf_answer_reset(minfer_answer *a);

/* How many tokens may still be drawn, as max_tokens says. */
size_t mf_answer_left(const minfer_answer *a);

#endif
