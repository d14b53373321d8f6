/* How many tokens to draft: estimates of what drafts bring (survival) and cost, and the depth with the most
 * expected tokens per time. Owns numbers only; knows neither models nor clocks.
 *
 * Drafts come in kinds, from the least trusted (0) to the most (lookup: by the length of the match). For each
 * kind and place the share of drafted tokens that were right, given that all before them were, is counted.
 * Old counts fade, and what is not counted is believed to be as the place before. So a depth that stopped
 * paying is tried again after a while. Costs are of a forward pass over 1 + n tokens, and of drafting one. */
#ifndef MF_RUNTIME_DEPTH_H
#define MF_RUNTIME_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

enum { MF_DEPTH_MAX = 16, MF_DEPTH_KINDS = 4 };

typedef struct mf_depth_count { /* faded */
    double tries, hits;
} mf_depth_count;

typedef struct mf_depth {
    int32_t most; /* 1..MF_DEPTH_MAX */
    mf_depth_count counts[MF_DEPTH_KINDS][MF_DEPTH_MAX];
    double pass_ns[MF_DEPTH_MAX + 1]; /* by number of drafted tokens; 0: not known */
    double draft_ns;                  /* of one drafted token */
    int32_t age[MF_DEPTH_MAX + 1];    /* rounds since then */
} mf_depth;

void mf_depth_init(mf_depth *d, int32_t most);

/* The best depth for a draft of this kind, 0..most; 0 also when the cost of a plain pass is not known or was
 * measured long ago. Fades the kind's counts by one round, and forgets the costs of other passes that were
 * measured long ago. */
int32_t mf_depth_choose(mf_depth *d, int32_t kind);

/* Token `place` (0: the first) of a draft was compared with what the target chose. */
void mf_depth_saw_token(mf_depth *d, int32_t kind, int32_t place, bool right);
/* A pass over 1 + n tokens took ns. */
void mf_depth_saw_pass(mf_depth *d, int32_t n, int64_t ns);
/* Drafting n > 0 tokens took ns. */
void mf_depth_saw_draft(mf_depth *d, int32_t n, int64_t ns);

/* Expected tokens of a round with n drafted ones, and its expected time; for choose, and for tests. */
double mf_depth_tokens(const mf_depth *d, int32_t kind, int32_t n);
double mf_depth_ns(const mf_depth *d, int32_t n);

#endif
