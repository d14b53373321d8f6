/* Methods of lists, tuples and dictionaries, those that change them included: values belong to one rendering,
 * so a template may (transformers' sandbox refuses that; see docs/templates.md). */
#include "template/iter.h"
#include "template/methods.h"
#include "template/objects.h"
#include "template/ops.h"
#include "template/print.h"
#include "template/sort.h"

#include <string.h>

static minfer_status none(mf_tval *out)
{
    *out = mf_tnone();
    return MINFER_OK;
}

/* -- lists and tuples -- */

static minfer_status append(mf_trender *r, mf_targs *a, mf_tval *out)
{
    none(out);
    return mf_tlist_push(r, a->v[0].list, a->v[1]);
}

static minfer_status extend(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tlist *more;
    none(out);
    MF_TRY(mf_titer_list(r, a->v[1], &more));
    for (size_t i = 0; i < more->n; i++) MF_TRY(mf_tlist_push(r, a->v[0].list, more->v[i]));
    return MINFER_OK;
}

static minfer_status clear(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    if (mf_tis(a->v[0], MF_T_LIST))
        a->v[0].list->n = 0;
    else
        mf_tdict_clear(a->v[0].dict);
    return none(out);
}

static minfer_status copy(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = a->v[0];
    if (mf_tis(*out, MF_T_DICT)) return mf_tdict_copy(r, a->v[0].dict, &out->dict);
    return mf_tlist_copy(r, a->v[0].list, 0, a->v[0].list->n, &out->list);
}

/* The first item equal to v[1] within [from, to), or n. */
static minfer_status find_item(mf_trender *r, const mf_targs *a, int64_t from, int64_t to, int64_t *at)
{
    int64_t n;
    mf_tval item;
    bool same = false;
    MF_TRY(mf_tval_need_len(r, a->v[0], &n));
    for (*at = from; *at < to && *at < n; ++*at) {
        MF_TRY(mf_trender_step(r));
        MF_TRY(mf_tval_at(r, a->v[0], *at, &item));
        MF_TRY(mf_tval_eq(r, item, a->v[1], &same));
        if (same) return MINFER_OK;
    }
    *at = n;
    return MINFER_OK;
}

static minfer_status not_in(mf_trender *r, const mf_targs *a)
{
    char text[160];
    MF_TRY(mf_tval_brief(r, a->v[1], text, sizeof text));
    return mf_trender_raise(r, MF_TE_VALUE, "%s is not in %s", text, mf_tval_type_name(a->v[0]));
}

static minfer_status index_of(mf_trender *r, mf_targs *a, mf_tval *out)
{
    int64_t n, from, to;
    MF_TRY(mf_tval_need_len(r, a->v[0], &n));
    MF_TRY(mf_tval_span(r, a->v[2], a->v[3], n, &from, &to));
    *out = mf_tint(0);
    MF_TRY(find_item(r, a, from, to, &out->i));
    return out->i == n ? not_in(r, a) : MINFER_OK;
}

static minfer_status count(mf_trender *r, mf_targs *a, mf_tval *out)
{
    int64_t n, at;
    MF_TRY(mf_tval_need_len(r, a->v[0], &n));
    *out = mf_tint(0);
    for (int64_t from = 0; from < n; from = at + 1, out->i += at < n) MF_TRY(find_item(r, a, from, n, &at));
    return MINFER_OK;
}

static void take_out(mf_tlist *l, size_t i)
{
    memmove(l->v + i, l->v + i + 1, (l->n - i - 1) * sizeof *l->v);
    l->n--;
}

static minfer_status remove_item(mf_trender *r, mf_targs *a, mf_tval *out)
{
    int64_t at;
    MF_TRY(find_item(r, a, 0, INT64_MAX, &at));
    if (at == (int64_t)a->v[0].list->n)
        return mf_trender_raise(r, MF_TE_VALUE, "list.remove(x): x not in list");
    take_out(a->v[0].list, (size_t)at);
    return none(out);
}

static minfer_status list_pop(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tlist *l = a->v[0].list;
    int64_t i;
    MF_TRY(mf_targ_int(r, a, 1, -1, &i));
    if (l->n == 0) return mf_trender_raise(r, MF_TE_INDEX, "pop from empty list");
    if (i < 0) i += (int64_t)l->n;
    if (i < 0 || i >= (int64_t)l->n) return mf_trender_raise(r, MF_TE_INDEX, "pop index out of range");
    *out = l->v[i];
    MF_TRY(mf_trender_charge(r, (l->n - (size_t)i) * sizeof *l->v));
    take_out(l, (size_t)i);
    return MINFER_OK;
}

static minfer_status insert(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tlist *l = a->v[0].list;
    int64_t i, n = (int64_t)l->n;
    MF_TRY(mf_targ_int(r, a, 1, 0, &i));
    if (i < 0) i = i + n < 0 ? 0 : i + n;
    if (i > n) i = n;
    MF_TRY(mf_tlist_push(r, l, a->v[2]));
    MF_TRY(mf_trender_charge(r, (size_t)(n - i) * sizeof *l->v));
    memmove(l->v + i + 1, l->v + i, (size_t)(n - i) * sizeof *l->v);
    l->v[i] = a->v[2];
    return none(out);
}

static minfer_status reverse(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tlist *l = a->v[0].list;
    for (size_t i = 0, k = l->n; i + 1 < k; i++, k--) {
        mf_tval swap = l->v[i];
        l->v[i] = l->v[k - 1];
        l->v[k - 1] = swap;
    }
    none(out);
    return mf_trender_charge(r, l->n * sizeof *l->v);
}

static minfer_status sort_list(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tlist *l = a->v[0].list, *keys, *items;
    mf_tval key;
    if (mf_targ_given(a, 1) && !mf_tis(a->v[1], MF_T_NONE) && !mf_tval_callable(a->v[1]))
        return mf_trender_raise(r, MF_TE_TYPE, "'%s' object is not callable", mf_tval_type_name(a->v[1]));
    MF_TRY(mf_tlist_copy(r, l, 0, l->n, &items));
    MF_TRY(mf_tlist_copy(r, l, 0, l->n, &keys));
    for (size_t i = 0; mf_tval_callable(a->v[1]) && i < keys->n; i++) {
        MF_TRY(mf_tcall_value(r, a->v[1], &(mf_tcall){.pos = &items->v[i], .npos = 1}, &key));
        keys->v[i] = key;
    }
    MF_TRY(mf_tsort(r, items, keys, mf_targ_truth(a, 2, false)));
    l->v = items->v;
    l->n = l->cap = items->n;
    return none(out);
}

/* -- dictionaries -- */

static minfer_status get(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tentry *e;
    MF_TRY(mf_tdict_find(r, a->v[0].dict, a->v[1], &e));
    *out = e ? e->value : mf_targ_or(a, 2, mf_tnone());
    return MINFER_OK;
}

static minfer_status view(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tview *v = MF_RENDER_NEW(r, mf_tview);
    if (!v) return mf_trender_failed(r);
    *v = (mf_tview){a->v[0].dict, (mf_tview_kind)a->which};
    *out = (mf_tval){.type = MF_T_VIEW, .view = v};
    return MINFER_OK;
}

static minfer_status dict_pop(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tentry *e;
    char text[160];
    MF_TRY(mf_tdict_find(r, a->v[0].dict, a->v[1], &e));
    if (e) {
        *out = e->value;
        mf_tdict_remove(a->v[0].dict, e);
        return MINFER_OK;
    }
    *out = a->v[2];
    if (mf_targ_given(a, 2)) return MINFER_OK;
    MF_TRY(mf_tval_brief(r, a->v[1], text, sizeof text));
    return mf_trender_raise(r, MF_TE_KEY, "%s", text);
}

static minfer_status popitem(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tdict *d = a->v[0].dict;
    mf_tentry *last = NULL;
    for (size_t i = d->n; i > 0 && !last; i--)
        if (!mf_tis(d->e[i - 1].key, MF_T_MISSING)) last = &d->e[i - 1];
    if (!last) return mf_trender_raise(r, MF_TE_KEY, "'popitem(): dictionary is empty'");
    MF_TRY(mf_tpair(r, last->key, last->value, out));
    MF_TRY(mf_trender_charge(r, (size_t)(d->e + d->n - last) * sizeof *last));
    mf_tdict_remove(d, last);
    return MINFER_OK;
}

static minfer_status setdefault(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tentry *e;
    MF_TRY(mf_tdict_find(r, a->v[0].dict, a->v[1], &e));
    *out = e ? e->value : mf_targ_or(a, 2, mf_tnone());
    return e ? MINFER_OK : mf_tdict_set(r, a->v[0].dict, a->v[1], *out);
}

static minfer_status update(mf_trender *r, mf_targs *a, mf_tval *out)
{
    none(out);
    return mf_tdict_fill(r, a->v[0].dict, &a->rest);
}

static minfer_status fromkeys(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_titer *it;
    mf_tval key;
    *out = mf_tdictval(NULL);
    MF_TRY(mf_tdict_new(r, &out->dict));
    MF_TRY(mf_titer_open(r, a->v[1], &it));
    for (;;) {
        MF_TRY(mf_titer_next(r, it, &key));
        if (mf_tis(key, MF_T_MISSING)) return MINFER_OK;
        MF_TRY(mf_tdict_set(r, out->dict, key, mf_targ_or(a, 2, mf_tnone())));
    }
}

static const mf_tfndef of_tuples[] = {{"count", count, "/value", 1, 0},
                                      {"index", index_of, "/value start stop", 1, 0}};

static const mf_tfndef of_lists[] = {
    {"append", append, "/object", 1, 0},
    {"clear", clear, "", 0, 0},
    {"copy", copy, "", 0, 0},
    {"count", count, "/value", 1, 0},
    {"extend", extend, "/iterable", 1, 0},
    {"index", index_of, "/value start stop", 1, 0},
    {"insert", insert, "/index object", 2, 0},
    {"pop", list_pop, "/index", 0, 0},
    {"remove", remove_item, "/value", 1, 0},
    {"reverse", reverse, "", 0, 0},
    {"sort", sort_list, "key reverse", 0, 0},
};

static const mf_tfndef of_dicts[] = {
    {"clear", clear, "", 0, 0},
    {"copy", copy, "", 0, 0},
    {"fromkeys", fromkeys, "/iterable value", 1, 0},
    {"get", get, "/key default", 1, 0},
    {"items", view, "", 0, MF_VIEW_ITEMS},
    {"keys", view, "", 0, MF_VIEW_KEYS},
    {"pop", dict_pop, "/key default", 1, 0},
    {"popitem", popitem, "", 0, 0},
    {"setdefault", setdefault, "/key default", 1, 0},
    {"update", update, "*", 0, 0},
    {"values", view, "", 0, MF_VIEW_VALUES},
};

const mf_tfndef *mf_tmethod_list_find(const mf_tstr *name)
{
    return MF_FIND(of_lists, name);
}
const mf_tfndef *mf_tmethod_tuple_find(const mf_tstr *name)
{
    return MF_FIND(of_tuples, name);
}
const mf_tfndef *mf_tmethod_dict_find(const mf_tstr *name)
{
    return MF_FIND(of_dicts, name);
}
