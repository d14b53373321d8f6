/* What templates find without defining it: range, dict, namespace, cycler, joiner, raise_exception,
 * strftime_now. */
#ifndef MF_TEMPLATE_OBJECTS_H
#define MF_TEMPLATE_OBJECTS_H

#include "template/call.h"

typedef struct mf_tcycler {
    mf_tlist *items; /* at least one */
    size_t pos;
} mf_tcycler;

typedef struct mf_tjoiner {
    mf_tval sep;
    bool used;
} mf_tjoiner;

/* A built-in function by name, or MISSING. */
minfer_status mf_tglobal_get(mf_trender *r, const mf_tstr *name, mf_tval *out);

/* Attributes; out is MISSING when there is none. */
minfer_status mf_tcycler_attr(mf_trender *r, const mf_tcycler *c, const mf_tstr *name, mf_tval *out);
minfer_status mf_tjoiner_attr(mf_trender *r, const mf_tjoiner *j, const mf_tstr *name, mf_tval *out);
minfer_status mf_trange_attr(const mf_trange *g, const mf_tstr *name, mf_tval *out);
const mf_tfndef *mf_tcycler_method(const mf_tstr *name);
/* The separator from the second call on. */
minfer_status mf_tjoiner_call(mf_trender *r, mf_tjoiner *j, const mf_tcall *call, mf_tval *out);
/* Names that begin with an underscore are refused, as transformers does. */
minfer_status mf_tnamespace_set(mf_trender *r, mf_tdict *ns, mf_tval name, mf_tval v);
/* Enters what dict(...) takes: at most one mapping or list of pairs, and keywords. */
minfer_status mf_tdict_fill(mf_trender *r, mf_tdict *d, const mf_tcall *call);

/* strftime of a moment in UTC: C's directives in English, and Python's %f. */
minfer_status mf_tstrftime(mf_trender *r, const mf_tstr *format, int64_t seconds, mf_tval *out);

#endif
