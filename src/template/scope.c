/* Two passes over every scope: `analyze` finds the names a scope uses and where their values come from,
 * `resolve` then writes slots into its nodes and goes on into the inner scopes, which see the finished outer
 * ones. That order is Jinja's, and visible: a name assigned anywhere in an outer scope means that variable,
 * even before the assignment. */
#include "template/scope.h"
#include "template/lexer.h"

#include <string.h>

typedef struct symbol {
    const mf_tstr *name;
    bool known;  /* has been seen; false for names that only another branch of an if has seen */
    bool stored; /* is assigned to */
    mf_tinit init;
} symbol;

typedef struct symbols { /* the index is the slot */
    symbol *v;
    size_t n, cap;
} symbols;

typedef struct scope {
    struct scope *outer;
    symbols now;
} scope;

typedef struct resolver {
    mf_trender *r;
    size_t loops; /* for loops around */
} resolver;

/* -- symbols -- */

static minfer_status find(mf_trender *r, const symbols *s, const mf_tstr *name, size_t *slot)
{
    MF_TRY(mf_trender_charge(r, s->n * 8));
    for (*slot = 0; *slot < s->n; ++*slot)
        if (mf_tstr_same(s->v[*slot].name, name)) break;
    return MINFER_OK;
}

static minfer_status add(mf_trender *r, symbols *s, const mf_tstr *name, size_t *slot)
{
    MF_TRY(find(r, s, name, slot));
    if (*slot < s->n) return MINFER_OK;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 8;
        symbol *v = mf_trender_alloc(r, cap, sizeof *v);
        if (!v) return mf_trender_failed(r);
        if (s->n) memcpy(v, s->v, s->n * sizeof *v);
        s->v = v;
        s->cap = cap;
    }
    s->v[s->n++] = (symbol){.name = name};
    return MINFER_OK;
}

/* The variable a name means in a scope; *found is false when no scope around knows it. */
static minfer_status find_var(mf_trender *r, const scope *s, const mf_tstr *name, mf_tvar *out, bool *found)
{
    size_t slot;
    *out = (mf_tvar){.name = name};
    for (*found = false; s; s = s->outer, out->hops++) {
        MF_TRY(find(r, &s->now, name, &slot));
        if (slot == s->now.n || !s->now.v[slot].known) continue;
        out->slot = (uint32_t)slot;
        *found = true;
        break;
    }
    return MINFER_OK;
}

static minfer_status find_outer(mf_trender *r, const scope *s, const mf_tstr *name, mf_tvar *out, bool *found)
{
    MF_TRY(find_var(r, s->outer, name, out, found));
    out->hops++;
    return MINFER_OK;
}

static mf_tinit from_context(const mf_tstr *name)
{
    return (mf_tinit){MF_LOAD_CONTEXT, {.name = name}};
}

static minfer_status load(mf_trender *r, scope *s, const mf_tstr *name)
{
    mf_tvar var;
    bool found;
    size_t slot;
    MF_TRY(find_var(r, s, name, &var, &found));
    if (found) return MINFER_OK;
    MF_TRY(add(r, &s->now, name, &slot));
    s->now.v[slot].known = true;
    s->now.v[slot].init = from_context(name);
    return MINFER_OK;
}

static minfer_status store(mf_trender *r, scope *s, const mf_tstr *name)
{
    mf_tvar outer;
    bool found;
    size_t slot;
    MF_TRY(add(r, &s->now, name, &slot));
    s->now.v[slot].stored = true;
    if (s->now.v[slot].known) return MINFER_OK;
    MF_TRY(find_outer(r, s, name, &outer, &found));
    s->now.v[slot].known = true;
    s->now.v[slot].init = found ? (mf_tinit){MF_LOAD_OUTER, outer} : (mf_tinit){.load = MF_LOAD_UNSET};
    return MINFER_OK;
}

static minfer_status declare(mf_trender *r, scope *s, const mf_tstr *name, uint32_t *out)
{
    size_t slot;
    MF_TRY(add(r, &s->now, name, &slot));
    s->now.v[slot] = (symbol){name, true, true, {.load = MF_LOAD_PARAM}};
    if (out) *out = (uint32_t)slot;
    return MINFER_OK;
}

/* -- first pass: the names of one scope -- */

static minfer_status analyze(mf_trender *r, scope *s, const mf_tnode *node);

static minfer_status analyze_kids(mf_trender *r, scope *s, const mf_tnode *node, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) MF_TRY(analyze(r, s, node->kid[i]));
    return MINFER_OK;
}

static minfer_status copy_symbols(mf_trender *r, const symbols *from, symbols *to)
{
    MF_TRY(mf_trender_charge(r, from->n * sizeof *from->v));
    *to = (symbols){mf_trender_alloc(r, from->n, sizeof *to->v), from->n, from->n};
    if (!to->v) return mf_trender_failed(r);
    if (from->n) memcpy(to->v, from->v, from->n * sizeof *to->v);
    return MINFER_OK;
}

/* One branch, as if the others were not there; what it saw is left in s, *before is put back by the caller.
 */
static minfer_status analyze_branch(mf_trender *r, scope *s, const symbols *before, const mf_tnode *node,
                                    uint32_t from, uint32_t to, symbols *merged)
{
    MF_TRY(copy_symbols(r, before, &s->now));
    MF_TRY(analyze_kids(r, s, node, from, to));
    for (size_t i = 0, slot; i < s->now.n; i++) {
        if (!s->now.v[i].known) continue;
        MF_TRY(add(r, merged, s->now.v[i].name, &slot));
        bool stored = merged->v[slot].stored || s->now.v[i].stored;
        merged->v[slot] = s->now.v[i];
        merged->v[slot].stored = stored;
    }
    return MINFER_OK;
}

/* What only some branch assigns keeps its outer value in the others. */
static minfer_status settle_branches(mf_trender *r, scope *s, const symbols *before)
{
    for (size_t i = 0; i < s->now.n; i++) {
        symbol *sym = &s->now.v[i];
        mf_tvar outer;
        bool found;
        if (!sym->stored || (i < before->n && before->v[i].stored)) continue;
        MF_TRY(find_outer(r, s, sym->name, &outer, &found));
        sym->init = found ? (mf_tinit){MF_LOAD_OUTER, outer} : from_context(sym->name);
    }
    return MINFER_OK;
}

/* if: the first condition belongs to the scope, each body, and all further conditions with theirs, to a
 * branch. */
static minfer_status analyze_if(mf_trender *r, scope *s, const mf_tnode *node)
{
    MF_TRY(analyze(r, s, node->kid[0]));
    symbols before = s->now, merged;
    MF_TRY(copy_symbols(r, &before, &merged));
    uint32_t last = node->n % 2 ? node->n - 1 : node->n;
    MF_TRY(analyze_branch(r, s, &before, node, 1, 2, &merged));
    if (last > 2) MF_TRY(analyze_branch(r, s, &before, node, 2, last, &merged));
    if (last < node->n) MF_TRY(analyze_branch(r, s, &before, node, last, node->n, &merged));
    s->now = merged;
    return settle_branches(r, s, &before);
}

static minfer_status analyze_name(mf_trender *r, scope *s, const mf_tnode *node)
{
    switch (node->op) {
    case MF_CTX_STORE: return store(r, s, node->var.name);
    case MF_CTX_PARAM: return declare(r, s, node->var.name, NULL);
    default: return load(r, s, node->var.name);
    }
}

/* Of inner scopes only what is evaluated outside of them counts. */
static minfer_status analyze(mf_trender *r, scope *s, const mf_tnode *node)
{
    if (!node) return MINFER_OK;
    MF_TRY(mf_trender_step(r));
    switch (node->kind) {
    case MF_N_NAME: return analyze_name(r, s, node);
    case MF_N_NSREF: return load(r, s, node->var.name);
    case MF_N_IF: return analyze_if(r, s, node);
    case MF_N_FOR: return analyze(r, s, node->kid[MF_FOR_ITERABLE]);
    case MF_N_SET:
        MF_TRY(analyze(r, s, node->kid[MF_SET_VALUE]));
        return analyze(r, s, node->kid[MF_SET_TARGET]);
    case MF_N_SETBLOCK: return analyze(r, s, node->kid[MF_SET_TARGET]);
    case MF_N_MACRO: return store(r, s, node->macro->var.name);
    case MF_N_CALLBLOCK: return analyze(r, s, node->kid[node->n - 1]);
    case MF_N_GENERATION: return MINFER_OK;
    case MF_N_FILTERBLOCK: return analyze(r, s, node->kid[1]);
    case MF_N_WITH: return analyze_kids(r, s, node, node->n / 2, node->n - 1);
    default: return analyze_kids(r, s, node, 0, node->n);
    }
}

/* Whether name is read somewhere under node before it is assigned there; *hidden: it is assigned. */
static bool uses_name(const mf_tnode *node, const char *name, bool *hidden)
{
    if (!node || *hidden) return false;
    if (node->kind == MF_N_NAME && mf_tstr_is(node->var.name, name)) {
        *hidden = node->op != MF_CTX_LOAD;
        return !*hidden;
    }
    for (uint32_t i = 0; i < node->n; i++)
        if (uses_name(node->kid[i], name, hidden)) return true;
    return false;
}

static bool body_uses(const mf_tnode *body, const char *name)
{
    bool hidden = false;
    return uses_name(body, name, &hidden);
}

/* -- second pass -- */

static minfer_status resolve(resolver *c, scope *s, mf_tnode *node, bool soft);

static minfer_status resolve_kids(resolver *c, scope *s, mf_tnode *node, uint32_t from, uint32_t to,
                                  bool soft)
{
    for (uint32_t i = from; i < to; i++) MF_TRY(resolve(c, s, node->kid[i], soft));
    return MINFER_OK;
}

static minfer_status finish(mf_trender *r, const scope *s, mf_tscope *out)
{
    out->n = (uint32_t)s->now.n;
    out->init = mf_trender_alloc(r, s->now.n, sizeof *out->init);
    if (!out->init) return mf_trender_failed(r);
    for (size_t i = 0; i < s->now.n; i++) out->init[i] = s->now.v[i].init;
    return MINFER_OK;
}

static minfer_status assigned_loop(resolver *c, const mf_tnode *at)
{
    return mf_tsyntax_error(c->r, at->line, at->column,
                            "can't assign to the special variable 'loop' inside a loop");
}

static minfer_status resolve_name(resolver *c, scope *s, mf_tnode *node)
{
    bool found;
    if (node->kind == MF_N_NAME && node->op == MF_CTX_STORE && c->loops && mf_tstr_is(node->var.name, "loop"))
        return assigned_loop(c, node);
    MF_TRY(find_var(c->r, s, node->var.name, &node->var, &found));
    return found ? MINFER_OK : mf_fail(c->r->err, MINFER_ERR_STATE, "a name was not analyzed");
}

/* One of the scopes of a loop. Targets come first in both body and condition, so that their slots agree. */
static minfer_status resolve_loop_scope(resolver *c, scope *outer, mf_tnode *node, uint32_t part,
                                        mf_tscope *out)
{
    scope s = {.outer = outer};
    mf_tloopinfo *info = node->loop;
    if (!node->kid[part]) return MINFER_OK;
    if (part != MF_FOR_ELSE) MF_TRY(analyze(c->r, &s, node->kid[MF_FOR_TARGET]));
    static const mf_tstr loop = {"loop", 4, 4};
    if (part == MF_FOR_BODY && (info->recursive || body_uses(node->kid[part], "loop")))
        MF_TRY(declare(c->r, &s, &loop, &info->slot));
    MF_TRY(analyze(c->r, &s, node->kid[part]));
    MF_TRY(finish(c->r, &s, out));
    if (part != MF_FOR_ELSE) MF_TRY(resolve(c, &s, node->kid[MF_FOR_TARGET], false));
    return resolve(c, &s, node->kid[part], false);
}

static minfer_status resolve_for(resolver *c, scope *s, mf_tnode *node, bool soft)
{
    mf_tloopinfo *info = node->loop;
    bool named_loop = false;
    uses_name(node->kid[MF_FOR_TARGET], "loop", &named_loop);
    if (named_loop) return assigned_loop(c, node);
    info->slot = MF_NO_SLOT;
    MF_TRY(resolve(c, s, node->kid[MF_FOR_ITERABLE], soft));
    c->loops++;
    MF_TRY(resolve_loop_scope(c, s, node, MF_FOR_CONDITION, &info->condition));
    MF_TRY(resolve_loop_scope(c, s, node, MF_FOR_BODY, &info->body));
    MF_TRY(resolve_loop_scope(c, s, node, MF_FOR_ELSE, &info->otherwise));
    c->loops--;
    return MINFER_OK;
}

/* caller, kwargs and varargs exist only in macros whose body asks for them. */
static minfer_status declare_special(resolver *c, scope *s, const mf_tnode *body, const mf_tstr *name,
                                     uint32_t *slot)
{
    mf_tvar var;
    bool param;
    *slot = MF_NO_SLOT;
    MF_TRY(find_var(c->r, &(scope){.now = s->now}, name, &var, &param));
    return !param && body_uses(body, name->p) ? declare(c->r, s, name, slot) : MINFER_OK;
}

static minfer_status resolve_macro(resolver *c, scope *outer, mf_tnode *node)
{
    static const mf_tstr caller = {"caller", 6, 6}, kwargs = {"kwargs", 6, 6}, varargs = {"varargs", 7, 7};
    mf_tmacroinfo *m = node->macro;
    scope s = {.outer = outer};
    uint32_t body = m->nparams + m->ndefaults;
    MF_TRY(analyze_kids(c->r, &s, node, 0, m->nparams));
    for (uint32_t i = 0; i < m->nparams; i++) {
        if (!mf_tstr_same(node->kid[i]->var.name, &caller)) continue;
        if (i + m->ndefaults < m->nparams && body_uses(node->kid[body], "caller"))
            return mf_tsyntax_error(c->r, node->line, node->column,
                                    "the special argument 'caller' must be omitted or be given a default");
    }
    MF_TRY(declare_special(c, &s, node->kid[body], &caller, &m->caller));
    MF_TRY(declare_special(c, &s, node->kid[body], &kwargs, &m->kwargs));
    MF_TRY(declare_special(c, &s, node->kid[body], &varargs, &m->varargs));
    MF_TRY(analyze_kids(c->r, &s, node, m->nparams, body + 1));
    MF_TRY(finish(c->r, &s, &m->scope));
    return resolve_kids(c, &s, node, 0, body + 1, false);
}

/* A scope of the children [from, to), some of which may be its parameters. */
static minfer_status resolve_inner(resolver *c, scope *outer, mf_tnode *node, const uint32_t *kids,
                                   uint32_t n)
{
    scope s = {.outer = outer};
    for (uint32_t i = 0; i < n; i++) MF_TRY(analyze(c->r, &s, node->kid[kids[i]]));
    MF_TRY(finish(c->r, &s, node->scope));
    for (uint32_t i = 0; i < n; i++) MF_TRY(resolve(c, &s, node->kid[kids[i]], false));
    return MINFER_OK;
}

static minfer_status resolve_with(resolver *c, scope *outer, mf_tnode *node, bool soft)
{
    uint32_t targets = node->n / 2, *kids = mf_trender_alloc(c->r, targets + 1, sizeof *kids);
    if (!kids) return mf_trender_failed(c->r);
    MF_TRY(resolve_kids(c, outer, node, targets, node->n - 1, soft));
    for (uint32_t i = 0; i < targets; i++) kids[i] = i;
    kids[targets] = node->n - 1;
    return resolve_inner(c, outer, node, kids, targets + 1);
}

static minfer_status check_known(resolver *c, const mf_tnode *node, bool soft)
{
    const mf_tstr *name = node->args->name;
    if (node->args->def || soft) return MINFER_OK;
    return mf_tsyntax_error(c->r, node->line, node->column, "No %s named '%.*s'.",
                            node->kind == MF_N_FILTER ? "filter" : "test", name->n > 100 ? 100 : (int)name->n,
                            name->p);
}

static minfer_status resolve_setblock(resolver *c, scope *s, mf_tnode *node)
{
    MF_TRY(resolve(c, s, node->kid[MF_SET_TARGET], false));
    return resolve_inner(c, s, node, (const uint32_t[]){MF_SET_BODY, MF_SET_FILTER}, 2);
}

static minfer_status resolve(resolver *c, scope *s, mf_tnode *node, bool soft)
{
    bool found;
    if (!node) return MINFER_OK;
    MF_TRY(mf_trender_step(c->r));
    switch (node->kind) {
    case MF_N_NAME:
    case MF_N_NSREF: return resolve_name(c, s, node);
    case MF_N_FILTER:
    case MF_N_TEST: MF_TRY(check_known(c, node, soft)); break;
    case MF_N_COND:
    case MF_N_IF: soft = true; break;
    case MF_N_FOR: return resolve_for(c, s, node, soft);
    case MF_N_MACRO:
        MF_TRY(find_var(c->r, s, node->macro->var.name, &node->macro->var, &found));
        return resolve_macro(c, s, node);
    case MF_N_GENERATION: return resolve_macro(c, s, node);
    case MF_N_CALLBLOCK:
        MF_TRY(resolve(c, s, node->kid[node->n - 1], soft));
        return resolve_macro(c, s, node);
    case MF_N_SETBLOCK: return resolve_setblock(c, s, node);
    case MF_N_FILTERBLOCK: return resolve_inner(c, s, node, (const uint32_t[]){0, 1}, 2);
    case MF_N_WITH: return resolve_with(c, s, node, soft);
    default: break;
    }
    return resolve_kids(c, s, node, 0, node->n, soft);
}

minfer_status mf_tresolve_scopes(mf_trender *r, mf_tnode *root, mf_tscope *out)
{
    scope s = {0};
    resolver c = {.r = r};
    MF_TRY(analyze(r, &s, root));
    MF_TRY(finish(r, &s, out));
    return resolve(&c, &s, root, false);
}
