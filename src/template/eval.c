/* Expressions. */
#include "template/eval.h"
#include "template/attr.h"
#include "template/iter.h"
#include "template/objects.h"
#include "template/ops.h"
#include "template/print.h"

#include <stdio.h>

typedef minfer_status eval_fn(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out);

/* -- names and literals -- */

static mf_tval *slot_of(mf_tframe *f, mf_tvar var)
{
    for (; var.hops > 0; var.hops--) f = f->up;
    return &f->slot[var.slot];
}

static minfer_status from_context(mf_trender *r, const mf_tstr *name, mf_tval *out)
{
    mf_tentry *e;
    MF_TRY(mf_tdict_find(r, r->vars, mf_tstring(name), &e));
    *out = mf_tmissing();
    if (e)
        *out = e->value;
    else
        MF_TRY(mf_tglobal_get(r, name, out));
    return MINFER_OK;
}

minfer_status mf_tframe_enter(mf_trender *r, mf_tframe *f, const mf_tscope *scope)
{
    for (uint32_t i = 0; i < scope->n; i++) {
        const mf_tinit *init = &scope->init[i];
        switch (init->load) {
        case MF_LOAD_PARAM: break;
        case MF_LOAD_UNSET: f->slot[i] = mf_tmissing(); break;
        case MF_LOAD_OUTER: f->slot[i] = *slot_of(f, init->from); break;
        case MF_LOAD_CONTEXT: MF_TRY(from_context(r, init->from.name, &f->slot[i])); break;
        }
    }
    return MINFER_OK;
}

minfer_status mf_tframe_new(mf_trender *r, mf_tframe *up, const mf_tscope *scope, mf_tframe **out)
{
    mf_tframe *f = mf_trender_alloc(r, 1, sizeof *f + scope->n * sizeof f->slot[0]);
    if (!f) return mf_trender_failed(r);
    f->up = up; /* the slots are MISSING, which is 0 */
    *out = f;
    return mf_tframe_enter(r, f, scope);
}

static minfer_status eval_const(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    (void)r, (void)f;
    *out = node->value;
    return MINFER_OK;
}

static minfer_status eval_name(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    *out = *slot_of(f, node->var);
    return mf_tis(*out, MF_T_MISSING) ? mf_tundefined(r, mf_tmissing(), mf_tstring(node->var.name), out)
                                      : MINFER_OK;
}

static minfer_status eval_captured(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    (void)r, (void)node;
    *out = f->captured;
    return MINFER_OK;
}

static minfer_status eval_sequence(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tlist *l;
    MF_TRY(mf_tlist_new(r, node->n, &l));
    for (uint32_t i = 0; i < node->n; i++) MF_TRY(mf_teval(r, f, node->kid[i], &l->v[i]));
    l->n = node->n;
    *out = node->kind == MF_N_LIST ? mf_tlistval(l) : mf_ttupleval(l);
    return MINFER_OK;
}

static minfer_status eval_dict(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tdict *d;
    mf_tval key, value;
    MF_TRY(mf_tdict_new(r, &d));
    for (uint32_t i = 0; i < node->n; i += 2) {
        MF_TRY(mf_teval(r, f, node->kid[i], &key));
        MF_TRY(mf_teval(r, f, node->kid[i + 1], &value));
        MF_TRY(mf_tdict_set(r, d, key, value));
    }
    *out = mf_tdictval(d);
    return MINFER_OK;
}

/* -- operators -- */

static minfer_status eval_not(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    *out = mf_tbool(!mf_tval_truth(*out));
    return MINFER_OK;
}

static minfer_status eval_neg(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    return mf_tval_neg(r, *out, out);
}

static minfer_status eval_pos(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    return mf_tval_pos(r, *out, out);
}

static minfer_status eval_binary(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tval a, b;
    MF_TRY(mf_teval(r, f, node->kid[0], &a));
    MF_TRY(mf_teval(r, f, node->kid[1], &b));
    return mf_tval_binary(r, (mf_top)node->op, a, b, out);
}

static minfer_status eval_logic(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    return mf_tval_truth(*out) == (node->kind == MF_N_AND) ? mf_teval(r, f, node->kid[1], out) : MINFER_OK;
}

static minfer_status compare(mf_trender *r, mf_tcmp op, mf_tval a, mf_tval b, bool *out)
{
    bool negated = op == MF_CMP_NE || op == MF_CMP_NOT_IN;
    if (op <= MF_CMP_GE) return mf_tval_order(r, (mf_torder)op, a, b, out);
    if (op == MF_CMP_EQ || op == MF_CMP_NE)
        MF_TRY(mf_tval_eq(r, a, b, out));
    else
        MF_TRY(mf_tval_contains(r, b, a, out));
    *out ^= negated;
    return MINFER_OK;
}

static minfer_status eval_compare(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tval a, b;
    bool holds = true;
    MF_TRY(mf_teval(r, f, node->kid[0], &a));
    for (uint32_t i = 1; holds && i < node->n; i++, a = b) {
        MF_TRY(mf_teval(r, f, node->kid[i], &b));
        MF_TRY(compare(r, (mf_tcmp)node->ops[i - 1], a, b, &holds));
    }
    *out = mf_tbool(holds);
    return MINFER_OK;
}

static minfer_status eval_concat(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tsb text = {0};
    for (uint32_t i = 0; i < node->n; i++) {
        MF_TRY(mf_teval(r, f, node->kid[i], out));
        MF_TRY(mf_tval_str(r, &text, *out));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status no_else(mf_trender *r, const mf_tnode *node, mf_tval *out)
{
    enum { HINT = 120 };
    char *hint = mf_trender_alloc(r, HINT, 1);
    if (!hint) return mf_trender_failed(r);
    snprintf(hint, HINT,
             "the inline if-expression on line %u evaluated to false and no else section was defined.",
             node->line);
    return mf_tundefined_hint(r, hint, out);
}

static minfer_status eval_cond(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    if (mf_tval_truth(*out)) return mf_teval(r, f, node->kid[1], out);
    return node->kid[2] ? mf_teval(r, f, node->kid[2], out) : no_else(r, node, out);
}

/* -- attributes, items, slices -- */

static minfer_status eval_attr(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_teval(r, f, node->kid[0], out));
    return mf_tattr_get(r, *out, mf_tstring(node->attr), out);
}

static minfer_status eval_item(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tval obj, key;
    MF_TRY(mf_teval(r, f, node->kid[0], &obj));
    MF_TRY(mf_teval(r, f, node->kid[1], &key));
    return mf_titem_get(r, obj, key, out);
}

static minfer_status eval_slice(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    mf_tval part[4] = {{.type = MF_T_MISSING}};
    for (uint32_t i = 0; i < 4; i++)
        if (node->kid[i]) MF_TRY(mf_teval(r, f, node->kid[i], &part[i]));
    return mf_tval_slice(r, part[0], part[1], part[2], part[3], out);
}

/* -- calls, filters, tests -- */

enum { FEW_POS = 4, FEW_KW = 3 };

typedef struct arguments { /* most calls need no memory for their arguments */
    mf_tval few_pos[FEW_POS];
    mf_tkw few_kw[FEW_KW];
    mf_tval *pos;
    mf_tkw *kw;
    mf_tcall call;
} arguments;

static minfer_status add_keyword(mf_trender *r, arguments *a, const mf_tstr *name, mf_tval v)
{
    MF_TRY(mf_trender_charge(r, a->call.nkw * sizeof *a->kw));
    for (size_t i = 0; i < a->call.nkw; i++)
        if (mf_tstr_same(a->kw[i].name, name))
            return mf_trender_raise(r, MF_TE_TYPE, "got multiple values for keyword argument '%.*s'",
                                    name->n > 100 ? 100 : (int)name->n, name->p);
    a->kw[a->call.nkw++] = (mf_tkw){name, v};
    return MINFER_OK;
}

static minfer_status add_mapping(mf_trender *r, arguments *a, const mf_tdict *d)
{
    size_t i = 0;
    for (const mf_tentry *e; (e = mf_tdict_next(d, &i));) {
        if (!mf_tis(e->key, MF_T_STR)) return mf_trender_raise(r, MF_TE_TYPE, "keywords must be strings");
        MF_TRY(add_keyword(r, a, e->key.s, e->value));
    }
    return MINFER_OK;
}

/* Room for n positional and k keyword arguments. */
static minfer_status make_room(mf_trender *r, arguments *a, size_t n, size_t k)
{
    a->pos = n <= FEW_POS ? a->few_pos : mf_trender_alloc(r, n, sizeof *a->pos);
    a->kw = !a->pos ? NULL : k <= FEW_KW ? a->few_kw : mf_trender_alloc(r, k, sizeof *a->kw);
    a->call = (mf_tcall){.pos = a->pos, .kw = a->kw};
    return a->kw ? MINFER_OK : mf_trender_failed(r);
}

static minfer_status eval_stars(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tlist **star,
                                mf_tdict **stars)
{
    const mf_targlist *list = node->args;
    uint32_t at = 1 + list->npos + list->nkw;
    mf_tval v;
    if (list->star) {
        MF_TRY(mf_teval(r, f, node->kid[at++], &v));
        MF_TRY(mf_titer_list(r, v, star));
    }
    if (list->double_star) {
        MF_TRY(mf_teval(r, f, node->kid[at], &v));
        if (!mf_tis(v, MF_T_DICT))
            return mf_trender_raise(r, MF_TE_TYPE, "argument after ** must be a mapping, not %s",
                                    mf_tval_type_name(v));
        *stars = v.dict;
    }
    return MINFER_OK;
}

/* The arguments of a CALL, FILTER or TEST, in the order they are written. */
static minfer_status eval_arguments(mf_trender *r, mf_tframe *f, const mf_tnode *node, const mf_tkw *extra,
                                    arguments *a)
{
    const mf_targlist *list = node->args;
    mf_tlist none = {0}, *star = &none;
    mf_tdict nothing = {0}, *stars = &nothing;
    if (list->star || list->double_star) MF_TRY(eval_stars(r, f, node, &star, &stars));
    MF_TRY(make_room(r, a, list->npos + star->n, list->nkw + stars->live + 1));
    for (uint32_t i = 0; i < list->npos; i++)
        MF_TRY(mf_teval(r, f, node->kid[1 + i], &a->pos[a->call.npos++]));
    for (size_t i = 0; i < star->n; i++) a->pos[a->call.npos++] = star->v[i];
    for (uint32_t i = 0; i < list->nkw; i++) {
        mf_tval v;
        MF_TRY(mf_teval(r, f, node->kid[1 + list->npos + i], &v));
        MF_TRY(add_keyword(r, a, list->keywords[i], v));
    }
    MF_TRY(add_mapping(r, a, stars));
    return extra ? add_keyword(r, a, extra->name, extra->value) : MINFER_OK;
}

minfer_status mf_teval_call(mf_trender *r, mf_tframe *f, const mf_tnode *node, const mf_tkw *extra,
                            mf_tval *out)
{
    arguments a;
    mf_tval callee;
    MF_TRY(mf_teval(r, f, node->kid[0], &callee));
    MF_TRY(eval_arguments(r, f, node, extra, &a));
    return mf_tcall_value(r, callee, &a.call, out);
}

static minfer_status eval_call(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    return mf_teval_call(r, f, node, NULL, out);
}

static minfer_status eval_filter(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    arguments a;
    mf_tval input;
    const mf_tstr *name = node->args->name;
    MF_TRY(mf_teval(r, f, node->kid[0], &input));
    MF_TRY(eval_arguments(r, f, node, NULL, &a));
    if (node->args->def) return mf_tcall_def(r, node->args->def, input, &a.call, out);
    return mf_trender_raise(r, MF_TE_RUNTIME, "No %s named '%.*s' found.",
                            node->kind == MF_N_FILTER ? "filter" : "test", name->n > 100 ? 100 : (int)name->n,
                            name->p);
}

static eval_fn *const evals[MF_N_COUNT] = {
    [MF_N_CONST] = eval_const,   [MF_N_NAME] = eval_name,   [MF_N_TUPLE] = eval_sequence,
    [MF_N_LIST] = eval_sequence, [MF_N_DICT] = eval_dict,   [MF_N_NOT] = eval_not,
    [MF_N_NEG] = eval_neg,       [MF_N_POS] = eval_pos,     [MF_N_BINARY] = eval_binary,
    [MF_N_AND] = eval_logic,     [MF_N_OR] = eval_logic,    [MF_N_COMPARE] = eval_compare,
    [MF_N_CONCAT] = eval_concat, [MF_N_COND] = eval_cond,   [MF_N_ATTR] = eval_attr,
    [MF_N_ITEM] = eval_item,     [MF_N_SLICE] = eval_slice, [MF_N_CALL] = eval_call,
    [MF_N_FILTER] = eval_filter, [MF_N_TEST] = eval_filter, [MF_N_CAPTURED] = eval_captured,
};

minfer_status mf_teval(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out)
{
    MF_TRY(mf_trender_step(r));
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = evals[node->kind](r, f, node, out);
    mf_trender_leave(r);
    return mf_trender_locate(r, st, node->line, node->column);
}
