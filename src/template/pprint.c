/* pprint.pformat: one line where 80 characters are enough, else one item a line. */
#include "template/print.h"
#include "template/sort.h"
#include "template/strings.h"
#include "template/unicode.h"

enum { WIDTH = 80 };

typedef struct printer {
    mf_trender *r;
    mf_tsb *out;
} printer;

static minfer_status put_value(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level);

/* -- dictionaries in the order of their keys, all the way down -- */

static minfer_status sorted(mf_trender *r, mf_tval v, mf_tval *out);

static minfer_status sorted_items(mf_trender *r, mf_tval v, mf_tval *out)
{
    *out = v;
    MF_TRY(mf_tlist_copy(r, v.list, 0, v.list->n, &out->list));
    for (size_t i = 0; i < out->list->n; i++) MF_TRY(sorted(r, v.list->v[i], &out->list->v[i]));
    return MINFER_OK;
}

static minfer_status sorted_entries(mf_trender *r, mf_tval v, mf_tval *out)
{
    mf_tlist *pairs;
    MF_TRY(mf_tsort_entries(r, v.dict, &pairs));
    *out = v;
    MF_TRY(mf_tdict_new(r, &out->dict));
    for (size_t i = 0; i < pairs->n; i++) {
        mf_tval value;
        MF_TRY(sorted(r, pairs->v[i].list->v[1], &value));
        MF_TRY(mf_tdict_set(r, out->dict, pairs->v[i].list->v[0], value));
    }
    return MINFER_OK;
}

static minfer_status sorted(mf_trender *r, mf_tval v, mf_tval *out)
{
    *out = v;
    if (!mf_tis_seq(v) && !mf_tis(v, MF_T_DICT)) return MINFER_OK;
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = mf_tis(v, MF_T_DICT) ? sorted_entries(r, v, out) : sorted_items(r, v, out);
    mf_trender_leave(r);
    return st;
}

/* -- layout -- */

static minfer_status repr_of(printer *p, mf_tval v, mf_tval *out)
{
    mf_tsb text = {0};
    MF_TRY(mf_tval_repr(p->r, &text, v));
    return mf_tstr_wrap(p->r, text.p, text.n, out);
}

static minfer_status put_break(printer *p, const char *sep, int64_t indent)
{
    MF_TRY(mf_tsb_text(p->r, p->out, sep));
    return mf_tsb_fill(p->r, p->out, " ", 1, indent > 0 ? (size_t)indent : 0);
}

static minfer_status put_items(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level)
{
    const mf_tlist *l = v.list;
    bool tuple = mf_tis(v, MF_T_TUPLE);
    const char *close = !tuple ? "]" : l->n == 1 ? ",)" : ")";
    MF_TRY(mf_tsb_char(p->r, p->out, tuple ? '(' : '['));
    for (size_t i = 0; i < l->n; i++) {
        bool last = i + 1 == l->n;
        if (i) MF_TRY(put_break(p, ",\n", indent + 1));
        MF_TRY(put_value(p, l->v[i], indent + 1, last ? allowance + (close[1] ? 2 : 1) : 1, level));
    }
    return mf_tsb_text(p->r, p->out, close);
}

static minfer_status put_entries(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level)
{
    size_t i = 0, done = 0;
    MF_TRY(mf_tsb_char(p->r, p->out, '{'));
    for (const mf_tentry *e; (e = mf_tdict_next(v.dict, &i)); done++) {
        mf_tval key;
        bool last = done + 1 == v.dict->live;
        if (done) MF_TRY(put_break(p, ",\n", indent + 1));
        MF_TRY(repr_of(p, e->key, &key));
        MF_TRY(mf_tsb_put(p->r, p->out, key.s->p, key.s->n));
        MF_TRY(mf_tsb_text(p->r, p->out, ": "));
        MF_TRY(
            put_value(p, e->value, indent + 1 + (int64_t)key.s->chars + 2, last ? allowance + 1 : 1, level));
    }
    return mf_tsb_char(p->r, p->out, '}');
}

/* -- long strings: pieces between words -- */

static minfer_status push_repr(printer *p, const mf_tstr *s, size_t from, size_t to, mf_tlist *pieces)
{
    mf_tval piece;
    MF_TRY(mf_tstr_view(p->r, s, from, to - from, &piece));
    MF_TRY(repr_of(p, piece, &piece));
    return mf_tlist_push(p->r, pieces, piece);
}

static size_t word_end(const mf_tstr *s, size_t i)
{
    uint32_t cp;
    size_t k;
    for (; i < s->n && (k = mf_tuc_at(s->p + i, &cp), !mf_tuc_is_space(cp)); i += k) continue;
    for (; i < s->n && (k = mf_tuc_at(s->p + i, &cp), mf_tuc_is_space(cp)); i += k) continue;
    return i;
}

static minfer_status break_line(printer *p, const mf_tstr *line, int64_t width, int64_t allowance,
                                mf_tlist *pieces)
{
    size_t from = 0;
    for (size_t i = 0, end; i < line->n; i = end) {
        mf_tval part;
        end = word_end(line, i);
        if (end == line->n) width -= allowance;
        MF_TRY(mf_tstr_view(p->r, line, from, end - from, &part));
        MF_TRY(repr_of(p, part, &part));
        if ((int64_t)part.s->chars <= width) continue;
        if (i > from) MF_TRY(push_repr(p, line, from, i, pieces));
        from = i;
    }
    return from < line->n ? push_repr(p, line, from, line->n, pieces) : MINFER_OK;
}

static minfer_status break_string(printer *p, const mf_tstr *s, int64_t width, int64_t allowance,
                                  mf_tlist *pieces)
{
    mf_tlist *lines;
    MF_TRY(mf_tlist_new(p->r, 0, &lines));
    MF_TRY(mf_ttext_splitlines(p->r, s, true, lines));
    for (size_t i = 0; i < lines->n; i++) {
        mf_tval whole;
        int64_t spare = i + 1 == lines->n ? allowance : 0;
        MF_TRY(repr_of(p, lines->v[i], &whole));
        if ((int64_t)whole.s->chars <= width - spare)
            MF_TRY(mf_tlist_push(p->r, pieces, whole));
        else
            MF_TRY(break_line(p, lines->v[i].s, width, spare, pieces));
    }
    return MINFER_OK;
}

static minfer_status put_string(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level)
{
    mf_tlist *pieces;
    bool alone = level == 1; /* not inside anything: the pieces need parentheses */
    MF_TRY(mf_tlist_new(p->r, 0, &pieces));
    MF_TRY(break_string(p, v.s, WIDTH - indent - alone, allowance + alone, pieces));
    if (pieces->n <= 1) return mf_tval_repr(p->r, p->out, v);
    if (alone) MF_TRY(mf_tsb_char(p->r, p->out, '('));
    for (size_t i = 0; i < pieces->n; i++) {
        if (i) MF_TRY(put_break(p, "\n", indent + alone));
        MF_TRY(mf_tsb_put(p->r, p->out, pieces->v[i].s->p, pieces->v[i].s->n));
    }
    return alone ? mf_tsb_char(p->r, p->out, ')') : MINFER_OK;
}

static minfer_status put_broken(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level)
{
    if (mf_tis(v, MF_T_DICT)) return put_entries(p, v, indent, allowance, level);
    return mf_tis(v, MF_T_STR) ? put_string(p, v, indent, allowance, level)
                               : put_items(p, v, indent, allowance, level);
}

static minfer_status put_value(printer *p, mf_tval v, int64_t indent, int64_t allowance, int level)
{
    mf_tval whole;
    bool breakable = mf_tis_seq(v) || mf_tis(v, MF_T_DICT) || mf_tis(v, MF_T_STR);
    MF_TRY(repr_of(p, v, &whole));
    if (!breakable || (int64_t)whole.s->chars <= WIDTH - indent - allowance)
        return mf_tsb_put(p->r, p->out, whole.s->p, whole.s->n);
    minfer_status st = mf_trender_enter(p->r);
    if (st == MINFER_OK) st = put_broken(p, v, indent, allowance, level + 1);
    mf_trender_leave(p->r);
    return st;
}

minfer_status mf_tval_pprint(mf_trender *r, mf_tsb *out, mf_tval v)
{
    MF_TRY(sorted(r, v, &v));
    return put_value(&(printer){r, out}, v, 0, 0, 0);
}
