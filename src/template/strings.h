/* Searching, cutting and padding of strings: the part that methods and filters share. */
#ifndef MF_TEMPLATE_STRINGS_H
#define MF_TEMPLATE_STRINGS_H

#include "template/value.h"

#define MF_NOT_FOUND SIZE_MAX

/* Byte offset of the first (last) place of what in s within bytes [from, to), or MF_NOT_FOUND. */
minfer_status mf_ttext_find(mf_trender *r, const mf_tstr *s, const mf_tstr *what, size_t from, size_t to,
                            size_t *out);
minfer_status mf_ttext_rfind(mf_trender *r, const mf_tstr *s, const mf_tstr *what, size_t from, size_t to,
                             size_t *out);
/* s with the first count (negative: all) places of old replaced. */
minfer_status mf_ttext_replace(mf_trender *r, const mf_tstr *s, const mf_tstr *old, const mf_tstr *with,
                               int64_t count, mf_tval *out);
/* s without the characters of set (NULL: white space) at its ends. */
typedef enum mf_tends { MF_LEFT = 1, MF_RIGHT = 2, MF_BOTH = 3 } mf_tends;
minfer_status mf_ttext_strip(mf_trender *r, const mf_tstr *s, const mf_tstr *set, mf_tends ends,
                             mf_tval *out);
/* Appends the parts of s: at white space (sep NULL) or at sep, at most max cuts (negative: all). */
minfer_status mf_ttext_split(mf_trender *r, const mf_tstr *s, const mf_tstr *sep, int64_t max, mf_tlist *out);
minfer_status mf_ttext_rsplit(mf_trender *r, const mf_tstr *s, const mf_tstr *sep, int64_t max,
                              mf_tlist *out);
minfer_status mf_ttext_splitlines(mf_trender *r, const mf_tstr *s, bool keep_ends, mf_tlist *out);
/* s in a field of width characters; align is '<', '>' or '^'; fill is one character. */
minfer_status mf_ttext_pad(mf_trender *r, const mf_tstr *s, int64_t width, char align, const mf_tstr *fill,
                           mf_tval *out);
/* The items of v as text with s between; a TypeError when one is not a string, unless convert is set. */
minfer_status mf_ttext_join(mf_trender *r, const mf_tstr *s, mf_tval v, bool convert, mf_tval *out);

#endif
