/* JSON out of what may not be UTF-8, and out of files. */
#include "common/json.h"

#include "base/filemap.h"
#include "base/utf8.h"

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
    size_t layout = indent ? JSON_INDENT(indent) : JSON_COMPACT;
    bool ok = j && mf_json_write(j, layout | JSON_REAL_PRECISION(DIGITS), out);
    json_decref(j);
    return ok;
}

enum { MAX_JSON = 1 << 28 };

minfer_status app_json_read(const char *path, json_t **out, minfer_error *err)
{
    char *text;
    size_t n;
    mf_json_error e;
    MF_TRY(mf_file_read(path, MAX_JSON, &text, &n, err));
    *out = mf_json_read(text, n, 0, &e);
    mf_free(text);
    if (*out) return MINFER_OK;
    return mf_fail_prefix(err, mf_json_fail(&e, err), "%s", strcmp(path, "-") ? path : "stdin");
}
