/* Functions, and how arguments reach their parameters. Owns the tables' row type and the binding; the tables
 * stand with what they name (filters, tests, methods, globals). */
#ifndef MF_TEMPLATE_CALL_H
#define MF_TEMPLATE_CALL_H

#include "template/value.h"

typedef struct mf_tkw {
    const mf_tstr *name;
    mf_tval value;
} mf_tkw;

typedef struct mf_tcall { /* the arguments of a call as written, stars expanded */
    const mf_tval *pos;
    size_t npos;
    const mf_tkw *kw;
    size_t nkw;
} mf_tcall;

enum { MF_MAX_PARAMS = 8 };

typedef struct mf_targs {
    mf_tval v[MF_MAX_PARAMS]; /* v[0]: the filtered value or the method's object; then the parameters, MISSING
                                 when they were not given */
    mf_tcall rest;            /* of a variadic function: all arguments after v[0] */
    int which;                /* of the table's row */
} mf_targs;

typedef minfer_status mf_tfn(mf_trender *r, mf_targs *a, mf_tval *out);

typedef struct mf_tfndef {
    const char *name;
    mf_tfn *fn;
    /* The parameters after the first, separated by spaces; a leading '/': by position only; "*": any. */
    const char *params;
    uint8_t required; /* how many of them must be given */
    int which;        /* tells apart names that share a function */
} mf_tfndef;

typedef struct mf_tfunc {
    const mf_tfndef *def;
    mf_tval self; /* MISSING for a plain function */
} mf_tfunc;

/* Calls def with first (v[0], MISSING for a plain function) and the arguments; a TypeError when they do not
 * fit. */
minfer_status mf_tcall_def(mf_trender *r, const mf_tfndef *def, mf_tval first, const mf_tcall *call,
                           mf_tval *out);
/* Calls a value. */
minfer_status mf_tcall_value(mf_trender *r, mf_tval callee, const mf_tcall *call, mf_tval *out);
bool mf_tval_callable(mf_tval v);

static inline bool mf_targ_given(const mf_targs *a, size_t i)
{
    return a->v[i].type != MF_T_MISSING;
}
/* Parameter i as what a function needs, or the default when it was not given. */
minfer_status mf_targ_int(mf_trender *r, const mf_targs *a, size_t i, int64_t otherwise, int64_t *out);
bool mf_targ_truth(const mf_targs *a, size_t i, bool otherwise);
mf_tval mf_targ_or(const mf_targs *a, size_t i, mf_tval otherwise);

/* The rows of a table, by name. */
const mf_tfndef *mf_tfndef_find(const mf_tfndef *table, size_t n, const mf_tstr *name);
#define MF_FIND(table, name) mf_tfndef_find((table), sizeof(table) / sizeof(table)[0], (name))

/* The tables. NULL: no such name. */
const mf_tfndef *mf_tfilter_find(const mf_tstr *name);
const mf_tfndef *mf_ttest_find(const mf_tstr *name);
const mf_tfndef *mf_tmethod_find(mf_tval obj, const mf_tstr *name);

/* Macros are run by the evaluator. */
typedef struct mf_tmacro {
    const struct mf_tnode *node;
    struct mf_tframe *frame; /* where it was defined */
} mf_tmacro;

minfer_status mf_tmacro_call(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, mf_tval *out);
mf_tval mf_tmacro_name(const mf_tmacro *m); /* None for the body of a call block */
minfer_status mf_tmacro_attr(mf_trender *r, const mf_tmacro *m, const mf_tstr *name, mf_tval *out);

#endif
