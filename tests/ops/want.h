/* What a case must give: the op by its formula, over exact.h. */
#ifndef MF_TESTS_OPS_WANT_H
#define MF_TESTS_OPS_WANT_H

#include "ops/case.h"
#include "ops/exact.h"

typedef struct op_want {
    op_num *y;     /* [n] the output; NULL: no formula, the bits of scalar C are the only measure */
    op_num *loose; /* [n] a second, wider measure, or NULL */
    size_t n;
    const void *raw; /* the output's very bytes, where it is no F32; NULL elsewhere */
    size_t raw_bytes;
    op_num *stored[2]; /* [nt][n_kv * head_dim] what the tokens' rows of K and V read as; NULL: not known */
    void *own;         /* memory behind raw */
} op_want;

void op_want_make(const op_case *c, const op_data *d, op_want *w);
void op_want_free(op_want *w);

/* Whether a float is what it must be. */
bool op_num_holds(op_num want, float got);

/* The value of element i of a cache row. */
double op_stored_value(mf_type format, const uint8_t *row, size_t i);

#endif
