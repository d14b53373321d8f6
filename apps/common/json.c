/* JSON out of what may not be UTF-8, and out of files. */
#include "common/json.h"

#include "base/filemap.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

json_t *app_json_text(const char *s, size_t n)
{
    mf_buf b = {0};
    bool ok = mf_buf_append(&b, "", 0);
    for (size_t i = 0, k; i < n && ok; i += k) {
        uint32_t cp;
        k = mf_utf8_decode(s + i, n - i, &cp);
        ok = cp == MF_UTF8_BAD ? mf_buf_str(&b, "\xEF\xBF\xBD") : mf_buf_append(&b, s + i, k);
    }
    json_t *j = ok ? json_stringn(b.data, b.len) : NULL;
    mf_buf_free(&b);
    return j;
}

bool app_json_take(json_t *j, size_t indent, mf_buf *out)
{
    enum { DIGITS = 15 }; /* so that 0.1 is written 0.1 */
    char *text =
        j ? json_dumps(j, (indent ? JSON_INDENT(indent) : JSON_COMPACT) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    bool ok = text && mf_buf_str(out, text);
    free(text);
    json_decref(j);
    return ok;
}

enum { MAX_JSON = 1 << 28 };

minfer_status app_json_read(const char *path, json_t **out, minfer_error *err)
{
    char *text;
    size_t n;
    json_error_t e;
    MF_TRY(mf_file_read(path, MAX_JSON, &text, &n, err));
    *out = json_loadb(text, n, JSON_ALLOW_NUL, &e);
    mf_free(text);
    if (*out) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "%s: line %d, column %d: %s", strcmp(path, "-") ? path : "stdin",
                   e.line, e.column, e.text);
}
