/* Iteration over values, and the iterators that lazy filters give. Owns the protocol, not the filters. */
#ifndef MF_TEMPLATE_ITER_H
#define MF_TEMPLATE_ITER_H

#include "template/value.h"

typedef struct mf_titer mf_titer;

struct mf_titer {
    minfer_status (*next)(mf_trender *, mf_titer *, mf_tval *out); /* MISSING at the end */
    const char *kind;                                              /* how Python names it: "generator" */
    mf_tval src;
    size_t i;    /* item, entry or byte the next call looks at */
    size_t seen; /* entries when a dictionary's iteration began */
    void *state; /* of a lazy filter */
};

/* Starts reading v; a TypeError when v cannot be iterated. A value that is itself an iterator goes on where
 * it is. */
minfer_status mf_titer_open(mf_trender *r, mf_tval v, mf_titer **out);
bool mf_titer_possible(mf_tval v);
minfer_status mf_titer_next(mf_trender *r, mf_titer *it, mf_tval *out);
/* An iterator with its own next function, as a value. kind is static text. */
minfer_status mf_titer_make(mf_trender *r, const char *kind, mf_tval src, void *state,
                            minfer_status (*next)(mf_trender *, mf_titer *, mf_tval *), mf_tval *out);
/* All remaining items as a new list. */
minfer_status mf_titer_list(mf_trender *r, mf_tval v, mf_tlist **out);
/* Reads v backwards: *possible is false where Python's reversed() is a TypeError. */
minfer_status mf_titer_reversed(mf_trender *r, mf_tval v, mf_tval *out, bool *possible);
/* Item i of a range. */
int64_t mf_trange_at(const mf_trange *g, int64_t i);

#endif
