/* Attributes and items. */
#include "template/attr.h"
#include "template/loop.h"
#include "template/number.h"
#include "template/objects.h"
#include "template/ops.h"
#include "template/unicode.h"

#include <string.h>

static bool is_private(const mf_tstr *name)
{
    return name->n > 0 && name->p[0] == '_';
}

static bool is_dunder(const mf_tstr *name)
{
    return name->n > 4 && memcmp(name->p, "__", 2) == 0 && memcmp(name->p + name->n - 2, "__", 2) == 0;
}

static minfer_status bind_method(mf_trender *r, const mf_tfndef *def, mf_tval obj, mf_tval *out)
{
    mf_tfunc *f = MF_RENDER_NEW(r, mf_tfunc);
    if (!f) return mf_trender_failed(r);
    *f = (mf_tfunc){def, obj};
    *out = (mf_tval){.type = MF_T_FUNC, .func = f};
    return MINFER_OK;
}

static void number_property(mf_tval v, const mf_tstr *name, mf_tval *out)
{
    bool whole = mf_tis_int(v);
    if (mf_tstr_is(name, "real") || (whole && mf_tstr_is(name, "numerator")))
        *out = whole ? mf_tint(mf_tas_int(v)) : v;
    if (mf_tstr_is(name, "imag")) *out = whole ? mf_tint(0) : mf_tfloat(0);
    if (whole && mf_tstr_is(name, "denominator")) *out = mf_tint(1);
}

/* Attributes that are values rather than methods; MISSING when there is none. */
static minfer_status property(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out)
{
    mf_tentry *e;
    *out = mf_tmissing();
    switch (obj.type) {
    case MF_T_NAMESPACE:
        MF_TRY(mf_tdict_find(r, obj.dict, name, &e));
        if (e) *out = e->value;
        return MINFER_OK;
    case MF_T_LOOP: return mf_tloop_attr(r, obj.loop, name.s, out);
    case MF_T_MACRO: return mf_tmacro_attr(r, obj.macro, name.s, out);
    case MF_T_CYCLER: return mf_tcycler_attr(r, obj.cycler, name.s, out);
    case MF_T_JOINER: return mf_tjoiner_attr(r, obj.joiner, name.s, out);
    case MF_T_BOOL:
    case MF_T_INT:
    case MF_T_FLOAT: number_property(obj, name.s, out); return MINFER_OK;
    case MF_T_RANGE: return mf_trange_attr(obj.range, name.s, out);
    case MF_T_TUPLE:
        if (obj.list->group && mf_tstr_is(name.s, "grouper")) *out = obj.list->v[0];
        if (obj.list->group && mf_tstr_is(name.s, "list")) *out = obj.list->v[1];
        return MINFER_OK;
    default: return MINFER_OK;
    }
}

minfer_status mf_tattr_only(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out)
{
    if (mf_tis(obj, MF_T_UNDEFINED) && !mf_tstr_is(name.s, "__class__")) return mf_tundefined_raise(r, obj);
    MF_TRY(property(r, obj, name, out));
    bool found = !mf_tis(*out, MF_T_MISSING);
    if (is_dunder(name.s) || (found && is_private(name.s))) return mf_tundefined_unsafe(r, obj, name, out);
    const mf_tfndef *method = found ? NULL : mf_tmethod_find(obj, name.s);
    return method ? bind_method(r, method, obj, out) : MINFER_OK;
}

/* The item; MISSING when there is none, or obj has no items, or key cannot be one. */
static minfer_status item_only(mf_trender *r, mf_tval obj, mf_tval key, mf_tval *out)
{
    mf_tentry *e;
    *out = mf_tmissing();
    if (mf_tis(obj, MF_T_DICT)) {
        if (!mf_tval_hashable(key)) return MINFER_OK;
        MF_TRY(mf_tdict_find(r, obj.dict, key, &e));
        if (e) *out = e->value;
        return MINFER_OK;
    }
    bool indexed = mf_tis(obj, MF_T_STR) || mf_tis_seq(obj) || mf_tis(obj, MF_T_RANGE);
    return indexed && mf_tis_int(key) ? mf_tval_at(r, obj, mf_tas_int(key), out) : MINFER_OK;
}

minfer_status mf_tattr_get(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out)
{
    MF_TRY(mf_tattr_only(r, obj, name, out));
    bool unsafe = mf_tis(*out, MF_T_UNDEFINED) && is_dunder(name.s);
    if (!mf_tis(*out, MF_T_MISSING) && !unsafe) return MINFER_OK;
    mf_tval item;
    MF_TRY(item_only(r, obj, name, &item));
    if (!mf_tis(item, MF_T_MISSING)) *out = item;
    return mf_tis(*out, MF_T_MISSING) ? mf_tundefined(r, obj, name, out) : MINFER_OK;
}

minfer_status mf_titem_get(mf_trender *r, mf_tval obj, mf_tval key, mf_tval *out)
{
    if (mf_tis(obj, MF_T_UNDEFINED)) return mf_tundefined_raise(r, obj);
    MF_TRY(item_only(r, obj, key, out));
    if (!mf_tis(*out, MF_T_MISSING)) return MINFER_OK;
    if (mf_tis(key, MF_T_STR)) MF_TRY(mf_tattr_only(r, obj, key, out));
    return mf_tis(*out, MF_T_MISSING) ? mf_tundefined(r, obj, key, out) : MINFER_OK;
}

/* -- paths -- */

static bool all_digits(const mf_tstr *s)
{
    uint32_t cp;
    for (size_t i = 0; i < s->n;) {
        i += mf_tuc_at(s->p + i, &cp);
        if (cp < '0' || cp > '9') return false;
    }
    return s->n > 0;
}

static minfer_status path_part(mf_trender *r, const mf_tstr *path, size_t from, size_t to, mf_tval *out)
{
    int64_t index;
    MF_TRY(mf_tstr_view(r, path, from, to - from, out));
    if (!all_digits(out->s)) return MINFER_OK;
    if (mf_tnumber_parse_int(out->s->p, out->s->n, 10, &index) != MF_PARSE_OK) return mf_tval_too_big(r);
    *out = mf_tint(index);
    return MINFER_OK;
}

minfer_status mf_tpath_parse(mf_trender *r, mf_tval path, mf_tpath *out)
{
    *out = (mf_tpath){0};
    if (mf_tis(path, MF_T_MISSING) || mf_tis(path, MF_T_NONE)) return MINFER_OK;
    size_t dots = 0;
    for (size_t i = 0; mf_tis(path, MF_T_STR) && i < path.s->n; i++) dots += path.s->p[i] == '.';
    out->part = mf_trender_alloc(r, dots + 1, sizeof *out->part);
    if (!out->part) return mf_trender_failed(r);
    if (!mf_tis(path, MF_T_STR)) {
        out->part[out->n++] = path;
        return MINFER_OK;
    }
    for (size_t from = 0, to = 0; to <= path.s->n; to++) {
        if (to < path.s->n && path.s->p[to] != '.') continue;
        MF_TRY(path_part(r, path.s, from, to, &out->part[out->n++]));
        from = to + 1;
    }
    return MINFER_OK;
}

minfer_status mf_tpath_get(mf_trender *r, const mf_tpath *path, mf_tval obj, mf_tval otherwise, mf_tval *out)
{
    *out = obj;
    for (size_t i = 0; i < path->n; i++) {
        MF_TRY(mf_titem_get(r, *out, path->part[i], out));
        if (mf_tis(*out, MF_T_UNDEFINED) && !mf_tis(otherwise, MF_T_MISSING) && !mf_tis(otherwise, MF_T_NONE))
            *out = otherwise;
    }
    return MINFER_OK;
}
