/* JSON texts as jansson's trees, and back. The reader is our own: jansson's loses bytes of strings, or reads
 * past their end, when memory runs short in the middle of a text, and says that the text is wrong. */
#ifndef MF_BASE_JSON_H
#define MF_BASE_JSON_H

#include "base/mem.h"

#include <jansson.h>

enum { MF_JSON_DEPTH = 2048 }; /* brackets in brackets */

enum {
    MF_JSON_ANY = 1,    /* also a bare string, number or word; else an array or an object */
    MF_JSON_UNIQUE = 2, /* a key that stands twice in an object is refused; else the last one counts */
};

typedef struct mf_json_error {
    bool nomem;       /* the text may be right */
    int line, column; /* of what is wrong, from 1; columns are characters */
    char text[160];
} mf_json_error;

/* Reads n bytes of UTF-8. Strings may hold NUL, keys may not; integers must fit 64 bits. NULL with *e filled.
 */
json_t *mf_json_read(const char *text, size_t n, unsigned flags, mf_json_error *e);

/* The error as the library's: memory, or FORMAT with place and words. */
minfer_status mf_json_fail(const mf_json_error *e, minfer_error *err);

/* A copy whose elements are shared, as json_copy makes it, which loses elements when memory is short. NULL:
 * out of memory. */
json_t *mf_json_copy(const json_t *j);

/* Appends the text of j, with jansson's flags of writing. false: out of memory. */
bool mf_json_write(const json_t *j, size_t flags, mf_buf *out);
/* The same as a text for mf_free; NULL: out of memory, or j was NULL already. */
char *mf_json_text(const json_t *j, size_t flags);

#endif
