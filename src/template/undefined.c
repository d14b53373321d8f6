/* Undefined values: made by every lookup that finds nothing, harmless until somebody works with them. */
#include "template/ops.h"
#include "template/print.h"

static minfer_status make(mf_trender *r, mf_tundef u, mf_tval *out)
{
    mf_tundef *p = MF_RENDER_NEW(r, mf_tundef);
    if (!p) return mf_trender_failed(r);
    *p = u;
    *out = (mf_tval){.type = MF_T_UNDEFINED, .undef = p};
    return MINFER_OK;
}

minfer_status mf_tundefined(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out)
{
    return make(r, (mf_tundef){.obj = obj, .name = name, .exc = MF_TE_UNDEFINED}, out);
}

minfer_status mf_tundefined_hint(mf_trender *r, const char *hint, mf_tval *out)
{
    return make(r, (mf_tundef){.hint = hint, .exc = MF_TE_UNDEFINED}, out);
}

minfer_status mf_tundefined_unsafe(mf_trender *r, mf_tval obj, mf_tval name, mf_tval *out)
{
    return make(r, (mf_tundef){.obj = obj, .name = name, .exc = MF_TE_SECURITY}, out);
}

/* "dict object", but None stands for itself, as do Jinja's own types by their full name. */
static const char *describe_type(mf_tval v)
{
    static const char *const own[MF_T_COUNT] = {
        [MF_T_NONE] = "None",
        [MF_T_NAMESPACE] = "jinja2.utils.Namespace object",
        [MF_T_MACRO] = "jinja2.runtime.Macro object",
        [MF_T_LOOP] = "jinja2.runtime.LoopContext object",
        [MF_T_CYCLER] = "jinja2.utils.Cycler object",
        [MF_T_JOINER] = "jinja2.utils.Joiner object",
    };
    return own[v.type];
}

minfer_status mf_tundefined_raise(mf_trender *r, mf_tval v)
{
    const mf_tundef *u = v.undef;
    if (u->hint) return mf_trender_raise(r, u->exc, "%s", u->hint);
    mf_tsb name = {0}, type = {0};
    MF_TRY(mf_tval_repr(r, &name, u->name));
    int n = name.n > 400 ? 400 : (int)name.n;
    if (mf_tis(u->obj, MF_T_MISSING)) return mf_trender_raise(r, u->exc, "%.*s is undefined", n, name.p);
    if (u->exc == MF_TE_SECURITY)
        return mf_trender_raise(r, u->exc, "access to attribute %.*s of '%s' object is unsafe.", n, name.p,
                                mf_tval_type_name(u->obj));
    const char *own = describe_type(u->obj);
    MF_TRY(mf_tsb_printf(r, &type, "%s%s", own ? own : mf_tval_type_name(u->obj), own ? "" : " object"));
    const char *quote = mf_tis(u->name, MF_T_STR) ? "'" : "", *what = *quote ? "attribute" : "element";
    return mf_trender_raise(r, u->exc, "%s%.*s%s has no %s %.*s", quote, (int)type.n, type.p, quote, what, n,
                            name.p);
}
