/* Writing JSON: strings and numbers. */
#include "server/json_out.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static bool put_special(mf_buf *b, unsigned char c)
{
    static const char letters[] = "btn?fr"; /* from 8 on */
    if (c == '"' || c == '\\') return mf_buf_char(b, '\\') && mf_buf_char(b, (char)c);
    if (c >= 8 && c <= 13 && c != 11) return mf_buf_char(b, '\\') && mf_buf_char(b, letters[c - 8]);
    return mf_buf_printf(b, "\\u%04x", c);
}

/* Bytes from s on that stand for themselves. */
static size_t plain(const char *s, size_t n)
{
    size_t i = 0;
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') break;
    }
    return i;
}

bool srv_put_inside(mf_buf *b, const char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t cp;
        k = plain(text + i, n - i);
        if (k) {
            if (!mf_buf_append(b, text + i, k)) return false;
            continue;
        }
        k = mf_utf8_decode(text + i, n - i, &cp);
        bool ok = cp == MF_UTF8_BAD ? mf_buf_str(b, "\xEF\xBF\xBD")
                  : k > 1           ? mf_buf_append(b, text + i, k)
                                    : put_special(b, (unsigned char)text[i]);
        if (!ok) return false;
    }
    return true;
}

bool srv_put_text(mf_buf *b, const char *text, size_t n)
{
    if (!text) return mf_buf_str(b, "null");
    return mf_buf_char(b, '"') && srv_put_inside(b, text, n) && mf_buf_char(b, '"');
}

bool srv_put_string(mf_buf *b, const char *s)
{
    return srv_put_text(b, s, s ? strlen(s) : 0);
}

bool srv_put_float(mf_buf *b, float v)
{
    return mf_buf_printf(b, "%.9g", isfinite(v) ? (double)v : 0.0);
}
