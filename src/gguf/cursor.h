/* Reading forward through bytes that may end at any point: every take is checked against what is left. Owns
 * nothing. Error lines begin with the offset in the file; callers put the key or tensor in front. */
#ifndef MF_GGUF_CURSOR_H
#define MF_GGUF_CURSOR_H

#include "gguf/gguf.h"

typedef struct mf_cursor {
    const uint8_t *data;
    size_t size, pos; /* pos <= size */
} mf_cursor;

static inline size_t mf_cursor_left(const mf_cursor *c)
{
    return c->size - c->pos;
}

/* The next n bytes; what names them in the error. NULL: err holds a MINFER_ERR_FORMAT. */
const uint8_t *mf_cursor_take(mf_cursor *c, uint64_t n, const char *what, minfer_error *err);
minfer_status mf_cursor_u32(mf_cursor *c, const char *what, uint32_t *v, minfer_error *err);
minfer_status mf_cursor_u64(mf_cursor *c, const char *what, uint64_t *v, minfer_error *err);

/* A length of 8 bytes and that many bytes. */
minfer_status mf_cursor_str(mf_cursor *c, const char *what, mf_str *s, minfer_error *err);

/* A name: a string of 1..limit bytes, UTF-8, without NUL. Never cut. */
minfer_status mf_cursor_name(mf_cursor *c, const char *what, size_t limit, mf_str *s, minfer_error *err);

/* A name as messages show it: in quotes, control characters and broken UTF-8 as \xNN, long ones shortened
 * with their length behind. The buffer lives to the end of the full expression: mf_quote(name).text */
typedef struct mf_quoted {
    char text[160];
} mf_quoted;
mf_quoted mf_quote(mf_str s);

#endif
