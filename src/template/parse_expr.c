/* Expressions. The order of precedence, loosest first: inline if, or, and, not, comparisons, + -, ~, * / //
 * %, **, unary signs, then filters, tests and calls. As in Jinja ** binds from the left and looser than a
 * sign. */
#include "template/ops.h"
#include "template/parser.h"

#include <string.h>

typedef minfer_status parse_fn(mf_tparser *p, mf_tnode **out);

enum { MAX_KEYWORDS = 255 };

static minfer_status node1(mf_tparser *p, mf_tkind kind, const mf_ttoken *at, mf_tnode *a, mf_tnode **out)
{
    return mf_tparse_node(p, kind, at, &a, 1, out);
}

static minfer_status node2(mf_tparser *p, mf_tkind kind, const mf_ttoken *at, mf_tnode *a, mf_tnode *b,
                           mf_tnode **out)
{
    return mf_tparse_node(p, kind, at, (mf_tnode *[]){a, b}, 2, out);
}

static minfer_status constant(mf_tparser *p, const mf_ttoken *at, mf_tval v, mf_tnode **out)
{
    MF_TRY(mf_tparse_node(p, MF_N_CONST, at, NULL, 0, out));
    (*out)->value = v;
    return MINFER_OK;
}

/* Runs fn one level deeper. */
static minfer_status deeper(mf_tparser *p, parse_fn *fn, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    minfer_status st = mf_trender_enter(p->r);
    st = st == MINFER_OK ? fn(p, out) : mf_tparse_fail(p, at, "an expression or block is nested too deeply");
    mf_trender_leave(p->r);
    return st;
}

/* -- literals and names -- */

static minfer_status parse_strings(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    mf_tval v = at->value;
    if (p->t->type == MF_TOK_STRING) { /* neighbours are one string */
        mf_tsb text = {0};
        MF_TRY(mf_tsb_put(p->r, &text, v.s->p, v.s->n));
        for (; p->t->type == MF_TOK_STRING; p->t++)
            MF_TRY(mf_tsb_put(p->r, &text, p->t->value.s->p, p->t->value.s->n));
        MF_TRY(mf_tstr_wrap(p->r, text.p, text.n, &v));
    }
    return constant(p, at, v, out);
}

static bool is_constant_name(const mf_ttoken *t, mf_tval *v)
{
    static const char *const names[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < 6; i++) {
        if (!mf_tparse_is_name(t, names[i])) continue;
        *v = i < 4 ? mf_tbool(i < 2) : mf_tnone();
        return true;
    }
    return false;
}

static minfer_status parse_name(mf_tparser *p, bool namespaces, mf_tnode **out)
{
    mf_tval v;
    const mf_ttoken *at = p->t++, *attr = NULL;
    if (is_constant_name(at, &v)) return constant(p, at, v, out);
    if (namespaces && mf_tparse_skip(p, MF_TOK_DOT)) MF_TRY(mf_tparse_expect(p, MF_TOK_NAME, &attr));
    MF_TRY(mf_tparse_node(p, attr ? MF_N_NSREF : MF_N_NAME, at, NULL, 0, out));
    (*out)->var.name = at->value.s;
    (*out)->attr = attr ? attr->value.s : NULL;
    return MINFER_OK;
}

static minfer_status parse_list(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    mf_tkids items = {0};
    mf_tnode *item;
    while (p->t->type != MF_TOK_RBRACKET) {
        if (items.n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        if (p->t->type == MF_TOK_RBRACKET) break;
        MF_TRY(mf_tparse_expression(p, &item));
        MF_TRY(mf_tparse_push(p, &items, item));
    }
    p->t++;
    return mf_tparse_node(p, MF_N_LIST, at, items.v, items.n, out);
}

static minfer_status parse_dict(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    mf_tkids items = {0};
    mf_tnode *item;
    while (p->t->type != MF_TOK_RBRACE) {
        if (items.n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        if (p->t->type == MF_TOK_RBRACE) break;
        MF_TRY(mf_tparse_expression(p, &item));
        MF_TRY(mf_tparse_push(p, &items, item));
        MF_TRY(mf_tparse_expect(p, MF_TOK_COLON, NULL));
        MF_TRY(mf_tparse_expression(p, &item));
        MF_TRY(mf_tparse_push(p, &items, item));
    }
    p->t++;
    return mf_tparse_node(p, MF_N_DICT, at, items.v, items.n, out);
}

static minfer_status parse_parentheses(mf_tparser *p, mf_tnode **out)
{
    p->t++;
    MF_TRY(mf_tparse_tuple(p, &(mf_ttuple){.parentheses = true}, out));
    return mf_tparse_expect(p, MF_TOK_RPAREN, NULL);
}

static minfer_status parse_primary(mf_tparser *p, bool namespaces, mf_tnode **out)
{
    char text[128];
    switch (p->t->type) {
    case MF_TOK_NAME: return parse_name(p, namespaces, out);
    case MF_TOK_STRING: return parse_strings(p, out);
    case MF_TOK_NUMBER: p->t++; return constant(p, p->t - 1, p->t[-1].value, out);
    case MF_TOK_LPAREN: return parse_parentheses(p, out);
    case MF_TOK_LBRACKET: return parse_list(p, out);
    case MF_TOK_LBRACE: return parse_dict(p, out);
    default: return mf_tparse_fail(p, p->t, "unexpected '%s'", mf_tparse_describe(p->t, text, sizeof text));
    }
}

static minfer_status parse_plain_primary(mf_tparser *p, mf_tnode **out)
{
    return parse_primary(p, false, out);
}

/* -- subscripts and calls -- */

static bool slice_part_follows(const mf_tparser *p)
{
    return p->t->type != MF_TOK_COLON && p->t->type != MF_TOK_RBRACKET && p->t->type != MF_TOK_COMMA;
}

/* After the first part of a slice, at its colon. */
static minfer_status parse_slice(mf_tparser *p, const mf_ttoken *at, mf_tnode *obj, mf_tnode *start,
                                 mf_tnode **out)
{
    mf_tnode *kids[] = {obj, start, NULL, NULL};
    p->t++;
    if (slice_part_follows(p)) MF_TRY(mf_tparse_expression(p, &kids[2]));
    if (mf_tparse_skip(p, MF_TOK_COLON) && slice_part_follows(p)) MF_TRY(mf_tparse_expression(p, &kids[3]));
    MF_TRY(mf_tparse_expect(p, MF_TOK_RBRACKET, NULL));
    return mf_tparse_node(p, MF_N_SLICE, at, kids, 4, out);
}

/* obj[key], obj[a, b] (the key is a tuple), obj[start:stop:step] */
static minfer_status parse_brackets(mf_tparser *p, mf_tnode *obj, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    mf_tkids keys = {0};
    mf_tnode *key = NULL;
    while (p->t->type != MF_TOK_RBRACKET) {
        if (keys.n) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        if (p->t->type != MF_TOK_COLON) MF_TRY(mf_tparse_expression(p, &key));
        if (p->t->type == MF_TOK_COLON && keys.n == 0) return parse_slice(p, at, obj, key, out);
        MF_TRY(mf_tparse_push(p, &keys, key));
    }
    p->t++;
    if (keys.n != 1) MF_TRY(mf_tparse_node(p, MF_N_TUPLE, at, keys.v, keys.n, &key));
    return node2(p, MF_N_ITEM, at, obj, key, out);
}

static minfer_status parse_dot(mf_tparser *p, mf_tnode *obj, mf_tnode **out)
{
    const mf_ttoken *at = p->t++, *attr = p->t++;
    mf_tnode *key;
    if (attr->type == MF_TOK_NAME) {
        MF_TRY(node1(p, MF_N_ATTR, at, obj, out));
        (*out)->attr = attr->value.s;
        return MINFER_OK;
    }
    if (attr->type != MF_TOK_NUMBER || !mf_tis(attr->value, MF_T_INT)) {
        p->t = attr;
        return mf_tparse_fail(p, attr, "expected name or number");
    }
    MF_TRY(constant(p, attr, attr->value, &key));
    return node2(p, MF_N_ITEM, at, obj, key, out);
}

typedef struct arguments { /* while they are read */
    mf_tkids pos, values;
    const mf_tstr **names;
    mf_tnode *star, *double_star;
} arguments;

static minfer_status add_keyword(mf_tparser *p, arguments *a)
{
    const mf_ttoken *name = p->t;
    mf_tnode *value;
    char text[128];
    if (a->values.n == MAX_KEYWORDS)
        return mf_tparse_fail(p, name, "more than %d keyword arguments", MAX_KEYWORDS);
    for (size_t i = 0; i < a->values.n; i++)
        if (mf_tstr_same(a->names[i], name->value.s))
            return mf_tparse_fail(p, name, "keyword argument repeated: %s",
                                  mf_tparse_describe(name, text, sizeof text));
    p->t += 2;
    MF_TRY(mf_tparse_expression(p, &value));
    MF_TRY(mf_tparse_push(p, &a->values, value));
    const mf_tstr **names = mf_trender_alloc(p->r, a->values.n, sizeof *names);
    if (!names) return mf_trender_failed(p->r);
    if (a->values.n > 1) memcpy(names, a->names, (a->values.n - 1) * sizeof *names);
    names[a->values.n - 1] = name->value.s;
    a->names = names;
    return MINFER_OK;
}

static minfer_status add_argument(mf_tparser *p, arguments *a, const mf_ttoken *at)
{
    mf_tnode *value;
    bool star = p->t->type == MF_TOK_MUL, double_star = p->t->type == MF_TOK_POW;
    bool keyword = p->t->type == MF_TOK_NAME && p->t[1].type == MF_TOK_ASSIGN;
    if (a->double_star || (a->star && !double_star && !keyword) ||
        (!star && !double_star && !keyword && a->values.n))
        return mf_tparse_fail(p, at, "invalid syntax for function call expression");
    if (keyword) return add_keyword(p, a);
    p->t += star || double_star;
    MF_TRY(mf_tparse_expression(p, &value));
    if (!star && !double_star) return mf_tparse_push(p, &a->pos, value);
    *(star ? &a->star : &a->double_star) = value;
    return MINFER_OK;
}

static minfer_status parse_arguments(mf_tparser *p, arguments *a)
{
    const mf_ttoken *at;
    MF_TRY(mf_tparse_expect(p, MF_TOK_LPAREN, &at));
    for (bool first = true; p->t->type != MF_TOK_RPAREN; first = false) {
        if (!first) MF_TRY(mf_tparse_expect(p, MF_TOK_COMMA, NULL));
        if (p->t->type == MF_TOK_RPAREN) break;
        MF_TRY(add_argument(p, a, at));
    }
    p->t++;
    return MINFER_OK;
}

/* A CALL, FILTER or TEST of the first child and the arguments. */
static minfer_status call_node(mf_tparser *p, mf_tkind kind, const mf_ttoken *at, mf_tnode *first,
                               const arguments *a, mf_tnode **out)
{
    mf_tkids kids = {0};
    MF_TRY(mf_tparse_push(p, &kids, first));
    for (size_t i = 0; i < a->pos.n; i++) MF_TRY(mf_tparse_push(p, &kids, a->pos.v[i]));
    for (size_t i = 0; i < a->values.n; i++) MF_TRY(mf_tparse_push(p, &kids, a->values.v[i]));
    if (a->star) MF_TRY(mf_tparse_push(p, &kids, a->star));
    if (a->double_star) MF_TRY(mf_tparse_push(p, &kids, a->double_star));
    mf_targlist *list = MF_RENDER_NEW(p->r, mf_targlist);
    if (!list) return mf_trender_failed(p->r);
    *list = (mf_targlist){.keywords = a->names,
                          .npos = (uint32_t)a->pos.n,
                          .nkw = (uint32_t)a->values.n,
                          .star = a->star,
                          .double_star = a->double_star};
    MF_TRY(mf_tparse_node(p, kind, at, kids.v, kids.n, out));
    (*out)->args = list;
    return MINFER_OK;
}

static minfer_status parse_call(mf_tparser *p, mf_tnode *callee, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    arguments a = {0};
    MF_TRY(parse_arguments(p, &a));
    return call_node(p, MF_N_CALL, at, callee, &a, out);
}

static minfer_status parse_postfix(mf_tparser *p, mf_tnode *node, mf_tnode **out)
{
    for (*out = node;;) {
        switch (p->t->type) {
        case MF_TOK_DOT: MF_TRY(parse_dot(p, *out, out)); break;
        case MF_TOK_LBRACKET: MF_TRY(parse_brackets(p, *out, out)); break;
        case MF_TOK_LPAREN: MF_TRY(parse_call(p, *out, out)); break;
        default: return MINFER_OK;
        }
    }
}

/* -- filters and tests -- */

/* name or a.b.c, as one string */
static minfer_status dotted_name(mf_tparser *p, const mf_tstr **out)
{
    const mf_ttoken *part;
    mf_tsb text = {0};
    mf_tval v;
    MF_TRY(mf_tparse_expect(p, MF_TOK_NAME, &part));
    *out = part->value.s;
    if (p->t->type != MF_TOK_DOT) return MINFER_OK;
    MF_TRY(mf_tsb_put(p->r, &text, part->value.s->p, part->value.s->n));
    while (mf_tparse_skip(p, MF_TOK_DOT)) {
        MF_TRY(mf_tparse_expect(p, MF_TOK_NAME, &part));
        MF_TRY(mf_tsb_char(p->r, &text, '.'));
        MF_TRY(mf_tsb_put(p->r, &text, part->value.s->p, part->value.s->n));
    }
    MF_TRY(mf_tstr_wrap(p->r, text.p, text.n, &v));
    *out = v.s;
    return MINFER_OK;
}

minfer_status mf_tparse_filters(mf_tparser *p, mf_tnode *input, bool first, mf_tnode **out)
{
    for (*out = input; first || mf_tparse_skip(p, MF_TOK_PIPE); first = false) {
        const mf_ttoken *at = p->t;
        const mf_tstr *name;
        arguments a = {0};
        MF_TRY(dotted_name(p, &name));
        if (p->t->type == MF_TOK_LPAREN) MF_TRY(parse_arguments(p, &a));
        MF_TRY(call_node(p, MF_N_FILTER, at, *out, &a, out));
        (*out)->args->name = name;
        (*out)->args->def = mf_tfilter_find(name);
    }
    return MINFER_OK;
}

/* A test's single argument may stand without parentheses. */
static bool bare_argument_follows(const mf_tparser *p)
{
    switch (p->t->type) {
    case MF_TOK_NAME:
        return !mf_tparse_is_name(p->t, "else") && !mf_tparse_is_name(p->t, "or") &&
               !mf_tparse_is_name(p->t, "and");
    case MF_TOK_STRING:
    case MF_TOK_NUMBER:
    case MF_TOK_LBRACKET:
    case MF_TOK_LBRACE: return true;
    default: return false;
    }
}

static minfer_status parse_bare_argument(mf_tparser *p, mf_tkids *pos)
{
    mf_tnode *arg;
    if (mf_tparse_is_name(p->t, "is"))
        return mf_tparse_fail(p, p->t, "You cannot chain multiple tests with is");
    MF_TRY(deeper(p, parse_plain_primary, &arg));
    MF_TRY(parse_postfix(p, arg, &arg));
    return mf_tparse_push(p, pos, arg);
}

static minfer_status parse_test(mf_tparser *p, mf_tnode *input, mf_tnode **out)
{
    const mf_ttoken *at = p->t++;
    const mf_tstr *name;
    arguments a = {0};
    bool negated = mf_tparse_skip_name(p, "not");
    MF_TRY(dotted_name(p, &name));
    if (p->t->type == MF_TOK_LPAREN)
        MF_TRY(parse_arguments(p, &a));
    else if (bare_argument_follows(p))
        MF_TRY(parse_bare_argument(p, &a.pos));
    MF_TRY(call_node(p, MF_N_TEST, at, input, &a, out));
    (*out)->args->name = name;
    (*out)->args->def = mf_ttest_find(name);
    return negated ? node1(p, MF_N_NOT, at, *out, out) : MINFER_OK;
}

static minfer_status parse_filters_and_tests(mf_tparser *p, mf_tnode *node, mf_tnode **out)
{
    for (*out = node;;) {
        if (p->t->type == MF_TOK_PIPE)
            MF_TRY(mf_tparse_filters(p, *out, false, out));
        else if (mf_tparse_is_name(p->t, "is"))
            MF_TRY(parse_test(p, *out, out));
        else if (p->t->type == MF_TOK_LPAREN)
            MF_TRY(parse_call(p, *out, out));
        else
            return MINFER_OK;
    }
}

/* -- operators -- */

/* A sign applies to what follows with its subscripts; filters apply to the signed value. */
static minfer_status parse_signed(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    if (at->type != MF_TOK_SUB && at->type != MF_TOK_ADD)
        MF_TRY(parse_primary(p, false, out));
    else {
        p->t++;
        MF_TRY(deeper(p, parse_signed, out));
        MF_TRY(node1(p, at->type == MF_TOK_SUB ? MF_N_NEG : MF_N_POS, at, *out, out));
    }
    return parse_postfix(p, *out, out);
}

static minfer_status parse_unary(mf_tparser *p, mf_tnode **out)
{
    MF_TRY(parse_signed(p, out));
    return parse_filters_and_tests(p, *out, out);
}

typedef struct binop {
    mf_ttok token;
    mf_top op;
} binop;

static minfer_status parse_binary(mf_tparser *p, const binop *ops, size_t n, parse_fn *next, mf_tnode **out)
{
    MF_TRY(next(p, out));
    for (;;) {
        const mf_ttoken *at = p->t;
        size_t i = 0;
        while (i < n && ops[i].token != at->type) i++;
        if (i == n) return MINFER_OK;
        mf_tnode *right;
        p->t++;
        MF_TRY(next(p, &right));
        MF_TRY(node2(p, MF_N_BINARY, at, *out, right, out));
        (*out)->op = (uint8_t)ops[i].op;
    }
}

static minfer_status parse_pow(mf_tparser *p, mf_tnode **out)
{
    static const binop ops[] = {{MF_TOK_POW, MF_OP_POW}};
    return parse_binary(p, ops, 1, parse_unary, out);
}

static minfer_status parse_product(mf_tparser *p, mf_tnode **out)
{
    static const binop ops[] = {{MF_TOK_MUL, MF_OP_MUL},
                                {MF_TOK_DIV, MF_OP_DIV},
                                {MF_TOK_FLOORDIV, MF_OP_FLOORDIV},
                                {MF_TOK_MOD, MF_OP_MOD}};
    return parse_binary(p, ops, 4, parse_pow, out);
}

static minfer_status parse_concat(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    mf_tkids parts = {0};
    MF_TRY(parse_product(p, out));
    if (p->t->type != MF_TOK_TILDE) return MINFER_OK;
    MF_TRY(mf_tparse_push(p, &parts, *out));
    while (mf_tparse_skip(p, MF_TOK_TILDE)) {
        MF_TRY(parse_product(p, out));
        MF_TRY(mf_tparse_push(p, &parts, *out));
    }
    return mf_tparse_node(p, MF_N_CONCAT, at, parts.v, parts.n, out);
}

static minfer_status parse_sum(mf_tparser *p, mf_tnode **out)
{
    static const binop ops[] = {{MF_TOK_ADD, MF_OP_ADD}, {MF_TOK_SUB, MF_OP_SUB}};
    return parse_binary(p, ops, 2, parse_concat, out);
}

static bool take_comparison(mf_tparser *p, uint8_t *op)
{
    static const struct {
        mf_ttok token;
        mf_tcmp op;
    } ops[] = {{MF_TOK_EQ, MF_CMP_EQ}, {MF_TOK_NE, MF_CMP_NE}, {MF_TOK_LT, MF_CMP_LT},
               {MF_TOK_LE, MF_CMP_LE}, {MF_TOK_GT, MF_CMP_GT}, {MF_TOK_GE, MF_CMP_GE}};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (mf_tparse_skip(p, ops[i].token)) return *op = (uint8_t)ops[i].op, true;
    if (mf_tparse_skip_name(p, "in")) return *op = MF_CMP_IN, true;
    if (!mf_tparse_is_name(p->t, "not") || !mf_tparse_is_name(p->t + 1, "in")) return false;
    p->t += 2;
    *op = MF_CMP_NOT_IN;
    return true;
}

static minfer_status parse_comparison(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    mf_tkids kids = {0};
    mf_tsb ops = {0};
    uint8_t op;
    MF_TRY(parse_sum(p, out));
    while (take_comparison(p, &op)) {
        if (!kids.n) MF_TRY(mf_tparse_push(p, &kids, *out));
        MF_TRY(parse_sum(p, out));
        MF_TRY(mf_tparse_push(p, &kids, *out));
        MF_TRY(mf_tsb_char(p->r, &ops, (char)op));
    }
    if (!kids.n) return MINFER_OK;
    MF_TRY(mf_tparse_node(p, MF_N_COMPARE, at, kids.v, kids.n, out));
    (*out)->ops = (const uint8_t *)ops.p;
    return MINFER_OK;
}

static minfer_status parse_not(mf_tparser *p, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    if (!mf_tparse_skip_name(p, "not")) return parse_comparison(p, out);
    MF_TRY(deeper(p, parse_not, out));
    return node1(p, MF_N_NOT, at, *out, out);
}

static minfer_status parse_logic(mf_tparser *p, const char *word, mf_tkind kind, parse_fn *next,
                                 mf_tnode **out)
{
    mf_tnode *right;
    MF_TRY(next(p, out));
    while (mf_tparse_is_name(p->t, word)) {
        const mf_ttoken *at = p->t++;
        MF_TRY(next(p, &right));
        MF_TRY(node2(p, kind, at, *out, right, out));
    }
    return MINFER_OK;
}

static minfer_status parse_and(mf_tparser *p, mf_tnode **out)
{
    return parse_logic(p, "and", MF_N_AND, parse_not, out);
}

static minfer_status parse_or(mf_tparser *p, mf_tnode **out)
{
    return parse_logic(p, "or", MF_N_OR, parse_and, out);
}

static minfer_status parse_condition(mf_tparser *p, mf_tnode **out)
{
    MF_TRY(parse_or(p, out));
    while (mf_tparse_is_name(p->t, "if")) {
        const mf_ttoken *at = p->t++;
        mf_tnode *kids[] = {NULL, *out, NULL};
        MF_TRY(parse_or(p, &kids[0]));
        if (mf_tparse_skip_name(p, "else")) MF_TRY(deeper(p, parse_condition, &kids[2]));
        MF_TRY(mf_tparse_node(p, MF_N_COND, at, kids, 3, out));
    }
    return MINFER_OK;
}

minfer_status mf_tparse_expression(mf_tparser *p, mf_tnode **out)
{
    return deeper(p, parse_condition, out);
}

/* -- tuples -- */

static bool tuple_ends(const mf_tparser *p, const mf_ttuple *how)
{
    return p->t->type == MF_TOK_PRINT_END || p->t->type == MF_TOK_BLOCK_END || p->t->type == MF_TOK_RPAREN ||
           (how->end && mf_tparse_is_name(p->t, how->end));
}

static minfer_status parse_member(mf_tparser *p, const mf_ttuple *how, mf_tnode **out)
{
    if (how->simple) return parse_primary(p, how->namespaces, out);
    return how->no_condition ? deeper(p, parse_or, out) : mf_tparse_expression(p, out);
}

minfer_status mf_tparse_tuple(mf_tparser *p, const mf_ttuple *how, mf_tnode **out)
{
    const mf_ttoken *at = p->t;
    mf_tkids items = {0};
    bool tuple = false;
    char text[128];
    while (!tuple_ends(p, how)) {
        MF_TRY(parse_member(p, how, out));
        MF_TRY(mf_tparse_push(p, &items, *out));
        if (!mf_tparse_skip(p, MF_TOK_COMMA)) break;
        tuple = true;
    }
    if (!tuple && items.n) return MINFER_OK;
    if (!tuple && !how->parentheses)
        return mf_tparse_fail(p, p->t, "Expected an expression, got '%s'",
                              mf_tparse_describe(p->t, text, sizeof text));
    return mf_tparse_node(p, MF_N_TUPLE, at, items.v, items.n, out);
}
