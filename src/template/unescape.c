/* Escapes in string literals: Python's. */
#include "template/unescape.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Up to max digits of a base from p; *used tells how many. */
static uint32_t take_digits(const char *p, size_t n, size_t max, int base, size_t *used)
{
    uint32_t v = 0;
    for (*used = 0; *used < n && *used < max; ++*used) {
        unsigned char c = (unsigned char)p[*used];
        int d = isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 99;
        if (d >= base) break;
        v = v * (uint32_t)base + (uint32_t)d;
    }
    return v;
}

static const char *put_codepoint(mf_trender *r, mf_tsb *out, uint32_t cp, minfer_status *st)
{
    if (cp >= 0xD800 && cp < 0xE000) return "surrogates are not allowed";
    if (cp > 0x10FFFF) return "illegal Unicode character";
    *st = mf_tsb_codepoint(r, out, cp);
    return NULL;
}

/* p[0] is the character after the backslash. */
static const char *escape(mf_trender *r, mf_tsb *out, const char *p, size_t n, size_t *used,
                          minfer_status *st)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    const char *simple = *p ? strchr(from, *p) : NULL;
    size_t digits, want = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    *used = 1;
    if (simple) {
        *st = mf_tsb_char(r, out, to[simple - from]);
        return NULL;
    }
    if (*p == '\n') return NULL; /* the line goes on */
    if (*p == 'N') return "named characters (\\N{...}) are not supported";
    if (*p >= '0' && *p <= '7') {
        uint32_t cp = take_digits(p, n, 3, 8, used);
        return put_codepoint(r, out, cp, st);
    }
    if (!want) {
        *used = 0;
        *st = mf_tsb_char(r, out, '\\');
        return NULL;
    }
    uint32_t cp = take_digits(p + 1, n - 1, want, 16, &digits);
    if (digits < want) return "a \\x, \\u or \\U escape is cut short";
    *used = 1 + want;
    return put_codepoint(r, out, cp, st);
}

minfer_status mf_tunescape(mf_trender *r, const char *p, size_t n, mf_tval *out, const char **bad)
{
    mf_tsb text = {0};
    minfer_status st = MINFER_OK;
    if (!n || !memchr(p, '\\', n)) return mf_tstr_wrap(r, p, n, out);
    for (size_t i = 0, used; i < n && !*bad; i += used) {
        const char *slash = memchr(p + i, '\\', n - i);
        size_t plain = slash ? (size_t)(slash - p) - i : n - i;
        MF_TRY(mf_tsb_put(r, &text, p + i, plain));
        i += plain;
        used = 0;
        if (!slash) break;
        i++;
        *bad = escape(r, &text, p + i, n - i, &used, &st);
        MF_TRY(st);
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}
