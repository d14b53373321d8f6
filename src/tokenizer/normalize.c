/* NFC in stretches: most text is already composed, so only a stretch that holds a character which could
 * change or join its neighbour goes through decomposition. Character data and composition are utf8proc's; its
 * own ordering of marks takes quadratic time, so runs of marks are sorted here. */
#include "tokenizer/normalize.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

enum {
    FIRST_MARK = 0x300, /* below it every character is composed and joins nothing before it */
    REPLACEMENT = 0xFFFD,
    MAX_DECOMPOSED = 8, /* code points a character decomposes to, more than any does */
    SHORT_RUN = 16,     /* marks in a row that are sorted by insertion */
    N_CLASSES = 256,    /* canonical combining classes */
};

static uint32_t decode(mf_str text, size_t *i)
{
    uint32_t c;
    *i += mf_utf8_decode(text.s + *i, text.n - *i, &c);
    return c == MF_UTF8_BAD ? REPLACEMENT : c;
}

static bool is_trailing_jamo(uint32_t c)
{
    return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
}

/* A character that normalization leaves alone and that joins nothing before it. */
static bool is_inert(uint32_t c)
{
    if (c < FIRST_MARK) return true;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)c);
    return p->combining_class == 0 && p->decomp_seqindex == UINT16_MAX && p->comb_index == UINT16_MAX &&
           !is_trailing_jamo(c);
}

static int combining_class(int32_t c)
{
    return (int)(utf8proc_get_property(c)->combining_class & (N_CLASSES - 1));
}

static void sort_short(int32_t *c, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        int32_t x = c[i];
        size_t k = i;
        for (; k > 0 && combining_class(c[k - 1]) > combining_class(x); k--) c[k] = c[k - 1];
        c[k] = x;
    }
}

/* Counting sort, stable. */
static bool sort_long(mf_normalizer *z, int32_t *c, size_t n)
{
    size_t at[N_CLASSES + 1] = {0};
    if (!mf_grow((void **)&z->spare, &z->spare_cap, n, sizeof *z->spare)) return false;
    memcpy(z->spare, c, n * sizeof *c);
    for (size_t i = 0; i < n; i++) at[combining_class(c[i]) + 1]++;
    for (size_t k = 1; k <= N_CLASSES; k++) at[k] += at[k - 1];
    for (size_t i = 0; i < n; i++) c[at[combining_class(z->spare[i])]++] = z->spare[i];
    return true;
}

/* Canonical order: marks between two starters by class, otherwise as they came. */
static bool order_marks(mf_normalizer *z)
{
    for (size_t i = 0, end; i < z->n_chars; i = end) {
        end = i + 1;
        if (combining_class(z->chars[i]) == 0) continue;
        while (end < z->n_chars && combining_class(z->chars[end]) != 0) end++;
        if (end - i <= SHORT_RUN)
            sort_short(z->chars + i, end - i);
        else if (!sort_long(z, z->chars + i, end - i))
            return false;
    }
    return true;
}

static bool decompose(mf_normalizer *z, mf_str stretch)
{
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    z->n_chars = 0;
    for (size_t i = 0; i < stretch.n;) {
        int boundary = 0;
        if (!mf_grow((void **)&z->chars, &z->chars_cap, z->n_chars + MAX_DECOMPOSED, sizeof *z->chars))
            return false;
        utf8proc_int32_t c = (utf8proc_int32_t)decode(stretch, &i);
        utf8proc_ssize_t n = utf8proc_decompose_char(c, z->chars + z->n_chars, MAX_DECOMPOSED, options,
                                                     &boundary);
        z->n_chars += n > 0 && n <= MAX_DECOMPOSED ? (size_t)n : 0;
    }
    return true;
}

static bool append_composed(mf_normalizer *z, mf_str stretch)
{
    if (!decompose(z, stretch) || !order_marks(z)) return false;
    utf8proc_ssize_t n = utf8proc_normalize_utf32(z->chars, (utf8proc_ssize_t)z->n_chars,
                                                  UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char bytes[4];
        if (!mf_buf_append(&z->out, bytes, mf_utf8_encode((uint32_t)z->chars[i], bytes))) return false;
    }
    return true;
}

/* Past ASCII that an ASCII character or the end follows. */
static size_t skip_plain(mf_str text, size_t i)
{
    while (i < text.n && (signed char)text.s[i] >= 0 && (i + 1 == text.n || (signed char)text.s[i + 1] >= 0))
        i++;
    return i;
}

/* The end of the stretch that begins at i: of one character and, under NFC, of all that might join it.
 * *changes: the stretch may not stay as it is. */
static size_t stretch_end(mf_str text, size_t i, bool nfc, bool *changes)
{
    uint32_t c;
    i += mf_utf8_decode(text.s + i, text.n - i, &c);
    *changes = c == MF_UTF8_BAD || (nfc && !is_inert(c));
    for (size_t next = i; nfc && i < text.n; i = next) {
        if (is_inert(decode(text, &next))) break;
        *changes = true;
    }
    return i;
}

bool mf_normalize(mf_normalizer *z, mf_str text, bool nfc, mf_str *out)
{
    size_t kept = 0; /* up to here the text is in z->out */
    z->out.len = 0;
    for (size_t i = 0, end; (i = skip_plain(text, i)) < text.n; i = end) {
        bool changes;
        end = stretch_end(text, i, nfc, &changes);
        if (!changes) continue;
        mf_str stretch = {text.s + i, end - i};
        if (!mf_buf_append(&z->out, text.s + kept, i - kept)) return false;
        if (!(nfc ? append_composed(z, stretch) : mf_buf_str(&z->out, "\xEF\xBF\xBD"))) return false;
        kept = end;
    }
    *out = text;
    if (kept == 0) return true;
    if (!mf_buf_append(&z->out, text.s + kept, text.n - kept)) return false;
    *out = (mf_str){z->out.data, z->out.len};
    return true;
}

void mf_normalizer_free(mf_normalizer *z)
{
    mf_buf_free(&z->out);
    mf_free(z->chars);
    mf_free(z->spare);
    *z = (mf_normalizer){0};
}
