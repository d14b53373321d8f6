/* Escapes in string literals. */
#ifndef MF_TEMPLATE_UNESCAPE_H
#define MF_TEMPLATE_UNESCAPE_H

#include "template/value.h"

/* The value of the literal whose text between the quotes is given. *bad is what is wrong with it (static
 * text), or stays as it was. Unknown escapes keep their backslash; surrogates and \N{...} are refused. */
minfer_status mf_tunescape(mf_trender *r, const char *p, size_t n, mf_tval *out, const char **bad);

#endif
