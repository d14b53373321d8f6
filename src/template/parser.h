/* Tokens to nodes. Names are not resolved yet; scope.h does that. */
#ifndef MF_TEMPLATE_PARSER_H
#define MF_TEMPLATE_PARSER_H

#include "template/ast.h"
#include "template/lexer.h"

typedef struct mf_topen { /* a block that waits for its end tag, for messages */
    const mf_ttoken *tag;
    const struct mf_topen *outer;
} mf_topen;

typedef struct mf_tparser {
    mf_trender *r;      /* memory, nesting limit, error */
    const mf_ttoken *t; /* the current token */
    size_t loops;       /* for loops around that break and continue could mean */
    const mf_topen *open;
} mf_tparser;

typedef struct mf_tkids { /* children while they are being collected */
    mf_tnode **v;
    size_t n, cap;
} mf_tkids;

/* What a tuple without parentheses may hold and where it ends, besides the end of the tag. */
typedef struct mf_ttuple {
    bool simple;       /* names and literals only: the target of an assignment */
    bool namespaces;   /* and name.attr */
    bool no_condition; /* `if` is not part of the expression */
    bool parentheses;  /* may be empty */
    const char *end;   /* a name that ends it, or NULL */
} mf_ttuple;

/* The nodes of a whole template, a BLOCK. */
minfer_status mf_tparse_all(mf_trender *r, const mf_ttoken *tokens, mf_tnode **out);

/* For the two halves of the parser (parse_expr.c, parse_stmt.c). */
minfer_status mf_tparse_node(mf_tparser *p, mf_tkind kind, const mf_ttoken *at, mf_tnode *const *kids,
                             size_t n, mf_tnode **out);
minfer_status mf_tparse_push(mf_tparser *p, mf_tkids *kids, mf_tnode *kid);
minfer_status mf_tparse_fail(mf_tparser *p, const mf_ttoken *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool mf_tparse_is_name(const mf_ttoken *t, const char *name);
bool mf_tparse_skip(mf_tparser *p, mf_ttok type);
bool mf_tparse_skip_name(mf_tparser *p, const char *name);
minfer_status mf_tparse_expect(mf_tparser *p, mf_ttok type, const mf_ttoken **out);
/* The token as a message shows it: a name by its text, others by their kind. */
const char *mf_tparse_describe(const mf_ttoken *t, char *out, size_t size);

minfer_status mf_tparse_expression(mf_tparser *p, mf_tnode **out);
minfer_status mf_tparse_tuple(mf_tparser *p, const mf_ttuple *how, mf_tnode **out);
/* |name(args)|name...: applied to input (CAPTURED for blocks). first: the leading | is not there. */
minfer_status mf_tparse_filters(mf_tparser *p, mf_tnode *input, bool first, mf_tnode **out);

#endif
