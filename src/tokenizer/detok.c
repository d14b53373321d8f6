/* Ids to text: the bytes of one token, and whole characters out of a stream of them. */
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

static bool put_char(const char *s, size_t n, bool bad, mf_buf *out)
{
    return bad ? mf_buf_str(out, "\xEF\xBF\xBD") : mf_buf_append(out, s, n);
}

/* Gives out what is held, from its front, except what further bytes may complete. */
static bool release(mf_detok *d, mf_buf *out)
{
    while (d->n_held > mf_utf8_incomplete_tail(d->held, d->n_held)) {
        uint32_t c;
        size_t n = mf_utf8_decode(d->held, d->n_held, &c);
        if (!put_char(d->held, n, c == MF_UTF8_BAD, out)) return false;
        d->n_held = (uint8_t)(d->n_held - n);
        memmove(d->held, d->held + n, d->n_held);
    }
    return true;
}

bool mf_detok_push(mf_detok *d, const char *bytes, size_t n, mf_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (!release(d, out)) return false;
        d->held[d->n_held++] = bytes[i];
    }
    return release(d, out);
}

bool mf_detok_finish(mf_detok *d, mf_buf *out)
{
    if (!release(d, out)) return false;
    bool held = d->n_held > 0;
    d->n_held = 0;
    return !held || put_char(NULL, 0, true, out);
}
