/* Searching, cutting and padding. */
#include "template/strings.h"
#include "template/iter.h"
#include "template/print.h"
#include "template/unicode.h"

#include <string.h>

minfer_status mf_ttext_find(mf_trender *r, const mf_tstr *s, const mf_tstr *what, size_t from, size_t to,
                            size_t *out)
{
    *out = MF_NOT_FOUND;
    if (from > to || to - from < what->n) return MINFER_OK;
    MF_TRY(mf_trender_charge(r, to - from));
    const char *hit = what->n ? memmem(s->p + from, to - from, what->p, what->n) : s->p + from;
    if (hit) *out = (size_t)(hit - s->p);
    return MINFER_OK;
}

minfer_status mf_ttext_rfind(mf_trender *r, const mf_tstr *s, const mf_tstr *what, size_t from, size_t to,
                             size_t *out)
{
    *out = MF_NOT_FOUND;
    if (from > to || to - from < what->n) return MINFER_OK;
    MF_TRY(mf_trender_charge(r, to - from));
    for (size_t i = to - what->n + 1; i > from; i--) {
        const char *p = s->p + i - 1;
        if (what->n && *p != *what->p) continue;
        MF_TRY(mf_trender_charge(r, what->n));
        if (what->n && memcmp(p, what->p, what->n) != 0) continue;
        *out = i - 1;
        break;
    }
    return MINFER_OK;
}

/* An empty old stands before every character and at the end. */
static minfer_status replace_empty(mf_trender *r, const mf_tstr *s, const mf_tstr *with, int64_t count,
                                   mf_tsb *text)
{
    for (size_t i = 0;; count--) {
        if (count == 0) return mf_tsb_put(r, text, s->p + i, s->n - i);
        MF_TRY(mf_tsb_put(r, text, with->p, with->n));
        if (i == s->n) return MINFER_OK;
        size_t k = mf_tchar_len(s->p + i);
        MF_TRY(mf_tsb_put(r, text, s->p + i, k));
        i += k;
    }
}

minfer_status mf_ttext_replace(mf_trender *r, const mf_tstr *s, const mf_tstr *old, const mf_tstr *with,
                               int64_t count, mf_tval *out)
{
    mf_tsb text = {0};
    if (old->n == 0) {
        MF_TRY(replace_empty(r, s, with, count, &text));
        return mf_tstr_wrap(r, text.p, text.n, out);
    }
    size_t done = 0, hit;
    for (; count != 0; count--) {
        MF_TRY(mf_ttext_find(r, s, old, done, s->n, &hit));
        if (hit == MF_NOT_FOUND) break;
        MF_TRY(mf_tsb_put(r, &text, s->p + done, hit - done));
        MF_TRY(mf_tsb_put(r, &text, with->p, with->n));
        done = hit + old->n;
    }
    if (done == 0) return mf_tstr_view(r, s, 0, s->n, out);
    MF_TRY(mf_tsb_put(r, &text, s->p + done, s->n - done));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static bool in_set(const mf_tstr *set, const char *p, size_t n)
{
    if (!set) {
        uint32_t cp;
        mf_tuc_at(p, &cp);
        return mf_tuc_is_space(cp);
    }
    for (size_t i = 0; i < set->n; i += mf_tchar_len(set->p + i))
        if (mf_tchar_len(set->p + i) == n && memcmp(set->p + i, p, n) == 0) return true;
    return false;
}

minfer_status mf_ttext_strip(mf_trender *r, const mf_tstr *s, const mf_tstr *set, mf_tends ends, mf_tval *out)
{
    size_t from = 0, to = s->n, cost = set ? set->n * 8 : 1; /* set is walked character by character */
    uint32_t cp;
    for (size_t k; (ends & MF_LEFT) && from < to; from += k) {
        MF_TRY(mf_trender_charge(r, cost));
        k = mf_tchar_len(s->p + from);
        if (!in_set(set, s->p + from, k)) break;
    }
    for (size_t k; (ends & MF_RIGHT) && from < to; to -= k) {
        MF_TRY(mf_trender_charge(r, cost));
        k = mf_tuc_before(s->p + from, s->p + to, &cp);
        if (!in_set(set, s->p + to - k, k)) break;
    }
    return mf_tstr_view(r, s, from, to - from, out);
}

/* -- splitting -- */

static minfer_status push_part(mf_trender *r, const mf_tstr *s, size_t from, size_t to, mf_tlist *out)
{
    mf_tval part;
    MF_TRY(mf_tstr_view(r, s, from, to - from, &part));
    return mf_tlist_push(r, out, part);
}

static size_t skip_class(const mf_tstr *s, size_t i, bool space)
{
    uint32_t cp;
    for (size_t k; i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        if (mf_tuc_is_space(cp) != space) break;
    }
    return i;
}

static size_t skip_class_back(const mf_tstr *s, size_t i, bool space)
{
    uint32_t cp;
    for (size_t k; i > 0; i -= k) {
        k = mf_tuc_before(s->p, s->p + i, &cp);
        if (mf_tuc_is_space(cp) != space) break;
    }
    return i;
}

static minfer_status split_words(mf_trender *r, const mf_tstr *s, int64_t max, mf_tlist *out)
{
    MF_TRY(mf_trender_charge(r, s->n));
    for (size_t i = skip_class(s, 0, true); i < s->n; max--) {
        if (max == 0) return push_part(r, s, i, s->n, out);
        size_t end = skip_class(s, i, false);
        MF_TRY(push_part(r, s, i, end, out));
        i = skip_class(s, end, true);
    }
    return MINFER_OK;
}

minfer_status mf_ttext_split(mf_trender *r, const mf_tstr *s, const mf_tstr *sep, int64_t max, mf_tlist *out)
{
    size_t from = 0, hit;
    if (!sep) return split_words(r, s, max, out);
    if (sep->n == 0) return mf_trender_raise(r, MF_TE_VALUE, "empty separator");
    for (; max != 0; max--) {
        MF_TRY(mf_ttext_find(r, s, sep, from, s->n, &hit));
        if (hit == MF_NOT_FOUND) break;
        MF_TRY(push_part(r, s, from, hit, out));
        from = hit + sep->n;
    }
    return push_part(r, s, from, s->n, out);
}

static void reverse(mf_tlist *l, size_t from)
{
    for (size_t i = from, k = l->n; i + 1 < k; i++, k--) {
        mf_tval swap = l->v[i];
        l->v[i] = l->v[k - 1];
        l->v[k - 1] = swap;
    }
}

static minfer_status rsplit_words(mf_trender *r, const mf_tstr *s, int64_t max, mf_tlist *out)
{
    MF_TRY(mf_trender_charge(r, s->n));
    for (size_t i = skip_class_back(s, s->n, true); i > 0; max--) {
        if (max == 0) return push_part(r, s, 0, i, out);
        size_t start = skip_class_back(s, i, false);
        MF_TRY(push_part(r, s, start, i, out));
        i = skip_class_back(s, start, true);
    }
    return MINFER_OK;
}

minfer_status mf_ttext_rsplit(mf_trender *r, const mf_tstr *s, const mf_tstr *sep, int64_t max, mf_tlist *out)
{
    size_t first = out->n, to = s->n, hit;
    if (sep && sep->n == 0) return mf_trender_raise(r, MF_TE_VALUE, "empty separator");
    for (; sep && max != 0; max--) {
        MF_TRY(mf_ttext_rfind(r, s, sep, 0, to, &hit));
        if (hit == MF_NOT_FOUND) break;
        MF_TRY(push_part(r, s, hit + sep->n, to, out));
        to = hit;
    }
    MF_TRY(sep ? push_part(r, s, 0, to, out) : rsplit_words(r, s, max, out));
    reverse(out, first);
    return MINFER_OK;
}

minfer_status mf_ttext_splitlines(mf_trender *r, const mf_tstr *s, bool keep_ends, mf_tlist *out)
{
    uint32_t cp;
    size_t from = 0;
    MF_TRY(mf_trender_charge(r, s->n));
    for (size_t i = 0, k; i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        if (!mf_tuc_is_newline(cp)) continue;
        if (cp == '\r' && i + 1 < s->n && s->p[i + 1] == '\n') k = 2;
        MF_TRY(push_part(r, s, from, keep_ends ? i + k : i, out));
        from = i + k;
    }
    return from < s->n ? push_part(r, s, from, s->n, out) : MINFER_OK;
}

/* -- padding and joining -- */

minfer_status mf_ttext_pad(mf_trender *r, const mf_tstr *s, int64_t width, char align, const mf_tstr *fill,
                           mf_tval *out)
{
    static const mf_tstr blank = {" ", 1, 1};
    if (!fill) fill = &blank;
    if (fill->chars != 1)
        return mf_trender_raise(r, MF_TE_TYPE, "The fill character must be exactly one character long");
    if (width <= (int64_t)s->chars) return mf_tstr_view(r, s, 0, s->n, out);
    size_t pad = (size_t)width - s->chars, left = align == '>' ? pad : 0;
    if (align == '^') left = pad / 2 + (pad & (size_t)width & 1);
    mf_tsb text = {0};
    MF_TRY(mf_tsb_fill(r, &text, fill->p, fill->n, left));
    MF_TRY(mf_tsb_put(r, &text, s->p, s->n));
    MF_TRY(mf_tsb_fill(r, &text, fill->p, fill->n, pad - left));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

minfer_status mf_ttext_join(mf_trender *r, const mf_tstr *s, mf_tval v, bool convert, mf_tval *out)
{
    mf_titer *it;
    mf_tsb text = {0};
    MF_TRY(mf_titer_open(r, v, &it));
    for (size_t i = 0;; i++) {
        mf_tval item;
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) return mf_tstr_wrap(r, text.p, text.n, out);
        if (!convert && !mf_tis(item, MF_T_STR))
            return mf_trender_raise(r, MF_TE_TYPE, "sequence item %zu: expected str instance, %s found", i,
                                    mf_tval_type_name(item));
        if (i) MF_TRY(mf_tsb_put(r, &text, s->p, s->n));
        MF_TRY(mf_tval_str(r, &text, item));
    }
}
