/* JSON out of what may not be UTF-8, and out of files. */
#ifndef APP_COMMON_JSON_H
#define APP_COMMON_JSON_H

#include "base/json.h"

/* A string; each ill-formed part becomes U+FFFD. NULL: out of memory. */
json_t *app_json_text(const char *s, size_t n);

/* Takes j, which may be NULL (out of memory), and appends its text; `indent` 0: on one line. */
bool app_json_take(json_t *j, size_t indent, mf_buf *out);

/* Reads a file, or stdin for "-"; what is no JSON is refused with line and column. */
minfer_status app_json_read(const char *path, json_t **out, minfer_error *err);

#endif
