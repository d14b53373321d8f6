/* JSON texts as values. Integers beyond 64 bits, lone surrogates and NUL bytes in keys are
 * refused; of repeated keys the last value stands at the first one's place. */
#ifndef MF_TEMPLATE_FROMJSON_H
#define MF_TEMPLATE_FROMJSON_H

#include "template/value.h"

/* *why is NULL, or says in r's arena what is wrong with the text and where (then *out is unset). Other errors
 * are memory and limits. */
minfer_status mf_tval_from_json(mf_trender *r, const char *text, size_t n, mf_tval *out, const char **why);

#endif
