/* Statements. */
#include "template/parser.h"

#include <string.h>

/* Reads the body of a block up to one of its end tags (at most 3, NULL-terminated when fewer), whose name it
 * takes; *which says which it was. */
static minfer_status parse_body(mf_tparser *p, const mf_ttoken *tag, const char *const ends[3],
                                mf_tnode **out, size_t *which);

static minfer_status parse_only_body(mf_tparser *p, const mf_ttoken *tag, const char *end, mf_tnode **out)
{
    size_t which;
    return parse_body(p, tag, (const char *const[3]){end, NULL, NULL}, out, &which);
}

/* -- targets of assignments -- */

/* Marks names as assigned to (or declared as parameters); false with *bad set when something else is there.
 */
static bool make_target(mf_tnode *node, mf_tctx ctx, const mf_tnode **bad)
{
    *bad = node;
    if (node->kind == MF_N_NSREF) return true;
    if (node->kind == MF_N_NAME) return node->op = (uint8_t)ctx, true;
    if (node->kind != MF_N_TUPLE) return false;
    for (uint32_t i = 0; i < node->n; i++)
        if (!make_target(node->kid[i], ctx, bad)) return false;
    return true;
}

static minfer_status parse_target(mf_tparser *p, mf_tctx ctx, bool namespaces, const char *end,
                                  mf_tnode **out)
{
    const mf_tnode *bad;
    const mf_ttoken *at = p->t;
    MF_TRY(mf_tparse_tuple(p, &(mf_ttuple){.simple = true, .namespaces = namespaces, .end = end}, out));
    return make_target(*out, ctx, &bad) ? MINFER_OK : mf_tparse_fail(p, at, "can't assign to an expression");
}

static minfer_status parse_name_target(mf_tparser *p, mf_tctx ctx, mf_tnode **out)
{
    static const char *const constants[] = {"true", "false", "none", "True", "False", "None"};
    const mf_ttoken *at;
    MF_TRY(mf_tparse_expect(p, MF_TOK_NAME, &at));
    for (size_t i = 0; i < 6; i++)
        if (mf_tparse_is_name(at, constants[i]))
            return mf_tparse_fail(p, at, "can't assign to '%s'", constants[i]);
    MF_TRY(mf_tparse_node(p, MF_N_NAME, at, NULL, 0, out));
    (*out)->var.name = at->value.s;
    (*out)->op = (uint8_t)ctx;
    return MINFER_OK;
}

/* -- for, if, with, set -- */

static minfer_status parse_for(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tnode *kids[MF_FOR_KIDS] = {NULL};
    size_t which;
    mf_tloopinfo *info = MF_RENDER_NEW(p->r, mf_tloopinfo);
    if (!info) return mf_trender_failed(p->r);
    MF_TRY(parse_target(p, MF_CTX_PARAM, false, "in", &kids[MF_FOR_TARGET]));
    if (!mf_tparse_skip_name(p, "in"))
        return mf_tparse_fail(p, p->t, "expected 'in' after the target of a for loop");
    MF_TRY(
        mf_tparse_tuple(p, &(mf_ttuple){.no_condition = true, .end = "recursive"}, &kids[MF_FOR_ITERABLE]));
    if (mf_tparse_skip_name(p, "if")) MF_TRY(mf_tparse_expression(p, &kids[MF_FOR_CONDITION]));
    info->recursive = mf_tparse_skip_name(p, "recursive");
    p->loops++;
    MF_TRY(parse_body(p, tag, (const char *const[3]){"endfor", "else", NULL}, &kids[MF_FOR_BODY], &which));
    p->loops--;
    if (which == 1) MF_TRY(parse_only_body(p, tag, "endfor", &kids[MF_FOR_ELSE]));
    MF_TRY(mf_tparse_node(p, MF_N_FOR, tag, kids, MF_FOR_KIDS, out));
    (*out)->loop = info;
    return MINFER_OK;
}

static minfer_status parse_if(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    static const char *const ends[3] = {"endif", "elif", "else"};
    mf_tkids kids = {0};
    mf_tnode *node;
    size_t which = 1;
    while (which == 1) {
        MF_TRY(mf_tparse_tuple(p, &(mf_ttuple){.no_condition = true}, &node));
        MF_TRY(mf_tparse_push(p, &kids, node));
        MF_TRY(parse_body(p, tag, ends, &node, &which));
        MF_TRY(mf_tparse_push(p, &kids, node));
    }
    if (which == 2) {
        MF_TRY(parse_only_body(p, tag, "endif", &node));
        MF_TRY(mf_tparse_push(p, &kids, node));
    }
    return mf_tparse_node(p, MF_N_IF, tag, kids.v, kids.n, out);
}

static minfer_status parse_with(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tkids kids = {0}, values = {0};
    mf_tnode *node;
    while (p->t->type != MF_TOK_BLOCK_END) {
        if (kids.n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        MF_TRY(parse_target(p, MF_CTX_PARAM, false, NULL, &node));
        MF_TRY(mf_tparse_push(p, &kids, node));
        MF_TRY(mf_tparse_expect(p, MF_TOK_ASSIGN, NULL));
        MF_TRY(mf_tparse_expression(p, &node));
        MF_TRY(mf_tparse_push(p, &values, node));
    }
    for (size_t i = 0; i < values.n; i++) MF_TRY(mf_tparse_push(p, &kids, values.v[i]));
    MF_TRY(parse_only_body(p, tag, "endwith", &node));
    MF_TRY(mf_tparse_push(p, &kids, node));
    MF_TRY(mf_tparse_node(p, MF_N_WITH, tag, kids.v, kids.n, out));
    (*out)->scope = MF_RENDER_NEW(p->r, mf_tscope);
    return (*out)->scope ? MINFER_OK : mf_trender_failed(p->r);
}

static minfer_status captured_node(mf_tparser *p, const mf_ttoken *at, mf_tnode **out)
{
    return mf_tparse_node(p, MF_N_CAPTURED, at, NULL, 0, out);
}

static minfer_status parse_set(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tnode *kids[3] = {NULL};
    MF_TRY(parse_target(p, MF_CTX_STORE, true, NULL, &kids[MF_SET_TARGET]));
    if (mf_tparse_skip(p, MF_TOK_ASSIGN)) {
        MF_TRY(mf_tparse_tuple(p, &(mf_ttuple){.simple = false}, &kids[MF_SET_VALUE]));
        return mf_tparse_node(p, MF_N_SET, tag, kids, 2, out);
    }
    if (p->t->type == MF_TOK_PIPE) {
        MF_TRY(captured_node(p, p->t, &kids[MF_SET_FILTER]));
        MF_TRY(mf_tparse_filters(p, kids[MF_SET_FILTER], false, &kids[MF_SET_FILTER]));
    }
    MF_TRY(parse_only_body(p, tag, "endset", &kids[MF_SET_BODY]));
    MF_TRY(mf_tparse_node(p, MF_N_SETBLOCK, tag, kids, 3, out));
    (*out)->scope = MF_RENDER_NEW(p->r, mf_tscope);
    return (*out)->scope ? MINFER_OK : mf_trender_failed(p->r);
}

static minfer_status parse_filter_block(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tnode *kids[2];
    MF_TRY(captured_node(p, p->t, &kids[1]));
    MF_TRY(mf_tparse_filters(p, kids[1], true, &kids[1]));
    MF_TRY(parse_only_body(p, tag, "endfilter", &kids[0]));
    MF_TRY(mf_tparse_node(p, MF_N_FILTERBLOCK, tag, kids, 2, out));
    (*out)->scope = MF_RENDER_NEW(p->r, mf_tscope);
    return (*out)->scope ? MINFER_OK : mf_trender_failed(p->r);
}

/* -- macros, call blocks, generation -- */

static minfer_status check_new_parameter(mf_tparser *p, const mf_tkids *params, const mf_ttoken *at)
{
    char text[128];
    if (at->type != MF_TOK_NAME) return MINFER_OK;
    for (size_t i = 0; i < params->n; i++)
        if (mf_tstr_same(params->v[i]->var.name, at->value.s))
            return mf_tparse_fail(p, at, "duplicate argument '%s' in a macro's definition",
                                  mf_tparse_describe(at, text, sizeof text));
    return params->n == 255 ? mf_tparse_fail(p, at, "more than 255 parameters") : MINFER_OK;
}

/* (a, b=1): parameters, then defaults, into kids. */
static minfer_status parse_signature(mf_tparser *p, mf_tkids *kids, mf_tmacroinfo *info)
{
    mf_tkids defaults = {0};
    mf_tnode *node;
    MF_TRY(mf_tparse_expect(p, MF_TOK_LPAREN, NULL));
    while (p->t->type != MF_TOK_RPAREN) {
        if (kids->n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        MF_TRY(check_new_parameter(p, kids, p->t));
        MF_TRY(parse_name_target(p, MF_CTX_PARAM, &node));
        MF_TRY(mf_tparse_push(p, kids, node));
        if (mf_tparse_skip(p, MF_TOK_ASSIGN)) {
            MF_TRY(mf_tparse_expression(p, &node));
            MF_TRY(mf_tparse_push(p, &defaults, node));
        } else if (defaults.n)
            return mf_tparse_fail(p, p->t, "non-default argument follows default argument");
    }
    p->t++;
    info->nparams = (uint32_t)kids->n;
    info->ndefaults = (uint32_t)defaults.n;
    for (size_t i = 0; i < defaults.n; i++) MF_TRY(mf_tparse_push(p, kids, defaults.v[i]));
    return MINFER_OK;
}

/* The body of a macro is a function of its own: break and continue do not leave it. */
static minfer_status parse_macro_body(mf_tparser *p, const mf_ttoken *tag, const char *end, mf_tkids *kids)
{
    mf_tnode *body;
    size_t loops = p->loops;
    p->loops = 0;
    MF_TRY(parse_only_body(p, tag, end, &body));
    p->loops = loops;
    return mf_tparse_push(p, kids, body);
}

static minfer_status parse_macro(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tkids kids = {0};
    mf_tnode *name;
    mf_tmacroinfo *info = MF_RENDER_NEW(p->r, mf_tmacroinfo);
    if (!info) return mf_trender_failed(p->r);
    MF_TRY(parse_name_target(p, MF_CTX_STORE, &name));
    MF_TRY(parse_signature(p, &kids, info));
    MF_TRY(parse_macro_body(p, tag, "endmacro", &kids));
    info->var.name = name->var.name;
    MF_TRY(mf_tparse_node(p, MF_N_MACRO, tag, kids.v, kids.n, out));
    (*out)->macro = info;
    return MINFER_OK;
}

static minfer_status parse_call_block(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tkids kids = {0};
    mf_tnode *call;
    mf_tmacroinfo *info = MF_RENDER_NEW(p->r, mf_tmacroinfo);
    if (!info) return mf_trender_failed(p->r);
    if (p->t->type == MF_TOK_LPAREN) MF_TRY(parse_signature(p, &kids, info));
    MF_TRY(mf_tparse_expression(p, &call));
    if (call->kind != MF_N_CALL) return mf_tparse_fail(p, tag, "expected call");
    MF_TRY(parse_macro_body(p, tag, "endcall", &kids));
    MF_TRY(mf_tparse_push(p, &kids, call));
    MF_TRY(mf_tparse_node(p, MF_N_CALLBLOCK, tag, kids.v, kids.n, out));
    (*out)->macro = info;
    return MINFER_OK;
}

static minfer_status parse_generation(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tkids kids = {0};
    mf_tmacroinfo *info = MF_RENDER_NEW(p->r, mf_tmacroinfo);
    if (!info) return mf_trender_failed(p->r);
    MF_TRY(parse_macro_body(p, tag, "endgeneration", &kids));
    MF_TRY(mf_tparse_node(p, MF_N_GENERATION, tag, kids.v, kids.n, out));
    (*out)->macro = info;
    return MINFER_OK;
}

/* -- the rest -- */

static minfer_status parse_print(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    mf_tkids kids = {0};
    mf_tnode *node;
    while (p->t->type != MF_TOK_BLOCK_END) {
        if (kids.n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        MF_TRY(mf_tparse_expression(p, &node));
        MF_TRY(mf_tparse_push(p, &kids, node));
    }
    return mf_tparse_node(p, MF_N_PRINT, tag, kids.v, kids.n, out);
}

static minfer_status parse_jump(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    bool stop = mf_tparse_is_name(tag, "break");
    if (p->loops == 0) return mf_tparse_fail(p, tag, "'%s' outside a loop", stop ? "break" : "continue");
    return mf_tparse_node(p, stop ? MF_N_BREAK : MF_N_CONTINUE, tag, NULL, 0, out);
}

static minfer_status refuse(mf_tparser *p, const mf_ttoken *tag, mf_tnode **out)
{
    (void)out;
    char text[128];
    mf_tparse_fail(p, tag, "the tag '%s' is not supported: a chat template stands alone",
                   mf_tparse_describe(tag, text, sizeof text));
    return p->r->err->code = MINFER_ERR_UNSUPPORTED;
}

static const struct statement {
    const char *name;
    minfer_status (*parse)(mf_tparser *, const mf_ttoken *, mf_tnode **);
} statements[] = {
    {"if", parse_if},           {"for", parse_for},
    {"set", parse_set},         {"macro", parse_macro},
    {"call", parse_call_block}, {"filter", parse_filter_block},
    {"with", parse_with},       {"generation", parse_generation},
    {"break", parse_jump},      {"continue", parse_jump},
    {"print", parse_print},     {"include", refuse},
    {"import", refuse},         {"from", refuse},
    {"extends", refuse},        {"block", refuse},
    {"autoescape", refuse},
};

static minfer_status unknown_tag(mf_tparser *p)
{
    char text[128], open[128];
    const char *name = mf_tparse_describe(p->t, text, sizeof text);
    if (!p->open) return mf_tparse_fail(p, p->t, "Encountered unknown tag '%s'", name);
    return mf_tparse_fail(
        p, p->t,
        "Encountered unknown tag '%s'; the innermost block that needs to be closed is '%s' of line %u", name,
        mf_tparse_describe(p->open->tag, open, sizeof open), p->open->tag->line);
}

static minfer_status parse_statement(mf_tparser *p, mf_tnode **out)
{
    if (p->t->type != MF_TOK_NAME) return mf_tparse_fail(p, p->t, "tag name expected");
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        if (mf_tparse_skip_name(p, statements[i].name)) return statements[i].parse(p, p->t - 1, out);
    return unknown_tag(p);
}

static minfer_status parse_block_tag(mf_tparser *p, mf_tnode **out)
{
    minfer_status st = mf_trender_enter(p->r);
    if (st == MINFER_OK)
        st = parse_statement(p, out);
    else
        mf_tparse_fail(p, p->t, "an expression or block is nested too deeply");
    mf_trender_leave(p->r);
    if (st != MINFER_OK) return p->r->err->code;
    return mf_tparse_expect(p, MF_TOK_BLOCK_END, NULL);
}

/* Text or {{ }}. */
static minfer_status parse_output(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    if (at->type == MF_TOK_DATA) {
        MF_TRY(mf_tparse_node(p, MF_N_TEXT, at, NULL, 0, out));
        (*out)->value = at->value;
        return MINFER_OK;
    }
    mf_tnode *value;
    MF_TRY(mf_tparse_tuple(p, &(mf_ttuple){.simple = false}, &value));
    MF_TRY(mf_tparse_expect(p, MF_TOK_PRINT_END, NULL));
    return mf_tparse_node(p, MF_N_PRINT, at, &value, 1, out);
}

static size_t end_tag(const mf_ttoken *t, const char *const ends[3])
{
    size_t i = 0;
    while (i < 3 && ends[i] && !mf_tparse_is_name(t, ends[i])) i++;
    return i < 3 && ends[i] ? i : 3;
}

/* Statements up to an end tag (*which says which) or, where there is none to wait for, the end of the
 * template. */
static minfer_status parse_until(mf_tparser *p, const char *const ends[3], mf_tnode **out, size_t *which)
{
    mf_tkids kids = {0};
    const mf_ttoken *at = p->t;
    mf_tnode *node;
    while (p->t->type != MF_TOK_EOF) {
        if (mf_tparse_skip(p, MF_TOK_BLOCK_BEGIN)) {
            if ((*which = end_tag(p->t, ends)) < 3) {
                p->t++;
                return mf_tparse_node(p, MF_N_BLOCK, at, kids.v, kids.n, out);
            }
            MF_TRY(parse_block_tag(p, &node));
        } else
            MF_TRY(parse_output(p, &node));
        MF_TRY(mf_tparse_push(p, &kids, node));
    }
    if (ends[0])
        return mf_tparse_fail(
            p, p->t, "unexpected end of template: the block '%.*s' of line %u waits for '%s'",
            (int)p->open->tag->value.s->n, p->open->tag->value.s->p, p->open->tag->line, ends[0]);
    return mf_tparse_node(p, MF_N_BLOCK, at, kids.v, kids.n, out);
}

static minfer_status parse_body(mf_tparser *p, const mf_ttoken *tag, const char *const ends[3],
                                mf_tnode **out, size_t *which)
{
    mf_topen open = {tag, p->open};
    mf_tparse_skip(p, MF_TOK_COLON);
    MF_TRY(mf_tparse_expect(p, MF_TOK_BLOCK_END, NULL));
    p->open = &open;
    MF_TRY(parse_until(p, ends, out, which));
    p->open = open.outer;
    return MINFER_OK;
}

minfer_status mf_tparse_all(mf_trender *r, const mf_ttoken *tokens, mf_tnode **out)
{
    mf_tparser p = {.r = r, .t = tokens};
    size_t which;
    return parse_until(&p, (const char *const[3]){NULL, NULL, NULL}, out, &which);
}
