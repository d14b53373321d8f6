/* Filters that give an iterator: nothing is computed, and nothing fails, before somebody reads it. The
 * iterator is always true and has no length; templates turn it into a list. */
#include "template/attr.h"
#include "template/filters.h"
#include "template/iter.h"
#include "template/ops.h"
#include "template/print.h"

#include <string.h>

typedef minfer_status next_fn(mf_trender *, mf_titer *, mf_tval *);

/* The arguments outlive the call. */
static minfer_status keep_call(mf_trender *r, const mf_tcall *from, mf_tcall *to)
{
    mf_tval *pos = mf_trender_alloc(r, from->npos, sizeof *pos);
    mf_tkw *kw = pos ? mf_trender_alloc(r, from->nkw, sizeof *kw) : NULL;
    if (!kw) return mf_trender_failed(r);
    if (from->npos) memcpy(pos, from->pos, from->npos * sizeof *pos);
    if (from->nkw) memcpy(kw, from->kw, from->nkw * sizeof *kw);
    *to = (mf_tcall){pos, from->npos, kw, from->nkw};
    return MINFER_OK;
}

/* -- map, select, reject, selectattr, rejectattr -- */

typedef struct mapper {
    mf_tcall call;       /* of the filter */
    mf_titer *from;      /* NULL before the first item is read */
    mf_tval name;        /* of a filter or test; MISSING: the value itself, or its truth */
    const mf_tfndef *fn; /* NULL when there is none of that name: an error once there is an item */
    mf_tcall args;       /* for fn */
    mf_tpath path;       /* where the value is */
    mf_tval otherwise;
    bool attribute, reject;
} mapper;

static minfer_status no_function(mf_trender *r, const char *kind, mf_tval name)
{
    char text[160];
    if (mf_tis(name, MF_T_UNDEFINED))
        return mf_trender_raise(r, MF_TE_RUNTIME,
                                "No %s named Undefined. (did you forget to quote the callable name?)", kind);
    MF_TRY(mf_tval_brief(r, name, text, sizeof text));
    return mf_trender_raise(r, mf_tval_hashable(name) ? MF_TE_RUNTIME : MF_TE_TYPE, "No %s named %s.", kind,
                            text);
}

/* The arguments after the first n. */
static mf_tcall after(const mf_tcall *call, size_t n)
{
    return (mf_tcall){call->pos + n, call->npos - n, call->kw, call->nkw};
}

static bool take_keyword(const mf_tkw *kw, const char *name, mf_tval *out)
{
    if (!mf_tstr_is(kw->name, name)) return false;
    *out = kw->value;
    return true;
}

static minfer_status begin_map(mf_trender *r, mapper *m)
{
    mf_tval attribute = mf_tmissing();
    const mf_tstr *unknown = NULL;
    m->otherwise = mf_tmissing();
    for (size_t i = 0; m->call.npos == 0 && i < m->call.nkw; i++)
        if (!take_keyword(&m->call.kw[i], "attribute", &attribute) &&
            !take_keyword(&m->call.kw[i], "default", &m->otherwise))
            unknown = m->call.kw[i].name;
    if (!mf_tis(attribute, MF_T_MISSING)) {
        if (unknown)
            return mf_trender_raise(r, MF_TE_FILTER, "Unexpected keyword argument '%.*s'",
                                    unknown->n > 100 ? 100 : (int)unknown->n, unknown->p);
        return mf_tpath_parse(r, attribute, &m->path);
    }
    if (m->call.npos == 0) return mf_trender_raise(r, MF_TE_FILTER, "map requires a filter argument");
    m->name = m->call.pos[0];
    m->fn = mf_tis(m->name, MF_T_STR) ? mf_tfilter_find(m->name.s) : NULL;
    m->args = after(&m->call, 1);
    return MINFER_OK;
}

static minfer_status begin_select(mf_trender *r, mapper *m)
{
    size_t off = m->attribute;
    if (m->call.npos < off) return mf_trender_raise(r, MF_TE_FILTER, "Missing parameter for attribute name");
    m->otherwise = mf_tmissing();
    if (m->attribute) MF_TRY(mf_tpath_parse(r, m->call.pos[0], &m->path));
    if (m->call.npos == off) return MINFER_OK;
    m->name = m->call.pos[off];
    m->fn = mf_tis(m->name, MF_T_STR) ? mf_ttest_find(m->name.s) : NULL;
    m->args = after(&m->call, off + 1);
    return MINFER_OK;
}

/* Opens the source when the first item is asked for; *empty when there is nothing to look at. */
static minfer_status begin(mf_trender *r, mf_titer *it, minfer_status (*prepare)(mf_trender *, mapper *),
                           bool *empty)
{
    mapper *m = it->state;
    *empty = false;
    if (m->from) return MINFER_OK;
    *empty = !mf_tval_truth(it->src);
    if (*empty) return MINFER_OK;
    MF_TRY(prepare(r, m));
    return mf_titer_open(r, it->src, &m->from);
}

static minfer_status next_mapped(mf_trender *r, mf_titer *it, mf_tval *out)
{
    mapper *m = it->state;
    bool empty;
    *out = mf_tmissing();
    MF_TRY(begin(r, it, begin_map, &empty));
    if (empty) return MINFER_OK;
    MF_TRY(mf_titer_next(r, m->from, out));
    if (mf_tis(*out, MF_T_MISSING)) return MINFER_OK;
    if (mf_tis(m->name, MF_T_MISSING)) return mf_tpath_get(r, &m->path, *out, m->otherwise, out);
    return m->fn ? mf_tcall_def(r, m->fn, *out, &m->args, out) : no_function(r, "filter", m->name);
}

static minfer_status next_selected(mf_trender *r, mf_titer *it, mf_tval *out)
{
    mapper *m = it->state;
    bool empty;
    *out = mf_tmissing();
    MF_TRY(begin(r, it, begin_select, &empty));
    while (!empty) {
        mf_tval v;
        MF_TRY(mf_titer_next(r, m->from, out));
        if (mf_tis(*out, MF_T_MISSING)) break;
        MF_TRY(mf_tpath_get(r, &m->path, *out, m->otherwise, &v));
        if (m->fn)
            MF_TRY(mf_tcall_def(r, m->fn, v, &m->args, &v));
        else if (!mf_tis(m->name, MF_T_MISSING))
            return no_function(r, "test", m->name);
        if (mf_tval_truth(v) != m->reject) break;
    }
    return MINFER_OK;
}

enum { MAP, SELECT, REJECT, SELECTATTR, REJECTATTR };

static minfer_status make_mapper(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mapper *m = MF_RENDER_NEW(r, mapper);
    if (!m) return mf_trender_failed(r);
    m->attribute = a->which >= SELECTATTR;
    m->reject = a->which == REJECT || a->which == REJECTATTR;
    MF_TRY(keep_call(r, &a->rest, &m->call));
    return mf_titer_make(r, "generator", a->v[0], m, a->which == MAP ? next_mapped : next_selected, out);
}

/* -- unique -- */

typedef struct uniques {
    mf_titer *from;
    mf_tdict *seen;
    mf_tpath path;
    mf_tval attribute;
    bool case_sensitive;
} uniques;

static minfer_status next_unique(mf_trender *r, mf_titer *it, mf_tval *out)
{
    uniques *u = it->state;
    if (!u->from) {
        MF_TRY(mf_tpath_parse(r, u->attribute, &u->path));
        MF_TRY(mf_titer_open(r, it->src, &u->from));
    }
    for (;;) {
        mf_tval key;
        mf_tentry *e;
        MF_TRY(mf_titer_next(r, u->from, out));
        if (mf_tis(*out, MF_T_MISSING)) return MINFER_OK;
        MF_TRY(mf_tpath_get(r, &u->path, *out, mf_tmissing(), &key));
        MF_TRY(mf_tfilter_fold(r, key, u->case_sensitive, &key));
        MF_TRY(mf_tdict_find(r, u->seen, key, &e));
        if (!e) return mf_tdict_set(r, u->seen, key, mf_tnone());
    }
}

static minfer_status unique(mf_trender *r, mf_targs *a, mf_tval *out)
{
    uniques *u = MF_RENDER_NEW(r, uniques);
    if (!u) return mf_trender_failed(r);
    u->attribute = a->v[2];
    u->case_sensitive = mf_targ_truth(a, 1, false);
    MF_TRY(mf_tdict_new(r, &u->seen));
    return mf_titer_make(r, "generator", a->v[0], u, next_unique, out);
}

/* -- batch and slice -- */

typedef struct cutter {
    mf_titer *from;
    mf_tval size, fill; /* as given */
    mf_tval carried;    /* batch: the item that began the next one */
    mf_tlist *all;      /* slice: every item */
    int64_t n, at;      /* slice: how many, and which is next */
} cutter;

static minfer_status fill_up(mf_trender *r, const cutter *c, int64_t n, mf_tlist *l)
{
    if (mf_tis(c->fill, MF_T_MISSING) || mf_tis(c->fill, MF_T_NONE)) return MINFER_OK;
    for (int64_t k = (int64_t)l->n; k < n; k++) {
        MF_TRY(mf_trender_step(r));
        MF_TRY(mf_tlist_push(r, l, c->fill));
    }
    return MINFER_OK;
}

static minfer_status next_batch(mf_trender *r, mf_titer *it, mf_tval *out)
{
    cutter *c = it->state;
    mf_tlist *l;
    mf_tval item;
    int64_t n;
    if (!c->from) MF_TRY(mf_titer_open(r, it->src, &c->from));
    bool whole = mf_tis_int(c->size);
    n = whole ? mf_tas_int(c->size) : -1; /* what is no number is never reached */
    MF_TRY(mf_tlist_new(r, 0, &l));
    *out = mf_tlistval(l);
    if (!mf_tis(c->carried, MF_T_MISSING)) MF_TRY(mf_tlist_push(r, l, c->carried));
    c->carried = mf_tmissing();
    for (;;) {
        MF_TRY(mf_titer_next(r, c->from, &item));
        if (mf_tis(item, MF_T_MISSING)) break;
        if ((int64_t)l->n == n) {
            c->carried = item;
            return MINFER_OK;
        }
        MF_TRY(mf_tlist_push(r, l, item));
    }
    if (l->n == 0) *out = mf_tmissing();
    return l->n && whole ? fill_up(r, c, n, l) : MINFER_OK;
}

static minfer_status next_slice(mf_trender *r, mf_titer *it, mf_tval *out)
{
    cutter *c = it->state;
    if (!c->all) {
        MF_TRY(mf_titer_list(r, it->src, &c->all));
        MF_TRY(mf_tval_need_int(r, c->size, &c->n));
        if (c->n == 0) return mf_trender_raise(r, MF_TE_ZERO, "integer division or modulo by zero");
    }
    *out = mf_tmissing();
    if (c->at >= c->n) return MINFER_OK;
    int64_t each = (int64_t)c->all->n / c->n, longer = (int64_t)c->all->n % c->n, i = c->at++;
    int64_t from = i * each + (i < longer ? i : longer), n = each + (i < longer);
    *out = mf_tlistval(NULL);
    MF_TRY(mf_tlist_copy(r, c->all, (size_t)from, (size_t)n, &out->list));
    return i >= longer ? fill_up(r, c, n + 1, out->list) : MINFER_OK;
}

enum { BATCH, SLICE };

static minfer_status cut(mf_trender *r, mf_targs *a, mf_tval *out)
{
    cutter *c = MF_RENDER_NEW(r, cutter);
    if (!c) return mf_trender_failed(r);
    c->size = a->v[1];
    c->fill = a->v[2];
    return mf_titer_make(r, "generator", a->v[0], c, a->which == BATCH ? next_batch : next_slice, out);
}

/* -- items -- */

static minfer_status next_pair(mf_trender *r, mf_titer *it, mf_tval *out)
{
    *out = mf_tmissing();
    if (mf_tis(it->src, MF_T_UNDEFINED)) return MINFER_OK;
    if (!mf_tis(it->src, MF_T_DICT))
        return mf_trender_raise(r, MF_TE_TYPE, "Can only get item pairs from a mapping.");
    if (it->src.dict->live != it->seen)
        return mf_trender_raise(r, MF_TE_STATE, "dictionary changed size during iteration");
    const mf_tentry *e = mf_tdict_next(it->src.dict, &it->i);
    return e ? mf_tpair(r, e->key, e->value, out) : MINFER_OK;
}

static minfer_status items(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_titer_make(r, "generator", a->v[0], NULL, next_pair, out);
}

static const mf_tfndef defs[] = {
    {"batch", cut, "linecount fill_with", 1, BATCH},
    {"items", items, "", 0, 0},
    {"map", make_mapper, "*", 0, MAP},
    {"reject", make_mapper, "*", 0, REJECT},
    {"rejectattr", make_mapper, "*", 0, REJECTATTR},
    {"select", make_mapper, "*", 0, SELECT},
    {"selectattr", make_mapper, "*", 0, SELECTATTR},
    {"slice", cut, "slices fill_with", 1, SLICE},
    {"unique", unique, "case_sensitive attribute", 0, 0},
};

const mf_tfndef *mf_tfilter_lazy_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
