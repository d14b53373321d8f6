/* Binding of arguments, and calls. */
#include "template/call.h"
#include "template/loop.h"
#include "template/objects.h"
#include "template/ops.h"

#include <string.h>

const mf_tfndef *mf_tfndef_find(const mf_tfndef *table, size_t n, const mf_tstr *name)
{
    for (size_t i = 0; i < n; i++)
        if (mf_tstr_is(name, table[i].name)) return &table[i];
    return NULL;
}

static size_t word_len(const char *p)
{
    return strcspn(p, " ");
}

static size_t count_words(const char *p)
{
    size_t n = *p != 0;
    for (; *p; p++) n += *p == ' ';
    return n;
}

/* Which parameter name is, counted from 1; 0: none. */
static size_t find_param(const char *params, const mf_tstr *name)
{
    for (size_t i = 1; *params; i++) {
        size_t n = word_len(params);
        if (n == name->n && memcmp(params, name->p, n) == 0) return i;
        params += n + (params[n] == ' ');
    }
    return 0;
}

static const char *param_name(const char *params, size_t i, size_t *n)
{
    for (; i > 1; i--) params += word_len(params) + 1;
    *n = word_len(params);
    return params;
}

static minfer_status bind_keyword(mf_trender *r, const mf_tfndef *def, const char *params, const mf_tkw *kw,
                                  mf_targs *a)
{
    size_t at = find_param(params, kw->name);
    int n = kw->name->n > 100 ? 100 : (int)kw->name->n;
    if (at == 0 || *def->params == '/')
        return mf_trender_raise(r, MF_TE_TYPE, "%s() got an unexpected keyword argument '%.*s'", def->name, n,
                                kw->name->p);
    if (mf_targ_given(a, at))
        return mf_trender_raise(r, MF_TE_TYPE, "%s() got multiple values for argument '%.*s'", def->name, n,
                                kw->name->p);
    a->v[at] = kw->value;
    return MINFER_OK;
}

static minfer_status bind(mf_trender *r, const mf_tfndef *def, const mf_tcall *call, mf_targs *a)
{
    const char *params = def->params + (*def->params == '/');
    size_t max = count_words(params), n;
    if (call->npos > max)
        return mf_trender_raise(r, MF_TE_TYPE, "%s() takes at most %zu arguments (%zu given)", def->name, max,
                                call->npos);
    for (size_t i = 0; i < call->npos; i++) a->v[i + 1] = call->pos[i];
    for (size_t i = 0; i < call->nkw; i++) MF_TRY(bind_keyword(r, def, params, &call->kw[i], a));
    for (size_t i = 1; i <= def->required; i++) {
        if (mf_targ_given(a, i)) continue;
        const char *name = param_name(params, i, &n);
        return mf_trender_raise(r, MF_TE_TYPE, "%s() missing required argument: '%.*s'", def->name, (int)n,
                                name);
    }
    return MINFER_OK;
}

minfer_status mf_tcall_def(mf_trender *r, const mf_tfndef *def, mf_tval first, const mf_tcall *call,
                           mf_tval *out)
{
    mf_targs a = {.v = {first}, .which = def->which};
    MF_TRY(mf_trender_step(r));
    if (strcmp(def->params, "*") == 0)
        a.rest = *call;
    else
        MF_TRY(bind(r, def, call, &a));
    return def->fn(r, &a, out);
}

minfer_status mf_tcall_value(mf_trender *r, mf_tval callee, const mf_tcall *call, mf_tval *out)
{
    switch (callee.type) {
    case MF_T_FUNC: return mf_tcall_def(r, callee.func->def, callee.func->self, call, out);
    case MF_T_MACRO: return mf_tmacro_call(r, callee.macro, call, out);
    case MF_T_LOOP: return mf_tloop_call(r, callee.loop, call, out);
    case MF_T_JOINER: return mf_tjoiner_call(r, callee.joiner, call, out);
    case MF_T_UNDEFINED: return mf_tundefined_raise(r, callee);
    default: return mf_trender_raise(r, MF_TE_TYPE, "'%s' object is not callable", mf_tval_type_name(callee));
    }
}

bool mf_tval_callable(mf_tval v)
{
    return v.type == MF_T_FUNC || v.type == MF_T_MACRO || v.type == MF_T_LOOP || v.type == MF_T_JOINER ||
           v.type == MF_T_UNDEFINED;
}

minfer_status mf_targ_int(mf_trender *r, const mf_targs *a, size_t i, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    return mf_targ_given(a, i) ? mf_tval_need_int(r, a->v[i], out) : MINFER_OK;
}

bool mf_targ_truth(const mf_targs *a, size_t i, bool otherwise)
{
    return mf_targ_given(a, i) ? mf_tval_truth(a->v[i]) : otherwise;
}

mf_tval mf_targ_or(const mf_targs *a, size_t i, mf_tval otherwise)
{
    return mf_targ_given(a, i) ? a->v[i] : otherwise;
}
