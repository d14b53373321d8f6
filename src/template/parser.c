/* What both halves of the parser share: nodes, tokens, messages. */
#include "template/parser.h"

#include <stdio.h>
#include <string.h>

enum { MAX_HEIGHT = 400 };

minfer_status mf_tparse_fail(mf_tparser *p, const mf_ttoken *at, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return mf_tsyntax_error(p->r, at->line, at->column, "%s", text);
}

minfer_status mf_tparse_node(mf_tparser *p, mf_tkind kind, const mf_ttoken *at, mf_tnode *const *kids,
                             size_t n, mf_tnode **out)
{
    mf_tnode *node = MF_RENDER_NEW(p->r, mf_tnode);
    mf_tnode **copy = node ? mf_trender_alloc(p->r, n, sizeof *copy) : NULL;
    if (!copy) return mf_trender_failed(p->r);
    uint16_t height = 1;
    for (size_t i = 0; i < n; i++) {
        copy[i] = kids[i];
        if (kids[i] && kids[i]->height >= height) height = (uint16_t)(kids[i]->height + 1);
    }
    if (height > MAX_HEIGHT) return mf_tparse_fail(p, at, "an expression or block is nested too deeply");
    *node = (mf_tnode){.kind = (uint8_t)kind,
                       .height = height,
                       .line = at->line,
                       .column = at->column,
                       .n = (uint32_t)n,
                       .kid = copy};
    *out = node;
    return MINFER_OK;
}

minfer_status mf_tparse_push(mf_tparser *p, mf_tkids *kids, mf_tnode *kid)
{
    if (kids->n == kids->cap) {
        size_t cap = kids->cap ? kids->cap * 2 : 4;
        mf_tnode **v = mf_trender_alloc(p->r, cap, sizeof *v);
        if (!v) return mf_trender_failed(p->r);
        if (kids->n) memcpy(v, kids->v, kids->n * sizeof *v);
        kids->v = v;
        kids->cap = cap;
    }
    kids->v[kids->n++] = kid;
    return MINFER_OK;
}

bool mf_tparse_is_name(const mf_ttoken *t, const char *name)
{
    return t->type == MF_TOK_NAME && mf_tstr_is(t->value.s, name);
}

bool mf_tparse_skip(mf_tparser *p, mf_ttok type)
{
    bool yes = p->t->type == type;
    p->t += yes;
    return yes;
}

bool mf_tparse_skip_name(mf_tparser *p, const char *name)
{
    bool yes = mf_tparse_is_name(p->t, name);
    p->t += yes;
    return yes;
}

const char *mf_tparse_describe(const mf_ttoken *t, char *out, size_t size)
{
    if (t->type != MF_TOK_NAME) return mf_ttok_name(t->type);
    snprintf(out, size, "%.*s", t->value.s->n > 100 ? 100 : (int)t->value.s->n, t->value.s->p);
    return out;
}

minfer_status mf_tparse_expect(mf_tparser *p, mf_ttok type, const mf_ttoken **out)
{
    char text[128];
    if (p->t->type == MF_TOK_EOF && type != MF_TOK_EOF)
        return mf_tparse_fail(p, p->t, "unexpected end of template, expected '%s'", mf_ttok_name(type));
    if (p->t->type != type)
        return mf_tparse_fail(p, p->t, "expected token '%s', got '%s'", mf_ttok_name(type),
                              mf_tparse_describe(p->t, text, sizeof text));
    if (out) *out = p->t;
    p->t += type != MF_TOK_EOF;
    return MINFER_OK;
}
