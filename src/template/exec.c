/* Statements, macros and loops. */
#include "template/eval.h"
#include "template/loop.h"
#include "template/objects.h"
#include "template/ops.h"
#include "template/print.h"

#include <stdio.h>
#include <string.h>

typedef minfer_status exec_fn(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow);

/* -- assignment -- */

static minfer_status unpack(mf_trender *r, mf_tframe *f, const mf_tnode *target, mf_tval v)
{
    mf_titer *it;
    mf_tval item;
    if (!mf_titer_possible(v) || mf_tis(v, MF_T_LOOP))
        return mf_trender_raise(r, MF_TE_TYPE, "cannot unpack non-iterable %s object", mf_tval_type_name(v));
    MF_TRY(mf_titer_open(r, v, &it));
    for (uint32_t i = 0; i < target->n; i++) {
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING))
            return mf_trender_raise(r, MF_TE_VALUE, "not enough values to unpack (expected %u, got %u)",
                                    target->n, i);
        MF_TRY(mf_tassign(r, f, target->kid[i], item));
    }
    MF_TRY(mf_titer_next(r, it, &item));
    if (mf_tis(item, MF_T_MISSING)) return MINFER_OK;
    return mf_trender_raise(r, MF_TE_VALUE, "too many values to unpack (expected %u)", target->n);
}

minfer_status mf_tassign(mf_trender *r, mf_tframe *f, const mf_tnode *target, mf_tval v)
{
    mf_tframe *at = f;
    if (target->kind == MF_N_TUPLE) return unpack(r, f, target, v);
    for (uint32_t hops = target->var.hops; hops > 0; hops--) at = at->up;
    mf_tval *slot = &at->slot[target->var.slot];
    if (target->kind == MF_N_NAME) {
        *slot = v;
        return MINFER_OK;
    }
    if (!mf_tis(*slot, MF_T_NAMESPACE))
        return mf_trender_raise(r, MF_TE_RUNTIME, "cannot assign attribute on non-namespace object");
    return mf_tnamespace_set(r, slot->dict, mf_tstring(target->attr), v);
}

static minfer_status exec_set(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tval v;
    (void)flow;
    MF_TRY(mf_teval(r, f, node->kid[MF_SET_VALUE], &v));
    return mf_tassign(r, f, node->kid[MF_SET_TARGET], v);
}

/* -- output -- */

static minfer_status exec_text(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    (void)f, (void)flow;
    return mf_trender_write(r, node->value.s->p, node->value.s->n);
}

static minfer_status exec_print(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    (void)flow;
    for (uint32_t i = 0; i < node->n; i++) {
        mf_tval v;
        MF_TRY(mf_teval(r, f, node->kid[i], &v));
        MF_TRY(mf_tval_to_str(r, v, &v));
        MF_TRY(mf_trender_write(r, v.s->p, v.s->n));
    }
    return MINFER_OK;
}

/* Runs a body and keeps what it writes. */
static minfer_status capture(mf_trender *r, mf_tframe *f, const mf_tnode *body, mf_tval *out, mf_tflow *flow)
{
    mf_tsb text = {0}, *outer = r->capture;
    r->capture = &text;
    minfer_status st = mf_texec(r, f, body, flow);
    r->capture = outer;
    return st == MINFER_OK ? mf_tstr_wrap(r, text.p, text.n, out) : st;
}

/* Blocks write what a filter or call gives as it is, and only text can be written so. */
static minfer_status write_text(mf_trender *r, mf_tval v)
{
    if (mf_tis(v, MF_T_STR)) return mf_trender_write(r, v.s->p, v.s->n);
    return mf_trender_raise(r, MF_TE_TYPE, "expected str instance, %s found", mf_tval_type_name(v));
}

static minfer_status exec_setblock(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tframe *inner;
    mf_tval v;
    MF_TRY(mf_tframe_new(r, f, node->scope, &inner));
    MF_TRY(capture(r, inner, node->kid[MF_SET_BODY], &v, flow));
    if (*flow != MF_FLOW_NEXT) return MINFER_OK;
    inner->captured = v;
    if (node->kid[MF_SET_FILTER]) MF_TRY(mf_teval(r, inner, node->kid[MF_SET_FILTER], &v));
    return mf_tassign(r, f, node->kid[MF_SET_TARGET], v);
}

static minfer_status exec_filterblock(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tframe *inner;
    mf_tval v;
    MF_TRY(mf_tframe_new(r, f, node->scope, &inner));
    MF_TRY(capture(r, inner, node->kid[0], &v, flow));
    if (*flow != MF_FLOW_NEXT) return MINFER_OK;
    inner->captured = v;
    MF_TRY(mf_teval(r, inner, node->kid[1], &v));
    return write_text(r, v);
}

static minfer_status exec_with(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tframe *inner;
    uint32_t n = node->n / 2;
    MF_TRY(mf_tframe_new(r, f, node->scope, &inner));
    for (uint32_t i = 0; i < n; i++) {
        mf_tval v;
        MF_TRY(mf_teval(r, f, node->kid[n + i], &v));
        MF_TRY(mf_tassign(r, inner, node->kid[i], v));
    }
    return mf_texec(r, inner, node->kid[node->n - 1], flow);
}

/* -- control -- */

static minfer_status exec_block(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    for (uint32_t i = 0; i < node->n && *flow == MF_FLOW_NEXT; i++)
        MF_TRY(mf_texec(r, f, node->kid[i], flow));
    return MINFER_OK;
}

static minfer_status exec_if(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    for (uint32_t i = 0; i + 1 < node->n; i += 2) {
        mf_tval v;
        MF_TRY(mf_teval(r, f, node->kid[i], &v));
        if (mf_tval_truth(v)) return mf_texec(r, f, node->kid[i + 1], flow);
    }
    return node->n % 2 ? mf_texec(r, f, node->kid[node->n - 1], flow) : MINFER_OK;
}

static minfer_status exec_jump(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    (void)r, (void)f;
    *flow = node->kind == MF_N_BREAK ? MF_FLOW_BREAK : MF_FLOW_CONTINUE;
    return MINFER_OK;
}

typedef struct condition { /* {% for target in iterable if condition %} reads no further than it must */
    const mf_tnode *node;
    mf_tframe *outer, *frame;
    mf_titer *from;
} condition;

static minfer_status next_matching(mf_trender *r, mf_titer *it, mf_tval *out)
{
    condition *c = it->state;
    if (!c->frame) MF_TRY(mf_tframe_new(r, c->outer, &c->node->loop->condition, &c->frame));
    for (;;) {
        mf_tval v;
        MF_TRY(mf_titer_next(r, c->from, out));
        if (mf_tis(*out, MF_T_MISSING)) return MINFER_OK;
        MF_TRY(mf_tassign(r, c->frame, c->node->kid[MF_FOR_TARGET], *out));
        MF_TRY(mf_teval(r, c->frame, c->node->kid[MF_FOR_CONDITION], &v));
        if (mf_tval_truth(v)) return MINFER_OK;
    }
}

/* What the loop reads from: the iterable, or the part of it that meets the condition. */
static minfer_status open_loop(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval iterable,
                               mf_tloop *l)
{
    l->iterable = iterable;
    MF_TRY(mf_titer_open(r, iterable, &l->it));
    if (!node->kid[MF_FOR_CONDITION]) return MINFER_OK;
    condition *c = MF_RENDER_NEW(r, condition);
    if (!c) return mf_trender_failed(r);
    *c = (condition){.node = node, .outer = f, .from = l->it};
    MF_TRY(mf_titer_make(r, "generator", iterable, c, next_matching, &l->iterable));
    l->it = l->iterable.iter;
    return MINFER_OK;
}

static minfer_status run_bodies(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tloop *l,
                                bool *finished_one)
{
    const mf_tloopinfo *info = node->loop;
    mf_tframe *inner;
    mf_tflow flow = MF_FLOW_NEXT;
    MF_TRY(mf_tframe_new(r, f, &info->body, &inner));
    while (flow != MF_FLOW_BREAK) {
        mf_tval v;
        flow = MF_FLOW_NEXT;
        MF_TRY(mf_tloop_next(r, l, &v));
        if (mf_tis(v, MF_T_MISSING)) break;
        MF_TRY(mf_tassign(r, inner, node->kid[MF_FOR_TARGET], v));
        if (info->slot != MF_NO_SLOT) inner->slot[info->slot] = (mf_tval){.type = MF_T_LOOP, .loop = l};
        MF_TRY(mf_tframe_enter(r, inner, &info->body));
        MF_TRY(mf_texec(r, inner, node->kid[MF_FOR_BODY], &flow));
        *finished_one |= flow == MF_FLOW_NEXT;
    }
    return MINFER_OK;
}

/* As in Jinja, else also runs when every turn of the loop was cut short by break or continue. */
static minfer_status run_loop(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval iterable,
                              int64_t depth0, mf_tflow *flow)
{
    mf_tloop *l = MF_RENDER_NEW(r, mf_tloop);
    bool finished_one = false;
    if (!l) return mf_trender_failed(r);
    *l = (mf_tloop){.index0 = -1, .length = -1, .depth0 = depth0, .frame = f};
    l->node = node->loop->recursive ? node : NULL;
    MF_TRY(open_loop(r, f, node, iterable, l));
    MF_TRY(run_bodies(r, f, node, l, &finished_one));
    if (finished_one || !node->kid[MF_FOR_ELSE]) return MINFER_OK;
    mf_tframe *otherwise;
    MF_TRY(mf_tframe_new(r, f, &node->loop->otherwise, &otherwise));
    return mf_texec(r, otherwise, node->kid[MF_FOR_ELSE], flow);
}

static minfer_status exec_for(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tval iterable;
    MF_TRY(mf_teval(r, f, node->kid[MF_FOR_ITERABLE], &iterable));
    return run_loop(r, f, node, iterable, 0, flow);
}

minfer_status mf_tloop_call(mf_trender *r, const mf_tloop *l, const mf_tcall *call, mf_tval *out)
{
    if (!l->node)
        return mf_trender_raise(r, MF_TE_TYPE,
                                "The loop must have the 'recursive' marker to be called recursively.");
    if (call->npos != 1 || call->nkw)
        return mf_trender_raise(r, MF_TE_TYPE, "loop() takes exactly one argument (%zu given)",
                                call->npos + call->nkw);
    mf_tsb text = {0}, *outer = r->capture;
    mf_tflow flow = MF_FLOW_NEXT;
    r->capture = &text;
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = run_loop(r, l->frame, l->node, call->pos[0], l->depth0 + 1, &flow);
    mf_trender_leave(r);
    r->capture = outer;
    return st == MINFER_OK ? mf_tstr_wrap(r, text.p, text.n, out) : st;
}

/* -- macros -- */

static minfer_status make_macro(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tmacro *m = MF_RENDER_NEW(r, mf_tmacro);
    if (!m) return mf_trender_failed(r);
    *m = (mf_tmacro){node, f};
    *out = (mf_tval){.type = MF_T_MACRO, .macro = m};
    return MINFER_OK;
}

static minfer_status exec_macro(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    (void)flow;
    return make_macro(r, f, node, &f->slot[node->macro->var.slot]);
}

static minfer_status exec_callblock(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    static const mf_tstr name = {"caller", 6, 6};
    mf_tkw caller = {.name = &name};
    mf_tval v;
    (void)flow;
    MF_TRY(make_macro(r, f, node, &caller.value));
    MF_TRY(mf_teval_call(r, f, node->kid[node->n - 1], &caller, &v));
    return write_text(r, v);
}

static minfer_status exec_generation(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    mf_tmacro body = {node, f};
    mf_tval v;
    (void)flow;
    MF_TRY(mf_tmacro_call(r, &body, &(mf_tcall){0}, &v));
    return write_text(r, v);
}

mf_tval mf_tmacro_name(const mf_tmacro *m)
{
    const mf_tstr *name = m->node->macro->var.name;
    return name ? mf_tstring(name) : mf_tnone();
}

static minfer_status macro_error(mf_trender *r, const mf_tmacro *m, const char *what, const mf_tstr *arg)
{
    char name[160];
    MF_TRY(mf_tval_brief(r, mf_tmacro_name(m), name, sizeof name));
    int n = !arg ? 0 : arg->n > 100 ? 100 : (int)arg->n;
    return mf_trender_raise(r, MF_TE_TYPE, "macro %s %s%s%.*s%s", name, what, arg ? " '" : "", n,
                            arg ? arg->p : "", arg ? "'" : "");
}

/* Takes a keyword out of those not yet used; MISSING when it was not given. */
static mf_tval take_keyword(const mf_tcall *call, bool *used, const mf_tstr *name)
{
    for (size_t i = 0; i < call->nkw; i++) {
        if (used[i] || !mf_tstr_same(call->kw[i].name, name)) continue;
        used[i] = true;
        return call->kw[i].value;
    }
    return mf_tmissing();
}

static minfer_status bind_caller(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, bool *used,
                                 mf_tframe *f)
{
    static const mf_tstr name = {"caller", 6, 6};
    uint32_t slot = m->node->macro->caller;
    if (slot == MF_NO_SLOT) return MINFER_OK;
    f->slot[slot] = take_keyword(call, used, &name);
    return mf_tis(f->slot[slot], MF_T_MISSING) ? mf_tundefined_hint(r, "No caller defined", &f->slot[slot])
                                               : MINFER_OK;
}

/* Keywords no parameter took: kwargs of the macro, or an error. */
static minfer_status bind_kwargs(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, const bool *used,
                                 mf_tframe *f)
{
    uint32_t slot = m->node->macro->kwargs;
    mf_tdict *rest;
    MF_TRY(mf_tdict_new(r, &rest));
    for (size_t i = 0; i < call->nkw; i++) {
        if (used[i]) continue;
        if (slot == MF_NO_SLOT)
            return mf_tstr_is(call->kw[i].name, "caller")
                       ? macro_error(r, m, "was invoked with two values for the special caller argument",
                                     NULL)
                       : macro_error(r, m, "takes no keyword argument", call->kw[i].name);
        MF_TRY(mf_tdict_set(r, rest, mf_tstring(call->kw[i].name), call->kw[i].value));
    }
    if (slot != MF_NO_SLOT) f->slot[slot] = mf_tdictval(rest);
    return MINFER_OK;
}

static minfer_status bind_varargs(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, mf_tframe *f)
{
    const mf_tmacroinfo *info = m->node->macro;
    size_t more = call->npos > info->nparams ? call->npos - info->nparams : 0;
    char text[64];
    if (info->varargs == MF_NO_SLOT) {
        snprintf(text, sizeof text, "takes not more than %u argument(s)", info->nparams);
        return more ? macro_error(r, m, text, NULL) : MINFER_OK;
    }
    mf_tlist *rest;
    MF_TRY(mf_tlist_new(r, more, &rest));
    for (size_t i = 0; i < more; i++) MF_TRY(mf_tlist_push(r, rest, call->pos[info->nparams + i]));
    f->slot[info->varargs] = mf_ttupleval(rest);
    return MINFER_OK;
}

static minfer_status not_provided(mf_trender *r, const mf_tstr *name, mf_tval *out)
{
    mf_tsb hint = {0};
    MF_TRY(mf_tsb_text(r, &hint, "parameter "));
    MF_TRY(mf_tprint_quoted(r, &hint, name, false));
    MF_TRY(mf_tsb_put(r, &hint, " was not provided", sizeof " was not provided"));
    return mf_tundefined_hint(r, hint.p, out);
}

/* Defaults are evaluated inside the macro, after the parameters before them. */
static minfer_status bind_defaults(mf_trender *r, const mf_tmacro *m, mf_tframe *f)
{
    const mf_tmacroinfo *info = m->node->macro;
    uint32_t first = info->nparams - info->ndefaults;
    for (uint32_t i = 0; i < info->nparams; i++) {
        if (!mf_tis(f->slot[i], MF_T_MISSING)) continue;
        if (i >= first)
            MF_TRY(mf_teval(r, f, m->node->kid[info->nparams + i - first], &f->slot[i]));
        else
            MF_TRY(not_provided(r, m->node->kid[i]->var.name, &f->slot[i]));
    }
    return MINFER_OK;
}

static minfer_status bind_macro(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, mf_tframe *f)
{
    const mf_tmacroinfo *info = m->node->macro;
    bool *used = mf_trender_alloc(r, call->nkw, sizeof *used);
    if (!used) return mf_trender_failed(r);
    MF_TRY(mf_trender_charge(r, info->nparams * call->nkw * sizeof *call->kw));
    for (uint32_t i = 0; i < info->nparams; i++)
        f->slot[i] = i < call->npos ? call->pos[i] : take_keyword(call, used, m->node->kid[i]->var.name);
    MF_TRY(bind_caller(r, m, call, used, f));
    MF_TRY(bind_kwargs(r, m, call, used, f));
    MF_TRY(bind_varargs(r, m, call, f));
    return bind_defaults(r, m, f);
}

static minfer_status call_macro(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, mf_tval *out)
{
    const mf_tmacroinfo *info = m->node->macro;
    mf_tframe *f;
    mf_tflow flow = MF_FLOW_NEXT;
    MF_TRY(mf_tframe_new(r, m->frame, &info->scope, &f));
    MF_TRY(bind_macro(r, m, call, f));
    return capture(r, f, m->node->kid[info->nparams + info->ndefaults], out, &flow);
}

minfer_status mf_tmacro_call(mf_trender *r, const mf_tmacro *m, const mf_tcall *call, mf_tval *out)
{
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = call_macro(r, m, call, out);
    mf_trender_leave(r);
    return st;
}

static minfer_status macro_arguments(mf_trender *r, const mf_tmacro *m, mf_tval *out)
{
    mf_tlist *names;
    MF_TRY(mf_tlist_new(r, m->node->macro->nparams, &names));
    for (uint32_t i = 0; i < m->node->macro->nparams; i++)
        MF_TRY(mf_tlist_push(r, names, mf_tstring(m->node->kid[i]->var.name)));
    *out = mf_ttupleval(names);
    return MINFER_OK;
}

minfer_status mf_tmacro_attr(mf_trender *r, const mf_tmacro *m, const mf_tstr *name, mf_tval *out)
{
    const mf_tmacroinfo *info = m->node->macro;
    *out = mf_tmissing();
    if (mf_tstr_is(name, "name"))
        *out = mf_tmacro_name(m);
    else if (mf_tstr_is(name, "arguments"))
        return macro_arguments(r, m, out);
    else if (mf_tstr_is(name, "catch_kwargs"))
        *out = mf_tbool(info->kwargs != MF_NO_SLOT);
    else if (mf_tstr_is(name, "catch_varargs"))
        *out = mf_tbool(info->varargs != MF_NO_SLOT);
    else if (mf_tstr_is(name, "caller"))
        *out = mf_tbool(info->caller != MF_NO_SLOT);
    return MINFER_OK;
}

static exec_fn *const execs[MF_N_COUNT] = {
    [MF_N_TEXT] = exec_text,
    [MF_N_PRINT] = exec_print,
    [MF_N_BLOCK] = exec_block,
    [MF_N_FOR] = exec_for,
    [MF_N_IF] = exec_if,
    [MF_N_SET] = exec_set,
    [MF_N_SETBLOCK] = exec_setblock,
    [MF_N_MACRO] = exec_macro,
    [MF_N_CALLBLOCK] = exec_callblock,
    [MF_N_WITH] = exec_with,
    [MF_N_FILTERBLOCK] = exec_filterblock,
    [MF_N_GENERATION] = exec_generation,
    [MF_N_BREAK] = exec_jump,
    [MF_N_CONTINUE] = exec_jump,
};

minfer_status mf_texec(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow)
{
    MF_TRY(mf_trender_step(r));
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = execs[node->kind](r, f, node, flow);
    mf_trender_leave(r);
    return mf_trender_locate(r, st, node->line, node->column);
}
