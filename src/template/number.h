/* Numbers as text, both ways, as Python reads and writes them, whatever the process's locale is. */
#ifndef MF_TEMPLATE_NUMBER_H
#define MF_TEMPLATE_NUMBER_H

#include "template/render.h"

typedef enum mf_tparse { MF_PARSE_OK, MF_PARSE_BAD, MF_PARSE_BIG } mf_tparse;

/* int(text, base): white space around, a sign, underscores between digits, a prefix where base (0, 2, 8, 16)
 * allows it. BIG: a number that does not fit in 64 bits. */
mf_tparse mf_tnumber_parse_int(const char *p, size_t n, int64_t base, int64_t *out);
/* float(text): also inf, infinity and nan. */
mf_tparse mf_tnumber_parse_float(const char *p, size_t n, double *out);

/* repr(): the shortest digits that read back as f. Returns the length. */
enum { MF_NUMBER_REPR = 32 };
size_t mf_tnumber_repr(double f, char out[MF_NUMBER_REPR]);
/* f in C's format e, f, g, E, F or G with a precision and an optional '#'. */
minfer_status mf_tnumber_format(mf_trender *r, mf_tsb *out, double f, char format, int precision,
                                bool alternate);

#endif
