/* The loop variable. */
#include "template/loop.h"
#include "template/ops.h"

minfer_status mf_tloop_next(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    if (mf_tis(l->after, MF_T_MISSING))
        MF_TRY(mf_titer_next(r, l->it, out));
    else
        *out = l->after;
    l->after = mf_tmissing();
    if (mf_tis(*out, MF_T_MISSING)) return MINFER_OK;
    l->index0++;
    l->before = l->current;
    l->current = *out;
    return MINFER_OK;
}

static minfer_status peek(mf_trender *r, mf_tloop *l)
{
    return mf_tis(l->after, MF_T_MISSING) ? mf_titer_next(r, l->it, &l->after) : MINFER_OK;
}

/* What has no length of its own is read to its end, and iterated from the copy. */
minfer_status mf_tloop_length(mf_trender *r, mf_tloop *l, int64_t *n)
{
    bool has = false;
    mf_tlist *rest;
    if (l->length < 0) MF_TRY(mf_tval_len(r, l->iterable, &l->length, &has));
    if (l->length < 0) {
        MF_TRY(mf_titer_list(r, (mf_tval){.type = MF_T_ITER, .iter = l->it}, &rest));
        MF_TRY(mf_titer_open(r, mf_tlistval(rest), &l->it));
        l->length = (int64_t)rest->n + l->index0 + 1 + !mf_tis(l->after, MF_T_MISSING);
    }
    *n = l->length;
    return MINFER_OK;
}

static minfer_status from_end(mf_trender *r, mf_tloop *l, int64_t offset, mf_tval *out)
{
    int64_t n;
    MF_TRY(mf_tloop_length(r, l, &n));
    *out = mf_tint(n - l->index0 - offset);
    return MINFER_OK;
}

static minfer_status get_index(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    (void)r;
    *out = mf_tint(l->index0 + 1);
    return MINFER_OK;
}
static minfer_status get_index0(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    (void)r;
    *out = mf_tint(l->index0);
    return MINFER_OK;
}
static minfer_status get_revindex(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    return from_end(r, l, 0, out);
}
static minfer_status get_revindex0(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    return from_end(r, l, 1, out);
}
static minfer_status get_length(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    *out = mf_tint(0);
    return mf_tloop_length(r, l, &out->i);
}
static minfer_status get_first(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    (void)r;
    *out = mf_tbool(l->index0 == 0);
    return MINFER_OK;
}
static minfer_status get_last(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    MF_TRY(peek(r, l));
    *out = mf_tbool(mf_tis(l->after, MF_T_MISSING));
    return MINFER_OK;
}
static minfer_status get_depth(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    (void)r;
    *out = mf_tint(l->depth0 + 1);
    return MINFER_OK;
}
static minfer_status get_depth0(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    (void)r;
    *out = mf_tint(l->depth0);
    return MINFER_OK;
}
static minfer_status get_previtem(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    if (l->index0 == 0) return mf_tundefined_hint(r, "there is no previous item", out);
    *out = l->before;
    return MINFER_OK;
}
static minfer_status get_nextitem(mf_trender *r, mf_tloop *l, mf_tval *out)
{
    MF_TRY(peek(r, l));
    if (mf_tis(l->after, MF_T_MISSING)) return mf_tundefined_hint(r, "there is no next item", out);
    *out = l->after;
    return MINFER_OK;
}

minfer_status mf_tloop_attr(mf_trender *r, mf_tloop *l, const mf_tstr *name, mf_tval *out)
{
    static const struct {
        const char *name;
        minfer_status (*get)(mf_trender *, mf_tloop *, mf_tval *);
    } attrs[] = {
        {"index", get_index},       {"index0", get_index0},       {"revindex", get_revindex},
        {"length", get_length},     {"revindex0", get_revindex0}, {"first", get_first},
        {"last", get_last},         {"depth", get_depth},         {"depth0", get_depth0},
        {"previtem", get_previtem}, {"nextitem", get_nextitem},
    };
    *out = mf_tmissing();
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++)
        if (mf_tstr_is(name, attrs[i].name)) return attrs[i].get(r, l, out);
    return MINFER_OK;
}

static minfer_status cycle(mf_trender *r, mf_targs *a, mf_tval *out)
{
    if (a->rest.npos == 0) return mf_trender_raise(r, MF_TE_TYPE, "no items for cycling given");
    *out = a->rest.pos[(uint64_t)a->v[0].loop->index0 % a->rest.npos];
    return MINFER_OK;
}

static minfer_status changed(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tloop *l = a->v[0].loop;
    mf_tlist given = {.v = (mf_tval *)(uintptr_t)a->rest.pos, .n = a->rest.npos}, *kept;
    bool same;
    MF_TRY(mf_tval_eq(r, l->changed, mf_ttupleval(&given), &same));
    *out = mf_tbool(!same);
    if (same) return MINFER_OK;
    MF_TRY(mf_tlist_copy(r, &given, 0, given.n, &kept));
    l->changed = mf_ttupleval(kept);
    return MINFER_OK;
}

const mf_tfndef *mf_tloop_method(const mf_tstr *name)
{
    static const mf_tfndef methods[] = {{"cycle", cycle, "*", 0, 0}, {"changed", changed, "*", 0, 0}};
    return MF_FIND(methods, name);
}
