/* Built-in functions and the objects they make. */
#include "template/objects.h"
#include "template/attr.h"
#include "template/iter.h"
#include "template/ops.h"
#include "template/print.h"

enum { MAX_RANGE = 100000 };

/* -- range -- */

static uint64_t range_length(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0) return start < stop ? ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1 : 0;
    return start > stop ? ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1 : 0;
}

static minfer_status make_range(mf_trender *r, mf_targs *a, mf_tval *out)
{
    int64_t start = 0, stop, step;
    MF_TRY(mf_targ_int(r, a, 1, 0, &stop));
    if (mf_targ_given(a, 2)) {
        start = stop;
        MF_TRY(mf_targ_int(r, a, 2, 0, &stop));
    }
    MF_TRY(mf_targ_int(r, a, 3, 1, &step));
    if (step == 0) return mf_trender_raise(r, MF_TE_VALUE, "range() arg 3 must not be zero");
    uint64_t n = range_length(start, stop, step);
    if (n > MAX_RANGE)
        return mf_trender_raise(r, MF_TE_OVERFLOW,
                                "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                                MAX_RANGE);
    mf_trange *g = MF_RENDER_NEW(r, mf_trange);
    if (!g) return mf_trender_failed(r);
    *g = (mf_trange){start, stop, step, (int64_t)n};
    *out = (mf_tval){.type = MF_T_RANGE, .range = g};
    return MINFER_OK;
}

minfer_status mf_trange_attr(const mf_trange *g, const mf_tstr *name, mf_tval *out)
{
    if (mf_tstr_is(name, "start")) *out = mf_tint(g->start);
    if (mf_tstr_is(name, "stop")) *out = mf_tint(g->stop);
    if (mf_tstr_is(name, "step")) *out = mf_tint(g->step);
    return MINFER_OK;
}

/* -- dict and namespace -- */

static minfer_status add_pairs(mf_trender *r, mf_tdict *d, mf_tval pairs)
{
    mf_titer *it;
    mf_tval item;
    MF_TRY(mf_titer_open(r, pairs, &it));
    for (size_t i = 0;; i++) {
        mf_tlist *pair;
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) return MINFER_OK;
        if (!mf_titer_possible(item))
            return mf_trender_raise(
                r, MF_TE_TYPE, "cannot convert dictionary update sequence element #%zu to a sequence", i);
        MF_TRY(mf_titer_list(r, item, &pair));
        if (pair->n != 2)
            return mf_trender_raise(r, MF_TE_VALUE,
                                    "dictionary update sequence element #%zu has length %zu; 2 is required",
                                    i, pair->n);
        MF_TRY(mf_tdict_set(r, d, pair->v[0], pair->v[1]));
    }
}

minfer_status mf_tdict_fill(mf_trender *r, mf_tdict *d, const mf_tcall *call)
{
    if (call->npos > 1)
        return mf_trender_raise(r, MF_TE_TYPE, "dict expected at most 1 argument, got %zu", call->npos);
    if (call->npos && mf_tis(call->pos[0], MF_T_DICT))
        MF_TRY(mf_tdict_update(r, d, call->pos[0].dict));
    else if (call->npos)
        MF_TRY(add_pairs(r, d, call->pos[0]));
    for (size_t i = 0; i < call->nkw; i++)
        MF_TRY(mf_tdict_set(r, d, mf_tstring(call->kw[i].name), call->kw[i].value));
    return MINFER_OK;
}

static minfer_status make_dict(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tdict *d;
    MF_TRY(mf_tdict_new(r, &d));
    *out = mf_tdictval(d);
    return mf_tdict_fill(r, d, &a->rest);
}

static minfer_status check_name(mf_trender *r, mf_tval name)
{
    if (!mf_tis(name, MF_T_STR) || name.s->n == 0 || name.s->p[0] != '_') return MINFER_OK;
    char text[160];
    MF_TRY(mf_tval_brief(r, name, text, sizeof text));
    return mf_trender_raise(r, MF_TE_SECURITY,
                            "attributes of a namespace cannot begin with an underscore, but got %s", text);
}

minfer_status mf_tnamespace_set(mf_trender *r, mf_tdict *ns, mf_tval name, mf_tval v)
{
    MF_TRY(check_name(r, name));
    return mf_tdict_set(r, ns, name, v);
}

static minfer_status make_namespace(mf_trender *r, mf_targs *a, mf_tval *out)
{
    size_t i = 0;
    MF_TRY(make_dict(r, a, out));
    for (const mf_tentry *e; (e = mf_tdict_next(out->dict, &i));) MF_TRY(check_name(r, e->key));
    out->type = MF_T_NAMESPACE;
    return MINFER_OK;
}

/* -- cycler and joiner -- */

static minfer_status make_cycler(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tlist given = {.v = (mf_tval *)(uintptr_t)a->rest.pos, .n = a->rest.npos};
    if (given.n == 0) return mf_trender_raise(r, MF_TE_STATE, "at least one item has to be provided");
    mf_tcycler *c = MF_RENDER_NEW(r, mf_tcycler);
    if (!c) return mf_trender_failed(r);
    *out = (mf_tval){.type = MF_T_CYCLER, .cycler = c};
    return mf_tlist_copy(r, &given, 0, given.n, &c->items);
}

minfer_status mf_tcycler_attr(mf_trender *r, const mf_tcycler *c, const mf_tstr *name, mf_tval *out)
{
    (void)r;
    if (mf_tstr_is(name, "current")) *out = c->items->v[c->pos];
    if (mf_tstr_is(name, "pos")) *out = mf_tint((int64_t)c->pos);
    if (mf_tstr_is(name, "items")) *out = mf_ttupleval(c->items);
    return MINFER_OK;
}

static minfer_status cycler_next(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    mf_tcycler *c = a->v[0].cycler;
    *out = c->items->v[c->pos];
    c->pos = (c->pos + 1) % c->items->n;
    return MINFER_OK;
}

static minfer_status cycler_reset(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    a->v[0].cycler->pos = 0;
    *out = mf_tnone();
    return MINFER_OK;
}

const mf_tfndef *mf_tcycler_method(const mf_tstr *name)
{
    static const mf_tfndef methods[] = {{"next", cycler_next, "", 0, 0}, {"reset", cycler_reset, "", 0, 0}};
    return MF_FIND(methods, name);
}

static minfer_status make_joiner(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tjoiner *j = MF_RENDER_NEW(r, mf_tjoiner);
    if (!j) return mf_trender_failed(r);
    j->sep = a->v[1];
    *out = (mf_tval){.type = MF_T_JOINER, .joiner = j};
    return mf_targ_given(a, 1) ? MINFER_OK : mf_tstr_lit(r, ", ", &j->sep);
}

minfer_status mf_tjoiner_attr(mf_trender *r, const mf_tjoiner *j, const mf_tstr *name, mf_tval *out)
{
    (void)r;
    if (mf_tstr_is(name, "sep")) *out = j->sep;
    if (mf_tstr_is(name, "used")) *out = mf_tbool(j->used);
    return MINFER_OK;
}

minfer_status mf_tjoiner_call(mf_trender *r, mf_tjoiner *j, const mf_tcall *call, mf_tval *out)
{
    if (call->npos || call->nkw) return mf_trender_raise(r, MF_TE_TYPE, "a joiner takes no arguments");
    bool first = !j->used;
    j->used = true;
    *out = j->sep;
    return first ? mf_tstr_lit(r, "", out) : MINFER_OK;
}

/* -- the rest -- */

static minfer_status raise_exception(mf_trender *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(mf_tval_to_str(r, a->v[1], out));
    return mf_trender_raise(r, MF_TE_RAISED, "%.*s", out->s->n > 1000 ? 1000 : (int)out->s->n, out->s->p);
}

static minfer_status strftime_now(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *format;
    MF_TRY(mf_tval_need_str(r, a->v[1], &format));
    return mf_tstrftime(r, format, r->now, out);
}

static const mf_tfndef defs[] = {
    {"range", make_range, "/start stop step", 1, 0},
    {"dict", make_dict, "*", 0, 0},
    {"namespace", make_namespace, "*", 0, 0},
    {"cycler", make_cycler, "*", 0, 0},
    {"joiner", make_joiner, "sep", 0, 0},
    {"raise_exception", raise_exception, "message", 1, 0},
    {"strftime_now", strftime_now, "format", 1, 0},
};

minfer_status mf_tglobal_get(mf_trender *r, const mf_tstr *name, mf_tval *out)
{
    const mf_tfndef *def = MF_FIND(defs, name);
    mf_tfunc *f = def ? MF_RENDER_NEW(r, mf_tfunc) : NULL;
    if (!def) return MINFER_OK;
    if (!f) return mf_trender_failed(r);
    f->def = def;
    *out = (mf_tval){.type = MF_T_FUNC, .func = f};
    return MINFER_OK;
}
