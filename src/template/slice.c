/* Indexing and slicing of strings, lists, tuples and ranges. */
#include "template/iter.h"
#include "template/ops.h"

typedef struct span {
    int64_t start, step, n; /* n items: start, start + step, ... */
} span;

minfer_status mf_tval_at(mf_trender *r, mf_tval box, int64_t i, mf_tval *out)
{
    int64_t n;
    MF_TRY(mf_tval_need_len(r, box, &n));
    if (i < 0) i += n;
    *out = mf_tmissing();
    if (i < 0 || i >= n) return MINFER_OK;
    if (mf_tis_seq(box))
        *out = box.list->v[i];
    else if (mf_tis(box, MF_T_RANGE))
        *out = mf_tint(mf_trange_at(box.range, i));
    else if (mf_tis(box, MF_T_STR)) {
        size_t off = mf_tstr_offset(box.s, (size_t)i);
        if (box.s->n != box.s->chars) MF_TRY(mf_trender_charge(r, off));
        return mf_tstr_view(r, box.s, off, mf_tchar_len(box.s->p + off), out);
    }
    return MINFER_OK;
}

static bool absent(mf_tval v)
{
    return mf_tis(v, MF_T_MISSING) || mf_tis(v, MF_T_NONE);
}

static minfer_status bound(mf_trender *r, mf_tval v, int64_t absent_value, int64_t *out)
{
    *out = absent_value;
    if (absent(v)) return MINFER_OK;
    if (!mf_tis_int(v))
        return mf_trender_raise(r, MF_TE_TYPE,
                                "slice indices must be integers or None or have an __index__ method");
    *out = mf_tas_int(v);
    return MINFER_OK;
}

static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0) i += n;
    return i < low ? low : i > high ? high : i;
}

static minfer_status resolve(mf_trender *r, mf_tval start, mf_tval stop, mf_tval step, int64_t n, span *out)
{
    int64_t from, to, by;
    MF_TRY(bound(r, step, 1, &by));
    if (by == 0) return mf_trender_raise(r, MF_TE_VALUE, "slice step cannot be zero");
    if (by == INT64_MIN) by++; /* as far away as any other */
    bool back = by < 0;
    int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    MF_TRY(bound(r, start, 0, &from));
    MF_TRY(bound(r, stop, 0, &to));
    from = absent(start) ? (back ? high : low) : clamp(from, n, low, high);
    to = absent(stop) ? (back ? low : high) : clamp(to, n, low, high);
    int64_t distance = back ? from - to : to - from;
    *out = (span){from, by, distance <= 0 ? 0 : (distance - 1) / (back ? -by : by) + 1};
    return MINFER_OK;
}

minfer_status mf_tval_span(mf_trender *r, mf_tval start, mf_tval stop, int64_t n, int64_t *from, int64_t *to)
{
    MF_TRY(bound(r, start, 0, from));
    MF_TRY(bound(r, stop, 0, to));
    *from = absent(start) ? 0 : clamp(*from, n, 0, INT64_MAX);
    *to = absent(stop) ? n : clamp(*to, n, 0, n);
    return MINFER_OK;
}

static minfer_status slice_list(mf_trender *r, const mf_tlist *l, span s, mf_tlist **out)
{
    MF_TRY(mf_trender_charge(r, (size_t)s.n * sizeof *l->v));
    MF_TRY(mf_tlist_new(r, (size_t)s.n, out));
    for (int64_t i = 0; i < s.n; i++) (*out)->v[(*out)->n++] = l->v[s.start + i * s.step];
    return MINFER_OK;
}

/* Moves a byte offset by a number of characters. */
static size_t walk(const mf_tstr *s, size_t off, int64_t chars)
{
    for (; chars > 0 && off < s->n; chars--) off += mf_tchar_len(s->p + off);
    for (; chars < 0 && off > 0; chars++) do
            off--;
        while (off > 0 && ((unsigned char)s->p[off] & 0xC0) == 0x80);
    return off;
}

static minfer_status slice_text(mf_trender *r, const mf_tstr *s, span g, mf_tval *out)
{
    MF_TRY(mf_trender_charge(r, s->n));
    size_t off = mf_tstr_offset(s, g.n ? (size_t)g.start : 0);
    if (g.step == 1) return mf_tstr_view(r, s, off, walk(s, off, g.n) - off, out);
    mf_tsb text = {0};
    for (int64_t i = 0; i < g.n; i++) {
        MF_TRY(mf_tsb_put(r, &text, s->p + off, mf_tchar_len(s->p + off)));
        if (i + 1 < g.n) off = walk(s, off, g.step);
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status slice_range(mf_trender *r, const mf_trange *g, span s, mf_tval *out)
{
    mf_trange *cut = MF_RENDER_NEW(r, mf_trange);
    if (!cut) return mf_trender_failed(r);
    cut->n = s.n;
    cut->start = mf_trange_at(g, s.start);
    cut->stop = mf_trange_at(g, (int64_t)((uint64_t)s.start + (uint64_t)s.n * (uint64_t)s.step));
    if (__builtin_mul_overflow(g->step, s.step, &cut->step)) return mf_tval_too_big(r);
    *out = (mf_tval){.type = MF_T_RANGE, .range = cut};
    return MINFER_OK;
}

minfer_status mf_tval_slice(mf_trender *r, mf_tval box, mf_tval start, mf_tval stop, mf_tval step,
                            mf_tval *out)
{
    int64_t n;
    span s = {0};
    if (mf_tis(box, MF_T_UNDEFINED)) return mf_tundefined_raise(r, box);
    if (mf_tis(box, MF_T_DICT)) return mf_trender_raise(r, MF_TE_TYPE, "unhashable type: 'slice'");
    if (!mf_tis(box, MF_T_STR) && !mf_tis_seq(box) && !mf_tis(box, MF_T_RANGE))
        return mf_trender_raise(r, MF_TE_TYPE, "'%s' object is not subscriptable", mf_tval_type_name(box));
    MF_TRY(mf_tval_need_len(r, box, &n));
    MF_TRY(resolve(r, start, stop, step, n, &s));
    if (mf_tis(box, MF_T_STR)) return slice_text(r, box.s, s, out);
    if (mf_tis(box, MF_T_RANGE)) return slice_range(r, box.range, s, out);
    out->type = box.type;
    out->safe = false;
    return slice_list(r, box.list, s, &out->list);
}
