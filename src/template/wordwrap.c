/* |wordwrap: Python's textwrap with its rules for hyphens. */
#include "template/filters.h"
#include "template/ops.h"
#include "template/strings.h"
#include "template/unicode.h"

#include <string.h>

typedef struct wrapper {
    mf_trender *r;
    const uint32_t *c; /* the characters of the line being wrapped */
    size_t n;
    const mf_tstr *s;
    size_t width;
    bool break_words, break_hyphens;
} wrapper;

typedef struct span { /* characters [from, to) */
    size_t from, to;
} span;

typedef struct spans {
    span *v;
    size_t n;
} spans;

static bool is_blank(uint32_t c)
{
    return c == ' ' || (c >= 9 && c <= 13);
}

static bool letter(const wrapper *w, size_t i)
{
    return i < w->n && mf_tuc_is_word(w->c[i]) && !mf_tuc_is_decimal(w->c[i]);
}

static bool word(const wrapper *w, size_t i)
{
    return i < w->n && mf_tuc_is_word(w->c[i]);
}

static bool word_or_punctuation(const wrapper *w, size_t i)
{
    return word(w, i) || (i < w->n && w->c[i] && w->c[i] < 0x80 && strchr("!\"'&.,?", (int)w->c[i]));
}

/* Two or more dashes from i, then a word: the place behind them, or i. */
static size_t dashes(const wrapper *w, size_t i)
{
    size_t end = i;
    while (end < w->n && w->c[end] == '-') end++;
    return end - i >= 2 && word(w, end) ? end : i;
}

/* A hyphen at i that a line may end with: after two letters (or a-b-) and before two. */
static bool hyphen(const wrapper *w, size_t i)
{
    if (w->c[i] != '-' || i < 2 || !letter(w, i - 1)) return false;
    bool before = letter(w, i - 2) || (w->c[i - 2] == '-' && i >= 3 && letter(w, i - 3));
    size_t next = i + 2 < w->n && w->c[i + 2] == '-' ? i + 3 : i + 2;
    return before && letter(w, i + 1) && letter(w, next);
}

static size_t chunk_end(const wrapper *w, size_t i)
{
    size_t end = i;
    if (is_blank(w->c[i])) {
        while (end < w->n && is_blank(w->c[end])) end++;
        return end;
    }
    if (!w->break_hyphens) {
        while (end < w->n && !is_blank(w->c[end])) end++;
        return end;
    }
    if (i > 0 && word_or_punctuation(w, i - 1) && (end = dashes(w, i)) > i) return end;
    for (end = i + 1; end < w->n && !is_blank(w->c[end]); end++) {
        if (hyphen(w, end)) return end + 1;
        if (word_or_punctuation(w, end - 1) && dashes(w, end) > end) return end;
    }
    return end;
}

static minfer_status make_chunks(wrapper *w, spans *out)
{
    out->v = mf_trender_alloc(w->r, w->n, sizeof *out->v);
    if (!out->v) return mf_trender_failed(w->r);
    for (size_t i = 0; i < w->n; i = out->v[out->n++].to) out->v[out->n] = (span){i, chunk_end(w, i)};
    return MINFER_OK;
}

static bool all_blank(const wrapper *w, span s)
{
    while (s.from < s.to && mf_tuc_is_space(w->c[s.from])) s.from++;
    return s.from == s.to;
}

/* How much of a chunk that is too long for any line goes on this one. */
static size_t break_at(const wrapper *w, span chunk, size_t room)
{
    if (w->break_hyphens) {
        for (size_t k = room; k > 1; k--) {
            if (w->c[chunk.from + k - 1] != '-') continue;
            for (size_t i = 0; i + 1 < k; i++)
                if (w->c[chunk.from + i] != '-') return k;
            break;
        }
    }
    return room;
}

static minfer_status put_line(wrapper *w, size_t from, size_t to, mf_tlist *lines)
{
    mf_tval line;
    size_t a = mf_tstr_offset(w->s, from), b = mf_tstr_offset(w->s, to);
    MF_TRY(mf_trender_charge(w->r, b));
    MF_TRY(mf_tstr_view(w->r, w->s, a, b - a, &line));
    return mf_tlist_push(w->r, lines, line);
}

static minfer_status wrap_chunks(wrapper *w, spans chunks, mf_tlist *lines)
{
    bool first = true;
    for (size_t i = 0; i < chunks.n;) {
        if (!first && all_blank(w, chunks.v[i]) && ++i == chunks.n) break;
        size_t from = chunks.v[i].from, to = from,
               last = from; /* last: where the last chunk on the line begins */
        for (; i < chunks.n && chunks.v[i].to - from <= w->width; i++) {
            last = chunks.v[i].from;
            to = chunks.v[i].to;
        }
        if (i < chunks.n && chunks.v[i].to - chunks.v[i].from > w->width) {
            size_t room = w->width - (to - from);
            if (w->break_words) {
                size_t k = break_at(w, chunks.v[i], room);
                last = chunks.v[i].from;
                to = chunks.v[i].from += k;
            } else if (to == from) {
                last = chunks.v[i].from;
                to = chunks.v[i++].to;
            }
        }
        if (to > from && all_blank(w, (span){last, to})) to = last;
        if (to > from) MF_TRY(put_line(w, from, to, lines));
        first = first && to == from;
        MF_TRY(mf_trender_step(w->r));
    }
    return MINFER_OK;
}

static minfer_status decode(wrapper *w, const mf_tstr *line)
{
    uint32_t *c = mf_trender_alloc(w->r, line->chars, sizeof *c);
    if (!c) return mf_trender_failed(w->r);
    w->n = 0;
    for (size_t i = 0; i < line->n; w->n++) i += mf_tuc_at(line->p + i, &c[w->n]);
    w->c = c;
    w->s = line;
    return mf_trender_charge(w->r, line->n);
}

static minfer_status wrap_line(wrapper *w, const mf_tstr *line, const mf_tstr *sep, mf_tval *out)
{
    mf_tlist *lines;
    spans chunks = {0};
    MF_TRY(mf_tlist_new(w->r, 0, &lines));
    MF_TRY(decode(w, line));
    MF_TRY(make_chunks(w, &chunks));
    MF_TRY(wrap_chunks(w, chunks, lines));
    return mf_ttext_join(w->r, sep, mf_tlistval(lines), false, out);
}

minfer_status mf_tfilter_wordwrap(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static const mf_tstr newline = {"\n", 1, 1};
    const mf_tstr *sep = &newline, *s;
    mf_tlist *lines;
    int64_t width;
    wrapper w = {
        .r = r, .break_words = mf_targ_truth(a, 2, true), .break_hyphens = mf_targ_truth(a, 4, true)};
    if (mf_tis(a->v[0], MF_T_UNDEFINED)) return mf_tundefined_raise(r, a->v[0]);
    if (!mf_tis(a->v[0], MF_T_STR))
        return mf_trender_raise(r, MF_TE_ATTRIBUTE, "'%s' object has no attribute 'splitlines'",
                                mf_tval_type_name(a->v[0]));
    s = a->v[0].s;
    MF_TRY(mf_targ_int(r, a, 1, 79, &width));
    if (mf_targ_given(a, 3) && !mf_tis(a->v[3], MF_T_NONE)) MF_TRY(mf_tval_need_str(r, a->v[3], &sep));
    MF_TRY(mf_tlist_new(r, 0, &lines));
    MF_TRY(mf_ttext_splitlines(r, s, false, lines));
    if (width <= 0 && lines->n)
        return mf_trender_raise(r, MF_TE_VALUE, "invalid width %lld (must be > 0)", (long long)width);
    w.width = (size_t)width;
    for (size_t i = 0; i < lines->n; i++) MF_TRY(wrap_line(&w, lines->v[i].s, sep, &lines->v[i]));
    return mf_ttext_join(r, sep, mf_tlistval(lines), false, out);
}
