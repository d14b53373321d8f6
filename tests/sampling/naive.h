/* The stages of sampling once more, as plainly as possible, in double precision with libm: what the tests
 * compare the sampler with. Shares no code with it. */
#ifndef MF_TESTS_SAMPLING_NAIVE_H
#define MF_TESTS_SAMPLING_NAIVE_H

#include "support/support.h"

enum { NAIVE_MAX = 6000 };

typedef struct naive_cand {
    int32_t id;
    double logit, p, key;
} naive_cand;

typedef struct naive {
    naive_cand v[NAIVE_MAX];
    int n;
} naive;

/* Edits of a row of n logits. */
void naive_penalties(const minfer_sampling *p, float *logits, const int32_t *history, int n_history);
void naive_dry(const minfer_sampling *p, float *logits, const int32_t *history, int n_history,
               const int32_t *breakers, int n_breakers);

/* All candidates of a row that are not -infinity; then fewer. p is softmax at temperature 1 after each call
 * but the last. */
void naive_fill(naive *c, const float *logits, int n);
void naive_top_k(naive *c, int k);
void naive_typical(naive *c, double share);
void naive_top_p(naive *c, double share);
void naive_min_p(naive *c, double ratio);
void naive_xtc(naive *c, double threshold); /* as if its chance had come */
void naive_temperature(naive *c, double t);
void naive_mirostat(naive *c, int version, double mu, double temperature);

/* The whole chain but bias and draw. */
void naive_chain(naive *c, const minfer_sampling *p, const float *logits, int n, const int32_t *history,
                 int n_history);

#endif
