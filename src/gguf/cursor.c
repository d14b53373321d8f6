/* Bounds-checked reading and the spelling of names in messages. */
#include "gguf/cursor.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <stdio.h>

const uint8_t *mf_cursor_take(mf_cursor *c, uint64_t n, const char *what, minfer_error *err)
{
    const uint8_t *p = c->data + c->pos;
    if (n > mf_cursor_left(c)) {
        mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: %s takes %llu bytes, but only %zu are left", c->pos, what,
                (unsigned long long)n, mf_cursor_left(c));
        return NULL;
    }
    c->pos += (size_t)n;
    return p;
}

minfer_status mf_cursor_u32(mf_cursor *c, const char *what, uint32_t *v, minfer_error *err)
{
    const uint8_t *p = mf_cursor_take(c, sizeof *v, what, err);
    if (!p) return MINFER_ERR_FORMAT;
    *v = mf_load_u32(p);
    return MINFER_OK;
}

minfer_status mf_cursor_u64(mf_cursor *c, const char *what, uint64_t *v, minfer_error *err)
{
    const uint8_t *p = mf_cursor_take(c, sizeof *v, what, err);
    if (!p) return MINFER_ERR_FORMAT;
    *v = mf_load_u64(p);
    return MINFER_OK;
}

minfer_status mf_cursor_str(mf_cursor *c, const char *what, mf_str *s, minfer_error *err)
{
    const uint8_t *length = mf_cursor_take(c, 8, what, err), *p = NULL;
    if (length) p = mf_cursor_take(c, mf_load_u64(length), what, err);
    if (!p) return MINFER_ERR_FORMAT;
    *s = (mf_str){(const char *)p, (size_t)(c->data + c->pos - p)};
    return MINFER_OK;
}

minfer_status mf_cursor_name(mf_cursor *c, const char *what, size_t limit, mf_str *s, minfer_error *err)
{
    size_t at = c->pos;
    MF_TRY(mf_cursor_str(c, what, s, err));
    if (s->n > limit)
        return mf_fail(err, MINFER_ERR_LIMIT, "byte %zu: %s %s is too long, at most %zu bytes are allowed",
                       at, what, mf_quote(*s).text, limit);
    const char *fault = NULL;
    if (s->n == 0)
        fault = "is empty";
    else if (memchr(s->s, 0, s->n))
        fault = "contains a NUL byte";
    else if (!mf_utf8_valid(s->s, s->n))
        fault = "is not valid UTF-8";
    if (!fault) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: %s %s %s", at, what, mf_quote(*s).text, fault);
}

/* Bytes of a name that are shown; each may take four characters, and its length follows. */
enum { QUOTE_BYTES = 64 };

mf_quoted mf_quote(mf_str s)
{
    mf_quoted q;
    size_t out = 0, in = 0, room = sizeof q.text - 32;
    q.text[out++] = '\'';
    while (in < s.n && in < QUOTE_BYTES && out + 4 <= room) {
        uint32_t cp;
        size_t n = mf_utf8_decode(s.s + in, s.n - in, &cp);
        if (cp == MF_UTF8_BAD || cp < 32 || (cp >= 127 && cp < 160)) {
            out += (size_t)snprintf(q.text + out, 5, "\\x%02X", (unsigned)(unsigned char)s.s[in]);
            n = 1;
        } else {
            memcpy(q.text + out, s.s + in, n);
            out += n;
        }
        in += n;
    }
    if (in < s.n)
        snprintf(q.text + out, sizeof q.text - out, "...' (%zu bytes)", s.n);
    else
        snprintf(q.text + out, sizeof q.text - out, "'");
    return q;
}
