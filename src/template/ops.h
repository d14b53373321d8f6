/* What Python's operators do with values: truth, equality, order, arithmetic, membership, indexing. */
#ifndef MF_TEMPLATE_OPS_H
#define MF_TEMPLATE_OPS_H

#include "template/value.h"

bool mf_tval_truth(mf_tval v);
/* `is`: the same object; equal numbers and strings of one type count as the same. */
bool mf_tval_same(mf_tval a, mf_tval b);
minfer_status mf_tval_eq(mf_trender *r, mf_tval a, mf_tval b, bool *out);
/* a OP b for OP in < > <= >=; a TypeError where Python has no order. */
typedef enum mf_torder { MF_LT, MF_GT, MF_LE, MF_GE } mf_torder;
minfer_status mf_tval_order(mf_trender *r, mf_torder op, mf_tval a, mf_tval b, bool *out);
bool mf_tval_hashable(mf_tval v);
minfer_status mf_tval_hash(mf_trender *r, mf_tval v, uint64_t *out);
minfer_status mf_tval_contains(mf_trender *r, mf_tval box, mf_tval item, bool *out);

/* *n is set, or *has is false where Python's len() is a TypeError. */
minfer_status mf_tval_len(mf_trender *r, mf_tval v, int64_t *n, bool *has);
/* The same, raising the TypeError. */
minfer_status mf_tval_need_len(mf_trender *r, mf_tval v, int64_t *n);

typedef enum mf_top {
    MF_OP_ADD,
    MF_OP_SUB,
    MF_OP_MUL,
    MF_OP_DIV,
    MF_OP_FLOORDIV,
    MF_OP_MOD,
    MF_OP_POW
} mf_top;
minfer_status mf_tval_binary(mf_trender *r, mf_top op, mf_tval a, mf_tval b, mf_tval *out);
minfer_status mf_tval_neg(mf_trender *r, mf_tval a, mf_tval *out);
minfer_status mf_tval_pos(mf_trender *r, mf_tval a, mf_tval *out);

/* box[i] of a list, tuple, string or range, counted from the end when negative; out is MISSING when there is
 * no such item. */
minfer_status mf_tval_at(mf_trender *r, mf_tval box, int64_t i, mf_tval *out);
/* box[start:stop:step]; each MISSING or None when absent. */
minfer_status mf_tval_slice(mf_trender *r, mf_tval box, mf_tval start, mf_tval stop, mf_tval step,
                            mf_tval *out);
/* Clamps start and stop of a slice with step 1 to 0..n, as Python does; MISSING and None are absent. */
minfer_status mf_tval_span(mf_trender *r, mf_tval start, mf_tval stop, int64_t n, int64_t *from, int64_t *to);

/* An int or bool as int64, else a TypeError that says what was given. */
minfer_status mf_tval_need_int(mf_trender *r, mf_tval v, int64_t *out);
minfer_status mf_tval_need_str(mf_trender *r, mf_tval v, const mf_tstr **out);
/* Integers are 64 bits wide: the error for a result that is not. */
minfer_status mf_tval_too_big(mf_trender *r);

#endif
