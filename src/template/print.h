/* Values as text: Python's str() and repr(), JSON as Hugging Face's tojson writes it, and pprint. */
#ifndef MF_TEMPLATE_PRINT_H
#define MF_TEMPLATE_PRINT_H

#include "template/value.h"

/* Append str(v) or repr(v). A list inside itself is shown as [...]. */
minfer_status mf_tval_str(mf_trender *r, mf_tsb *out, mf_tval v);
minfer_status mf_tval_repr(mf_trender *r, mf_tsb *out, mf_tval v);
/* repr() of a string, or ascii() of it. */
minfer_status mf_tprint_quoted(mf_trender *r, mf_tsb *out, const mf_tstr *s, bool ascii);
/* str(v) as a value; a string stays what it is. */
minfer_status mf_tval_to_str(mf_trender *r, mf_tval v, mf_tval *out);
/* repr(v), cut to a length that fits in a message. */
minfer_status mf_tval_brief(mf_trender *r, mf_tval v, char *out, size_t size);

typedef struct mf_tjson {
    bool ascii, sort_keys;
    const mf_tstr *indent;      /* one level, NULL: all on one line */
    const mf_tstr *item, *pair; /* separators */
} mf_tjson;

/* json.dumps(v). What JSON does not have is a TypeError, a list inside itself a ValueError. */
minfer_status mf_tval_json(mf_trender *r, mf_tsb *out, mf_tval v, const mf_tjson *how);

/* pprint.pformat(v): one line, or broken after 80 characters; dictionaries in the order of their keys. */
minfer_status mf_tval_pprint(mf_trender *r, mf_tsb *out, mf_tval v);

/* An integer in decimal. */
enum { MF_PRINT_INT = 24 };
size_t mf_tprint_int(int64_t i, char out[MF_PRINT_INT]);

#endif
