/* Writing JSON into buffers. All return false when memory ran out. */
#ifndef APP_SERVER_JSON_OUT_H
#define APP_SERVER_JSON_OUT_H

#include "base/mem.h"

/* "text" with quotes; what is no UTF-8 becomes U+FFFD. NULL: null. */
bool srv_put_text(mf_buf *b, const char *text, size_t n);
bool srv_put_string(mf_buf *b, const char *s);
/* The inside of such a string, without quotes. */
bool srv_put_inside(mf_buf *b, const char *text, size_t n);
bool srv_put_float(mf_buf *b, float v); /* finite */

#endif
