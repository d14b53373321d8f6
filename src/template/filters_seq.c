/* Filters on sequences and dictionaries that give a result at once. */
#include "template/attr.h"
#include "template/filters.h"
#include "template/iter.h"
#include "template/ops.h"
#include "template/print.h"
#include "template/sort.h"
#include "template/strings.h"

static minfer_status length(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tint(0);
    return mf_tval_need_len(r, a->v[0], &out->i);
}

static minfer_status list(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tlistval(NULL);
    return mf_titer_list(r, a->v[0], &out->list);
}

static minfer_status or_undefined(mf_trender *r, mf_tval item, const char *hint, mf_tval *out)
{
    *out = item;
    return mf_tis(item, MF_T_MISSING) ? mf_tundefined_hint(r, hint, out) : MINFER_OK;
}

static minfer_status first(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_titer *it;
    MF_TRY(mf_titer_open(r, a->v[0], &it));
    MF_TRY(mf_titer_next(r, it, out));
    return or_undefined(r, *out, "No first item, sequence was empty.", out);
}

static minfer_status last(mf_trender *r, mf_targs *a, mf_tval *out)
{
    bool possible;
    MF_TRY(mf_titer_reversed(r, a->v[0], out, &possible));
    if (!possible)
        return mf_trender_raise(r, MF_TE_TYPE, "'%s' object is not reversible", mf_tval_type_name(a->v[0]));
    MF_TRY(mf_titer_next(r, out->iter, out));
    return or_undefined(r, *out, "No last item, sequence was empty.", out);
}

static minfer_status reverse(mf_trender *r, mf_targs *a, mf_tval *out)
{
    bool possible;
    mf_tlist *all;
    if (mf_tis(a->v[0], MF_T_STR)) return mf_tval_slice(r, a->v[0], mf_tnone(), mf_tnone(), mf_tint(-1), out);
    MF_TRY(mf_titer_reversed(r, a->v[0], out, &possible));
    if (possible) return MINFER_OK;
    if (!mf_titer_possible(a->v[0])) return mf_trender_raise(r, MF_TE_FILTER, "argument must be iterable");
    MF_TRY(mf_titer_list(r, a->v[0], &all));
    return mf_tval_slice(r, mf_tlistval(all), mf_tnone(), mf_tnone(), mf_tint(-1), out);
}

/* -- keys -- */

typedef struct keys { /* what sorting and comparing looks at */
    mf_tpath *path;
    size_t n;
    bool case_sensitive;
    bool listed; /* the key is a list, whatever n is: equal items are then never asked for their order */
} keys;

static minfer_status one_path(mf_trender *r, mf_tval attribute, bool case_sensitive, keys *out)
{
    *out = (keys){MF_RENDER_NEW(r, mf_tpath), 1, case_sensitive, false};
    return out->path ? mf_tpath_parse(r, attribute, out->path) : mf_trender_failed(r);
}

/* "a,b.c": several paths. */
static minfer_status many_paths(mf_trender *r, mf_tval attribute, bool case_sensitive, keys *out)
{
    static const mf_tstr comma = {",", 1, 1};
    mf_tlist *parts;
    if (!mf_tis(attribute, MF_T_STR)) {
        MF_TRY(one_path(r, attribute, case_sensitive, out));
        out->listed = true;
        return MINFER_OK;
    }
    MF_TRY(mf_tlist_new(r, 0, &parts));
    MF_TRY(mf_ttext_split(r, attribute.s, &comma, -1, parts));
    *out = (keys){mf_trender_alloc(r, parts->n, sizeof *out->path), parts->n, case_sensitive, true};
    if (!out->path) return mf_trender_failed(r);
    for (size_t i = 0; i < parts->n; i++) MF_TRY(mf_tpath_parse(r, parts->v[i], &out->path[i]));
    return MINFER_OK;
}

static minfer_status key_of(mf_trender *r, const keys *k, mf_tval item, mf_tval otherwise, mf_tval *out)
{
    mf_tlist *parts;
    mf_tval part;
    if (!k->listed) {
        MF_TRY(mf_tpath_get(r, &k->path[0], item, otherwise, &part));
        return mf_tfilter_fold(r, part, k->case_sensitive, out);
    }
    MF_TRY(mf_tlist_new(r, k->n, &parts));
    for (size_t i = 0; i < k->n; i++) {
        MF_TRY(mf_tpath_get(r, &k->path[i], item, otherwise, &part));
        MF_TRY(mf_tfilter_fold(r, part, k->case_sensitive, &part));
        MF_TRY(mf_tlist_push(r, parts, part));
    }
    *out = mf_tlistval(parts);
    return MINFER_OK;
}

static minfer_status keys_of(mf_trender *r, const keys *k, const mf_tlist *items, mf_tval otherwise,
                             mf_tlist **out)
{
    MF_TRY(mf_tlist_new(r, items->n, out));
    for (size_t i = 0; i < items->n; i++) {
        mf_tval key;
        MF_TRY(key_of(r, k, items->v[i], otherwise, &key));
        MF_TRY(mf_tlist_push(r, *out, key));
    }
    return MINFER_OK;
}

/* -- sorting -- */

static minfer_status sort(mf_trender *r, mf_targs *a, mf_tval *out)
{
    keys k;
    mf_tlist *items, *by;
    MF_TRY(many_paths(r, a->v[3], mf_targ_truth(a, 2, false), &k));
    MF_TRY(mf_titer_list(r, a->v[0], &items));
    MF_TRY(keys_of(r, &k, items, mf_tmissing(), &by));
    *out = mf_tlistval(items);
    return mf_tsort(r, items, by, mf_targ_truth(a, 1, false));
}

static minfer_status sort_position(mf_trender *r, const mf_targs *a, size_t *pos)
{
    mf_tval by = a->v[2];
    bool text = mf_tis(by, MF_T_STR);
    *pos = text && mf_tstr_is(by.s, "value");
    if (mf_tis(by, MF_T_MISSING) || *pos || (text && mf_tstr_is(by.s, "key"))) return MINFER_OK;
    return mf_trender_raise(r, MF_TE_FILTER, "You can only sort by either \"key\" or \"value\"");
}

static minfer_status dictsort(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval v = a->v[0], item, key;
    mf_tlist *items, *by;
    size_t pos, i = 0;
    MF_TRY(sort_position(r, a, &pos));
    if (mf_tis(v, MF_T_UNDEFINED)) return mf_tundefined_raise(r, v);
    if (!mf_tis(v, MF_T_DICT))
        return mf_trender_raise(r, MF_TE_ATTRIBUTE, "'%s' object has no attribute 'items'",
                                mf_tval_type_name(v));
    MF_TRY(mf_tlist_new(r, v.dict->live, &items));
    MF_TRY(mf_tlist_new(r, v.dict->live, &by));
    for (const mf_tentry *e; (e = mf_tdict_next(v.dict, &i));) {
        MF_TRY(mf_tpair(r, e->key, e->value, &item));
        MF_TRY(mf_tfilter_fold(r, pos ? e->value : e->key, mf_targ_truth(a, 1, false), &key));
        MF_TRY(mf_tlist_push(r, items, item));
        MF_TRY(mf_tlist_push(r, by, key));
    }
    *out = mf_tlistval(items);
    return mf_tsort(r, items, by, mf_targ_truth(a, 3, false));
}

/* (grouper, list) */
static minfer_status new_group(mf_trender *r, mf_tval grouper, mf_tlist *groups, mf_tlist **members)
{
    mf_tval group;
    MF_TRY(mf_tlist_new(r, 0, members));
    MF_TRY(mf_tpair(r, grouper, mf_tlistval(*members), &group));
    group.list->group = true;
    return mf_tlist_push(r, groups, group);
}

static minfer_status groupby(mf_trender *r, mf_targs *a, mf_tval *out)
{
    keys k;
    mf_tlist *items, *by, *groups, *members = NULL;
    MF_TRY(one_path(r, a->v[1], mf_targ_truth(a, 3, false), &k));
    MF_TRY(mf_titer_list(r, a->v[0], &items));
    MF_TRY(keys_of(r, &k, items, a->v[2], &by));
    MF_TRY(mf_tsort(r, items, by, false));
    MF_TRY(mf_tlist_new(r, 0, &groups));
    for (size_t i = 0; i < items->n; i++) {
        bool same = false;
        mf_tval grouper;
        if (i) MF_TRY(mf_tval_eq(r, by->v[i - 1], by->v[i], &same));
        if (!same) {
            MF_TRY(mf_tpath_get(r, k.path, items->v[i], a->v[2], &grouper));
            MF_TRY(new_group(r, grouper, groups, &members));
        }
        MF_TRY(mf_tlist_push(r, members, items->v[i]));
    }
    *out = mf_tlistval(groups);
    return MINFER_OK;
}

/* -- reductions -- */

static minfer_status extreme(mf_trender *r, mf_targs *a, mf_tval *out)
{
    keys k;
    mf_titer *it;
    mf_tval best = mf_tmissing(), best_key = best, item, key;
    MF_TRY(one_path(r, a->v[2], mf_targ_truth(a, 1, false), &k));
    MF_TRY(mf_titer_open(r, a->v[0], &it));
    for (;;) {
        bool better = mf_tis(best, MF_T_MISSING);
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) break;
        MF_TRY(key_of(r, &k, item, mf_tmissing(), &key));
        if (!better) MF_TRY(mf_tval_order(r, (mf_torder)a->which, key, best_key, &better));
        if (!better) continue;
        best = item;
        best_key = key;
    }
    return or_undefined(r, best, "No aggregated item, sequence was empty.", out);
}

static minfer_status sum(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tpath path;
    mf_titer *it;
    mf_tval item, total = mf_targ_or(a, 2, mf_tint(0));
    if (mf_tis(total, MF_T_STR))
        return mf_trender_raise(r, MF_TE_TYPE, "sum() can't sum strings [use ''.join(seq) instead]");
    MF_TRY(mf_tpath_parse(r, a->v[1], &path));
    MF_TRY(mf_titer_open(r, a->v[0], &it));
    for (;;) {
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) break;
        MF_TRY(mf_tpath_get(r, &path, item, mf_tmissing(), &item));
        MF_TRY(mf_tval_binary(r, MF_OP_ADD, total, item, &total));
    }
    *out = total;
    return MINFER_OK;
}

static minfer_status join(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval sep, items = a->v[0];
    keys k;
    mf_tlist *all, *parts;
    MF_TRY(mf_tstr_lit(r, "", &sep));
    MF_TRY(mf_tval_to_str(r, mf_targ_or(a, 1, sep), &sep));
    if (mf_targ_given(a, 2) && !mf_tis(a->v[2], MF_T_NONE)) {
        MF_TRY(one_path(r, a->v[2], true, &k));
        MF_TRY(mf_titer_list(r, items, &all));
        MF_TRY(keys_of(r, &k, all, mf_tmissing(), &parts));
        items = mf_tlistval(parts);
    }
    return mf_ttext_join(r, sep.s, items, true, out);
}

static const mf_tfndef defs[] = {
    {"count", length, "", 0, 0},
    {"dictsort", dictsort, "case_sensitive by reverse", 0, 0},
    {"first", first, "", 0, 0},
    {"groupby", groupby, "attribute default case_sensitive", 1, 0},
    {"join", join, "d attribute", 0, 0},
    {"last", last, "", 0, 0},
    {"length", length, "", 0, 0},
    {"list", list, "", 0, 0},
    {"max", extreme, "case_sensitive attribute", 0, MF_GT},
    {"min", extreme, "case_sensitive attribute", 0, MF_LT},
    {"reverse", reverse, "", 0, 0},
    {"sort", sort, "reverse case_sensitive attribute", 0, 0},
    {"sum", sum, "attribute start", 0, 0},
};

const mf_tfndef *mf_tfilter_sequence_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
