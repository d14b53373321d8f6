/* Drafts: guesses at what follows a text, from whatever source. A source sees the text anew each time, so
 * that it may differ from the last one in any way; it is the source's matter to see what stayed. Nothing a
 * source does can change what is generated, only how fast. */
#ifndef MF_RUNTIME_DRAFT_H
#define MF_RUNTIME_DRAFT_H

#include "base/mem.h"
#include "runtime/depth.h"

/* A text: the tokens so far, n >= 1. */
typedef struct mf_draft_text {
    const int32_t *tokens;
    size_t n;
} mf_draft_text;

typedef struct mf_draft_ops {
    /* Looks at the text: *kind of what can be drafted (see depth.h), or -1 for nothing. */
    minfer_status (*look)(minfer_draft *d, mf_draft_text t, int32_t *kind, minfer_error *err);
    /* Work that is due because of earlier texts, not of this draft, so that its time is not counted. May be
     * NULL. */
    minfer_status (*prepare)(minfer_draft *d, mf_draft_text t, minfer_error *err);
    /* At most n >= 1 tokens that may follow the text looked at last; *got: how many, 0 and more. */
    minfer_status (*propose)(minfer_draft *d, mf_draft_text t, int32_t n, int32_t *out, int32_t *got,
                             minfer_error *err);
    void (*free)(minfer_draft *d);
} mf_draft_ops;

struct minfer_draft {
    const mf_draft_ops *ops;
    const minfer_model *target; /* the only model its tokens are for; NULL: any */
    bool adaptive;
    mf_depth depth; /* with its limit, which the static depth is */
};

/* Fills what all sources share, from checked options. */
minfer_status mf_draft_init(minfer_draft *d, const mf_draft_ops *ops, const minfer_draft_options *o,
                            minfer_error *err);

/* How many tokens to draft, 0 and more, for a kind >= 0. */
int32_t mf_draft_depth(minfer_draft *d, int32_t kind);

#endif
