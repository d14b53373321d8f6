/* str() and repr(). */
#include "template/print.h"
#include "template/call.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/number.h"
#include "template/unicode.h"

#include <stdio.h>
#include <string.h>

size_t mf_tprint_int(int64_t i, char out[MF_PRINT_INT])
{
    return (size_t)snprintf(out, MF_PRINT_INT, "%lld", (long long)i);
}

/* -- strings -- */

static minfer_status put_escape(mf_trender *r, mf_tsb *out, uint32_t cp)
{
    if (cp == '\n') return mf_tsb_text(r, out, "\\n");
    if (cp == '\r') return mf_tsb_text(r, out, "\\r");
    if (cp == '\t') return mf_tsb_text(r, out, "\\t");
    const char *fmt = cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x";
    char text[12];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, fmt, cp);
#pragma GCC diagnostic pop
    return mf_tsb_text(r, out, text);
}

minfer_status mf_tprint_quoted(mf_trender *r, mf_tsb *out, const mf_tstr *s, bool ascii)
{
    bool single = s->n && memchr(s->p, '\'', s->n), both = single && memchr(s->p, '"', s->n);
    char quote = single && !both ? '"' : '\'';
    uint32_t cp;
    MF_TRY(mf_tsb_char(r, out, quote));
    for (size_t i = 0, k; i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        if (cp == '\\' || cp == (uint32_t)quote) MF_TRY(mf_tsb_char(r, out, '\\'));
        if (mf_tuc_is_printable(cp) && !(ascii && cp > 0x7E))
            MF_TRY(mf_tsb_put(r, out, s->p + i, k));
        else
            MF_TRY(put_escape(r, out, cp));
    }
    return mf_tsb_char(r, out, quote);
}

/* -- containers -- */

static minfer_status repr_items(mf_trender *r, mf_tsb *out, mf_tval v)
{
    const mf_tlist *l = v.list;
    bool tuple = mf_tis(v, MF_T_TUPLE);
    MF_TRY(mf_tsb_char(r, out, tuple ? '(' : '['));
    for (size_t i = 0; i < l->n; i++) {
        if (i) MF_TRY(mf_tsb_text(r, out, ", "));
        MF_TRY(mf_tval_repr(r, out, l->v[i]));
    }
    if (tuple && l->n == 1) MF_TRY(mf_tsb_char(r, out, ','));
    return mf_tsb_char(r, out, tuple ? ')' : ']');
}

static minfer_status repr_entries(mf_trender *r, mf_tsb *out, mf_tval v)
{
    size_t i = 0;
    const char *sep = "";
    MF_TRY(mf_tsb_char(r, out, '{'));
    for (const mf_tentry *e; (e = mf_tdict_next(v.dict, &i)); sep = ", ") {
        MF_TRY(mf_tsb_text(r, out, sep));
        MF_TRY(mf_tval_repr(r, out, e->key));
        MF_TRY(mf_tsb_text(r, out, ": "));
        MF_TRY(mf_tval_repr(r, out, e->value));
    }
    return mf_tsb_char(r, out, '}');
}

/* Prints a container unless that is already going on, further out. */
static minfer_status guarded(mf_trender *r, mf_tsb *out, mf_tval v, bool *busy, const char *again,
                             minfer_status (*body)(mf_trender *, mf_tsb *, mf_tval))
{
    if (*busy) return mf_tsb_text(r, out, again);
    *busy = true;
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = body(r, out, v);
    mf_trender_leave(r);
    *busy = false;
    return st;
}

static minfer_status repr_list(mf_trender *r, mf_tsb *out, mf_tval v)
{
    return guarded(r, out, v, &v.list->busy, mf_tis(v, MF_T_TUPLE) ? "(...)" : "[...]", repr_items);
}

static minfer_status repr_dict(mf_trender *r, mf_tsb *out, mf_tval v)
{
    return guarded(r, out, v, &v.dict->busy, "{...}", repr_entries);
}

static minfer_status repr_namespace(mf_trender *r, mf_tsb *out, mf_tval v)
{
    MF_TRY(mf_tsb_text(r, out, "<Namespace "));
    MF_TRY(repr_dict(r, out, v));
    return mf_tsb_char(r, out, '>');
}

static minfer_status repr_view(mf_trender *r, mf_tsb *out, mf_tval v)
{
    mf_tlist *items;
    MF_TRY(mf_titer_list(r, v, &items));
    MF_TRY(mf_tsb_printf(r, out, "%s(", mf_tval_type_name(v)));
    bool *busy = &v.view->dict->busy;
    MF_TRY(guarded(r, out, mf_tlistval(items), busy, "...", repr_items));
    return mf_tsb_char(r, out, ')');
}

static minfer_status repr_range(mf_trender *r, mf_tsb *out, mf_tval v)
{
    const mf_trange *g = v.range;
    MF_TRY(mf_tsb_printf(r, out, "range(%lld, %lld", (long long)g->start, (long long)g->stop));
    return g->step == 1 ? mf_tsb_char(r, out, ')') : mf_tsb_printf(r, out, ", %lld)", (long long)g->step);
}

/* -- scalars and objects; where Python shows an address, nothing is shown -- */

static minfer_status repr_undefined(mf_trender *r, mf_tsb *out, mf_tval v)
{
    (void)v;
    return mf_tsb_text(r, out, "Undefined");
}

static minfer_status repr_none(mf_trender *r, mf_tsb *out, mf_tval v)
{
    (void)v;
    return mf_tsb_text(r, out, "None");
}

static minfer_status repr_bool(mf_trender *r, mf_tsb *out, mf_tval v)
{
    return mf_tsb_text(r, out, v.b ? "True" : "False");
}

static minfer_status repr_int(mf_trender *r, mf_tsb *out, mf_tval v)
{
    char text[MF_PRINT_INT];
    return mf_tsb_put(r, out, text, mf_tprint_int(v.i, text));
}

static minfer_status repr_float(mf_trender *r, mf_tsb *out, mf_tval v)
{
    char text[MF_NUMBER_REPR];
    return mf_tsb_put(r, out, text, mf_tnumber_repr(v.f, text));
}

static minfer_status repr_str(mf_trender *r, mf_tsb *out, mf_tval v)
{
    if (v.safe) MF_TRY(mf_tsb_text(r, out, "Markup("));
    MF_TRY(mf_tprint_quoted(r, out, v.s, false));
    return v.safe ? mf_tsb_char(r, out, ')') : MINFER_OK;
}

static minfer_status repr_iter(mf_trender *r, mf_tsb *out, mf_tval v)
{
    return mf_tsb_printf(r, out, "<%s object>", v.iter->kind);
}

static minfer_status repr_macro(mf_trender *r, mf_tsb *out, mf_tval v)
{
    mf_tval name = mf_tmacro_name(v.macro);
    MF_TRY(mf_tsb_text(r, out, "<Macro "));
    MF_TRY(mf_tis(name, MF_T_NONE) ? mf_tsb_text(r, out, "anonymous")
                                   : mf_tprint_quoted(r, out, name.s, false));
    return mf_tsb_char(r, out, '>');
}

static minfer_status repr_func(mf_trender *r, mf_tsb *out, mf_tval v)
{
    if (mf_tis(v.func->self, MF_T_MISSING)) return mf_tsb_printf(r, out, "<function %s>", v.func->def->name);
    return mf_tsb_printf(r, out, "<built-in method %s of %s object>", v.func->def->name,
                         mf_tval_type_name(v.func->self));
}

static minfer_status repr_loop(mf_trender *r, mf_tsb *out, mf_tval v)
{
    int64_t n;
    MF_TRY(mf_tloop_length(r, v.loop, &n));
    return mf_tsb_printf(r, out, "<LoopContext %lld/%lld>", (long long)v.loop->index0 + 1, (long long)n);
}

static minfer_status repr_object(mf_trender *r, mf_tsb *out, mf_tval v)
{
    return mf_tsb_printf(r, out, "<jinja2.utils.%s object>", mf_tval_type_name(v));
}

static minfer_status (*const reprs[MF_T_COUNT])(mf_trender *, mf_tsb *, mf_tval) = {
    [MF_T_MISSING] = repr_undefined, [MF_T_UNDEFINED] = repr_undefined,
    [MF_T_NONE] = repr_none,         [MF_T_BOOL] = repr_bool,
    [MF_T_INT] = repr_int,           [MF_T_FLOAT] = repr_float,
    [MF_T_STR] = repr_str,           [MF_T_LIST] = repr_list,
    [MF_T_TUPLE] = repr_list,        [MF_T_DICT] = repr_dict,
    [MF_T_RANGE] = repr_range,       [MF_T_VIEW] = repr_view,
    [MF_T_ITER] = repr_iter,         [MF_T_NAMESPACE] = repr_namespace,
    [MF_T_MACRO] = repr_macro,       [MF_T_FUNC] = repr_func,
    [MF_T_LOOP] = repr_loop,         [MF_T_CYCLER] = repr_object,
    [MF_T_JOINER] = repr_object,
};

minfer_status mf_tval_repr(mf_trender *r, mf_tsb *out, mf_tval v)
{
    MF_TRY(mf_trender_step(r));
    return reprs[v.type](r, out, v);
}

minfer_status mf_tval_str(mf_trender *r, mf_tsb *out, mf_tval v)
{
    if (mf_tis(v, MF_T_STR)) return mf_tsb_put(r, out, v.s->p, v.s->n);
    return mf_tis(v, MF_T_UNDEFINED) ? MINFER_OK : mf_tval_repr(r, out, v);
}

minfer_status mf_tval_to_str(mf_trender *r, mf_tval v, mf_tval *out)
{
    if (mf_tis(v, MF_T_STR)) {
        *out = v;
        return MINFER_OK;
    }
    mf_tsb text = {0};
    MF_TRY(mf_tval_str(r, &text, v));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

minfer_status mf_tval_brief(mf_trender *r, mf_tval v, char *out, size_t size)
{
    mf_tsb text = {0};
    MF_TRY(mf_tval_repr(r, &text, v));
    snprintf(out, size, "%.*s", text.n < size ? (int)text.n : (int)size - 1, text.p);
    return MINFER_OK;
}
