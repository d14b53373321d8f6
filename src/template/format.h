/* Python's string formatting: "..." % args, "...".format(args) and format(value, spec). Owns the layout of
 * fields; the digits of floats come from number.h. */
#ifndef MF_TEMPLATE_FORMAT_H
#define MF_TEMPLATE_FORMAT_H

#include "template/value.h"

struct mf_tcall;

/* "%s is %d" % args; a tuple gives several values, a dictionary named ones. */
minfer_status mf_tformat_percent(mf_trender *r, const mf_tstr *fmt, mf_tval args, mf_tval *out);
/* "{} is {name!r:>8}".format(*args, **kwargs). */
minfer_status mf_tformat_braces(mf_trender *r, const mf_tstr *fmt, const struct mf_tcall *call, mf_tval *out);
/* format(v, spec). */
minfer_status mf_tformat_value(mf_trender *r, mf_tsb *out, mf_tval v, const char *spec, size_t n);

/* One field, however it was written. */
typedef struct mf_tfield {
    char fill[4];
    size_t fill_n;
    char align; /* '<' '>' '^' '=' (between sign and digits), 0: the type's own */
    char sign;  /* '-' '+' ' ' */
    bool alternate;
    char group;        /* ',' '_' or 0 */
    int64_t width;     /* characters */
    int64_t precision; /* -1: none */
    char type;         /* 0: none */
} mf_tfield;

enum { MF_FIELD_MAX = 100000 }; /* precision; wider fields only meet the memory limit */

/* Text in a field: cut to the precision, aligned. */
minfer_status mf_tfield_text(mf_trender *r, mf_tsb *out, const mf_tfield *f, const mf_tstr *s);
/* An integer as d, b, o, x or X; a float as e, f, g, E, F, G, % or, without a type, as repr() does. */
minfer_status mf_tfield_int(mf_trender *r, mf_tsb *out, const mf_tfield *f, int64_t v);
minfer_status mf_tfield_float(mf_trender *r, mf_tsb *out, const mf_tfield *f, double v);

#endif
