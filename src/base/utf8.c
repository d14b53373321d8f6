/* UTF-8, without tables: the ranges of the second byte are what table 3-7 of the Unicode Standard lists. */
#include "base/utf8.h"

/* Length the lead byte promises (0: not a lead byte) and the allowed range of the second byte. */
static size_t lead_length(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (c < 0x80) return 1;
    if (c < 0xC2) return 0;
    if (c < 0xE0) return 2;
    if (c < 0xF0) {
        if (c == 0xE0) *lo = 0xA0;
        if (c == 0xED) *hi = 0x9F;
        return 3;
    }
    if (c < 0xF5) {
        if (c == 0xF0) *lo = 0x90;
        if (c == 0xF4) *hi = 0x8F;
        return 4;
    }
    return 0;
}

size_t mf_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    unsigned char lo, hi;
    size_t len = lead_length(p[0], &lo, &hi);
    *cp = MF_UTF8_BAD;
    if (len == 0) return 1;
    if (len == 1) {
        *cp = p[0];
        return 1;
    }
    uint32_t v = p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (i >= n || p[i] < lo || p[i] > hi) return i;
        v = v << 6 | (p[i] & 0x3F);
        lo = 0x80;
        hi = 0xBF;
    }
    *cp = v;
    return len;
}

size_t mf_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)((0xF00u >> n & 0xFF) | cp);
    return n;
}

bool mf_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += mf_utf8_decode(s + i, n - i, &cp);
        if (cp == MF_UTF8_BAD) return false;
    }
    return true;
}

size_t mf_utf8_incomplete_tail(const char *s, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        unsigned char lo, hi;
        size_t len = lead_length((unsigned char)s[n - k], &lo, &hi);
        if (len == 1) return 0;
        if (len == 0) continue;
        uint32_t cp;
        return k < len && mf_utf8_decode(s + n - k, k, &cp) == k ? k : 0;
    }
    return 0;
}

size_t mf_utf8_count(const char *s, size_t n)
{
    size_t count = 0;
    uint32_t cp;
    for (size_t i = 0; i < n; count++) i += mf_utf8_decode(s + i, n - i, &cp);
    return count;
}
