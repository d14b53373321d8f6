/* One Knuth-Morris-Pratt matcher per stop string. What a matcher has matched is a prefix of its string, so
 * the bytes held back need no buffer: they are the longest of these prefixes. */
#include "sampling/stop.h"

#include <string.h>

void mf_stop_free(mf_stop *s)
{
    for (size_t i = 0; i < s->n; i++) {
        mf_free(s->strings[i].text);
        mf_free(s->strings[i].back);
    }
    mf_free(s->strings);
    *s = (mf_stop){0};
}

/* How much of the string the stream ends with after c, when it ended with `matched` < len of it before. */
static size_t advance(const mf_stop_string *t, size_t matched, char c)
{
    while (matched > 0 && t->text[matched] != c) matched = t->back[matched - 1];
    return t->text[matched] == c ? matched + 1 : 0;
}

static bool string_init(mf_stop_string *t, const char *text, size_t len)
{
    t->len = len;
    t->text = mf_strndup(text, len);
    t->back = mf_calloc(len, sizeof *t->back);
    if (!t->text || !t->back) return false;
    for (size_t i = 1; i < len; i++) t->back[i] = advance(t, t->back[i - 1], text[i]);
    return true;
}

minfer_status mf_stop_init(mf_stop *s, const char *const *strings, const size_t *lens, size_t n,
                           minfer_error *err)
{
    *s = (mf_stop){0};
    s->strings = mf_calloc(n, sizeof *s->strings);
    if (!s->strings) return MF_NOMEM(err);
    for (; s->n < n; s->n++) {
        size_t i = s->n, len = lens ? lens[i] : strlen(strings[i]);
        minfer_status st = MINFER_OK;
        if (len == 0)
            st = mf_fail(err, MINFER_ERR_ARG, "stop string %zu of %zu is empty", i + 1, n);
        else if (!string_init(&s->strings[i], strings[i], len))
            st = MF_NOMEM(err);
        if (st == MINFER_OK) continue;
        s->n++; /* the one that failed may own a part */
        mf_stop_free(s);
        return st;
    }
    return MINFER_OK;
}

static size_t held(const mf_stop *s)
{
    return s->longest ? s->longest->matched : 0;
}

/* Moves every matcher over c; sees which match has completed with the earliest start. */
static void advance_all(mf_stop *s, char c)
{
    s->n_seen++;
    s->longest = NULL;
    for (size_t i = 0; i < s->n; i++) {
        mf_stop_string *t = &s->strings[i];
        t->matched = advance(t, t->matched, c);
        if (t->matched == t->len) {
            uint64_t start = s->n_seen - t->len;
            if (!s->found || start < s->first) s->first = start;
            s->found = true;
            t->matched = 0; /* what starts later is of no interest */
        }
        if (t->matched > held(s)) s->longest = t;
    }
}

/* n bytes of what was held before c came, and c itself if n goes beyond. */
static bool release(const char *text, size_t n_held, char c, size_t n, mf_buf *out)
{
    return mf_buf_append(out, text, n < n_held ? n : n_held) && (n <= n_held || mf_buf_char(out, c));
}

static bool push_byte(mf_stop *s, char c, mf_buf *out)
{
    const char *text = s->longest ? s->longest->text : "";
    size_t n_held = held(s);
    uint64_t from = s->n_seen - n_held;
    advance_all(s, c);
    uint64_t certain = s->n_seen - held(s); /* no match can start before it any more */
    s->matched = s->found && s->first <= certain;
    return release(text, n_held, c, (size_t)((s->matched ? s->first : certain) - from), out);
}

bool mf_stop_push(mf_stop *s, const char *bytes, size_t n, mf_buf *out, bool *matched)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n && !s->matched; i++) ok = push_byte(s, bytes[i], out);
    *matched = s->matched;
    return ok;
}

bool mf_stop_finish(mf_stop *s, mf_buf *out, bool *matched)
{
    bool ok = true;
    if (s->longest && !s->matched) {
        uint64_t from = s->n_seen - held(s), to = s->found ? s->first : s->n_seen;
        ok = mf_buf_append(out, s->longest->text, (size_t)(to - from));
    }
    s->longest = NULL;
    s->matched = s->found;
    *matched = s->matched;
    return ok;
}
