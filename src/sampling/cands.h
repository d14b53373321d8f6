/* The candidates of one draw: which tokens are left, with their logits and weights. Owns their memory and the
 * rule that keeps every sum the same on every machine: candidates stand in ascending order of id, and sums
 * run in that order. Which candidates stay is decided by rank (logit descending, equal logits by ascending
 * id); only the few that the decision needs are ever sorted. Knows no parameter of sampling by name. */
#ifndef MF_SAMPLING_CANDS_H
#define MF_SAMPLING_CANDS_H

#include "base/mem.h"

typedef struct mf_cand {
    double weight; /* e^((logit - best logit) / temperature), in 3e-308..1; see mf_cands_weigh */
    float logit;   /* finite */
    int32_t id;
} mf_cand;

typedef struct mf_cands { /* zero-initialise */
    mf_cand *v;
    size_t n, cap;
    double weighed; /* the temperature that the weights belong to; 0: they are stale */
    mf_cand *best;  /* scratch of mf_cands_rank */
    size_t best_cap;
} mf_cands;

/* How candidates rank: by logit, or by how near their logit is to a centre; equal ones by ascending id. */
typedef struct mf_rank {
    bool near;
    double centre;
} mf_rank;

void mf_cands_free(mf_cands *c);

/* Fills c with the k best of logits[n] that are not -infinity (all of them for k = 0 or k >= n). There is no
 * NaN and no +infinity among them. false: out of memory. */
bool mf_cands_gather(mf_cands *c, const float *logits, size_t n, size_t k);

/* The greatest logit; n > 0. */
float mf_cands_top(const mf_cands *c);

/* Makes the weights those of a temperature > 0, unless they are; relative to the best candidate at that time.
 */
void mf_cands_weigh(mf_cands *c, double temperature);
double mf_cands_total(const mf_cands *c); /* sum of the weights */

/* The best k in their order (fewer when c has fewer), valid until the next call that ranks; *n receives how
 * many. NULL: out of memory. */
const mf_cand *mf_cands_rank(mf_cands *c, mf_rank by, size_t k, size_t *n);

/* Keep the best k >= 1; or the fewest of the best whose weights reach share * total, at least one. false: out
 * of memory. Weights stay as they are. */
bool mf_cands_keep_best(mf_cands *c, mf_rank by, size_t k);
bool mf_cands_keep_share(mf_cands *c, mf_rank by, double share);

#endif
