/* The loop variable: where a for loop is, and what comes before and after. */
#ifndef MF_TEMPLATE_LOOP_H
#define MF_TEMPLATE_LOOP_H

#include "template/call.h"
#include "template/iter.h"

typedef struct mf_tloop {
    mf_titer *it;
    mf_tval iterable; /* what is being iterated, for its length */
    int64_t index0;   /* -1 before the first item */
    int64_t length;   /* -1 until somebody asks */
    int64_t depth0;
    mf_tval current, before;
    mf_tval after;               /* read ahead; MISSING: nothing was, or there is nothing */
    mf_tval changed;             /* arguments of the last loop.changed() */
    const struct mf_tnode *node; /* of a recursive loop, to call it again; else NULL */
    struct mf_tframe *frame;
} mf_tloop;

/* Goes to the next item; MISSING at the end. */
minfer_status mf_tloop_next(mf_trender *r, mf_tloop *l, mf_tval *out);
minfer_status mf_tloop_length(mf_trender *r, mf_tloop *l, int64_t *n);
/* loop.index and the like; out is MISSING when there is no such attribute. */
minfer_status mf_tloop_attr(mf_trender *r, mf_tloop *l, const mf_tstr *name, mf_tval *out);
/* loop.cycle and loop.changed. */
const mf_tfndef *mf_tloop_method(const mf_tstr *name);
/* loop(items): the body again, for nested data. */
minfer_status mf_tloop_call(mf_trender *r, const mf_tloop *l, const mf_tcall *call, mf_tval *out);

#endif
