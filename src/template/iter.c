/* Iteration over values. */
#include "template/iter.h"
#include "template/ops.h"

typedef minfer_status next_fn(mf_trender *, mf_titer *, mf_tval *);

static minfer_status next_nothing(mf_trender *r, mf_titer *it, mf_tval *out)
{
    (void)r, (void)it;
    *out = mf_tmissing();
    return MINFER_OK;
}

static minfer_status next_item(mf_trender *r, mf_titer *it, mf_tval *out)
{
    (void)r;
    const mf_tlist *l = it->src.list;
    *out = it->i < l->n ? l->v[it->i++] : mf_tmissing();
    return MINFER_OK;
}

static minfer_status next_char(mf_trender *r, mf_titer *it, mf_tval *out)
{
    const mf_tstr *s = it->src.s;
    *out = mf_tmissing();
    if (it->i >= s->n) return MINFER_OK;
    size_t at = it->i, n = mf_tchar_len(s->p + at);
    it->i += n;
    return mf_tstr_view(r, s, at, n, out);
}

int64_t mf_trange_at(const mf_trange *g, int64_t i)
{
    /* Unsigned, because an intermediate product may wrap where the sum fits. */
    return (int64_t)((uint64_t)g->start + (uint64_t)i * (uint64_t)g->step);
}

static minfer_status next_number(mf_trender *r, mf_titer *it, mf_tval *out)
{
    (void)r;
    const mf_trange *g = it->src.range;
    *out = (int64_t)it->i < g->n ? mf_tint(mf_trange_at(g, (int64_t)it->i++)) : mf_tmissing();
    return MINFER_OK;
}

static minfer_status entry_part(mf_trender *r, const mf_tentry *e, mf_tview_kind kind, mf_tval *out)
{
    if (kind == MF_VIEW_ITEMS) return mf_tpair(r, e->key, e->value, out);
    *out = kind == MF_VIEW_KEYS ? e->key : e->value;
    return MINFER_OK;
}

static const mf_tdict *dict_of(mf_tval v, mf_tview_kind *kind)
{
    *kind = mf_tis(v, MF_T_VIEW) ? v.view->kind : MF_VIEW_KEYS;
    return mf_tis(v, MF_T_VIEW) ? v.view->dict : v.dict;
}

static minfer_status next_entry(mf_trender *r, mf_titer *it, mf_tval *out)
{
    mf_tview_kind kind;
    const mf_tdict *d = dict_of(it->src, &kind);
    if (d->live != it->seen)
        return mf_trender_raise(r, MF_TE_STATE, "dictionary changed size during iteration");
    const mf_tentry *e = mf_tdict_next(d, &it->i);
    *out = mf_tmissing();
    return e ? entry_part(r, e, kind, out) : MINFER_OK;
}

static next_fn *const forward[MF_T_COUNT] = {
    [MF_T_UNDEFINED] = next_nothing, [MF_T_STR] = next_char,   [MF_T_LIST] = next_item,
    [MF_T_TUPLE] = next_item,        [MF_T_DICT] = next_entry, [MF_T_VIEW] = next_entry,
    [MF_T_RANGE] = next_number,
};

bool mf_titer_possible(mf_tval v)
{
    return forward[v.type] || mf_tis(v, MF_T_ITER) || mf_tis(v, MF_T_LOOP);
}

static minfer_status make(mf_trender *r, const char *kind, mf_tval src, void *state, next_fn *next,
                          mf_titer **out)
{
    mf_titer *it = MF_RENDER_NEW(r, mf_titer);
    if (!it) return mf_trender_failed(r);
    *it = (mf_titer){.next = next, .kind = kind, .src = src, .state = state};
    mf_tview_kind k;
    if (mf_tis(src, MF_T_DICT) || mf_tis(src, MF_T_VIEW)) it->seen = dict_of(src, &k)->live;
    *out = it;
    return MINFER_OK;
}

minfer_status mf_titer_make(mf_trender *r, const char *kind, mf_tval src, void *state, next_fn *next,
                            mf_tval *out)
{
    out->type = MF_T_ITER;
    out->safe = false;
    return make(r, kind, src, state, next, &out->iter);
}

minfer_status mf_titer_open(mf_trender *r, mf_tval v, mf_titer **out)
{
    if (mf_tis(v, MF_T_ITER)) {
        *out = v.iter;
        return MINFER_OK;
    }
    if (!forward[v.type])
        return mf_trender_raise(r, MF_TE_TYPE, "'%s' object is not iterable", mf_tval_type_name(v));
    return make(r, "iterator", v, NULL, forward[v.type], out);
}

minfer_status mf_titer_next(mf_trender *r, mf_titer *it, mf_tval *out)
{
    MF_TRY(mf_trender_step(r));
    if (!it->state) return it->next(r, it, out);
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = it->next(r, it, out);
    mf_trender_leave(r);
    return st;
}

minfer_status mf_titer_list(mf_trender *r, mf_tval v, mf_tlist **out)
{
    mf_titer *it;
    mf_tval item;
    if (mf_tis_seq(v)) return mf_tlist_copy(r, v.list, 0, v.list->n, out);
    MF_TRY(mf_titer_open(r, v, &it));
    MF_TRY(mf_tlist_new(r, 0, out));
    for (;;) {
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) return MINFER_OK;
        MF_TRY(mf_tlist_push(r, *out, item));
    }
}

/* -- backwards -- */

/* it->i counts down and is one more than the item to give. */
static minfer_status back_item(mf_trender *r, mf_titer *it, mf_tval *out)
{
    *out = mf_tmissing();
    int64_t n;
    bool has;
    MF_TRY(mf_tval_len(r, it->src, &n, &has));
    if (it->i == 0 || it->i > (uint64_t)n) return MINFER_OK;
    it->i--;
    return mf_tval_at(r, it->src, (int64_t)it->i, out);
}

static minfer_status back_entry(mf_trender *r, mf_titer *it, mf_tval *out)
{
    mf_tview_kind kind;
    const mf_tdict *d = dict_of(it->src, &kind);
    if (d->live != it->seen)
        return mf_trender_raise(r, MF_TE_STATE, "dictionary changed size during iteration");
    *out = mf_tmissing();
    while (it->i > 0 && it->i <= d->n) {
        const mf_tentry *e = &d->e[--it->i];
        if (!mf_tis(e->key, MF_T_MISSING)) return entry_part(r, e, kind, out);
    }
    return MINFER_OK;
}

minfer_status mf_titer_reversed(mf_trender *r, mf_tval v, mf_tval *out, bool *possible)
{
    static const struct {
        const char *kind;
        next_fn *next;
    } backward[MF_T_COUNT] = {
        [MF_T_UNDEFINED] = {"reversed", next_nothing},
        [MF_T_STR] = {"reversed", back_item},
        [MF_T_LIST] = {"list_reverseiterator", back_item},
        [MF_T_TUPLE] = {"reversed", back_item},
        [MF_T_RANGE] = {"range_iterator", back_item},
        [MF_T_DICT] = {"dict_reversekeyiterator", back_entry},
        [MF_T_VIEW] = {"dict_reverseitemiterator", back_entry},
    };
    *possible = backward[v.type].next != NULL;
    if (!*possible) return MINFER_OK;
    MF_TRY(mf_titer_make(r, backward[v.type].kind, v, NULL, backward[v.type].next, out));
    mf_tview_kind kind;
    int64_t n;
    bool has;
    MF_TRY(mf_tval_len(r, v, &n, &has));
    bool entries = mf_tis(v, MF_T_DICT) || mf_tis(v, MF_T_VIEW);
    out->iter->i = entries ? dict_of(v, &kind)->n : (size_t)n;
    return MINFER_OK;
}
