/* The parsed template: nodes and scopes, all in the template's arena and never changed after parsing. */
#ifndef MF_TEMPLATE_AST_H
#define MF_TEMPLATE_AST_H

#include "template/call.h"

/* Children of a node, in the order given here; [x] may be NULL, x... is any number. */
typedef enum mf_tkind {
    /* expressions */
    MF_N_CONST,    /* value */
    MF_N_NAME,     /* var */
    MF_N_NSREF,    /* var, attr: the target of {% set name.attr = %} */
    MF_N_TUPLE,    /* item... */
    MF_N_LIST,     /* item... */
    MF_N_DICT,     /* key, value, key, value... */
    MF_N_NOT,      /* operand */
    MF_N_NEG,      /* operand */
    MF_N_POS,      /* operand */
    MF_N_BINARY,   /* left, right; op is an mf_top */
    MF_N_AND,      /* left, right */
    MF_N_OR,       /* left, right */
    MF_N_COMPARE,  /* first, next...; ops, an mf_tcmp for each next */
    MF_N_CONCAT,   /* operand... */
    MF_N_COND,     /* condition, then, [else] */
    MF_N_ATTR,     /* object; attr */
    MF_N_ITEM,     /* object, key */
    MF_N_SLICE,    /* object, [start], [stop], [step] */
    MF_N_CALL,     /* callee, argument...; args */
    MF_N_FILTER,   /* input, argument...; args */
    MF_N_TEST,     /* input, argument...; args */
    MF_N_CAPTURED, /* the text of the capturing block whose filter this is the input of */
    /* statements */
    MF_N_TEXT,        /* value, a string */
    MF_N_PRINT,       /* expression... */
    MF_N_BLOCK,       /* statement... */
    MF_N_FOR,         /* target, iterable, [condition], body, [else]; loop */
    MF_N_IF,          /* condition, body, condition, body..., [else body] */
    MF_N_SET,         /* target, value */
    MF_N_SETBLOCK,    /* target, body, [filter]; scope */
    MF_N_MACRO,       /* parameter..., default..., body; macro */
    MF_N_CALLBLOCK,   /* the same, and the call last; macro */
    MF_N_GENERATION,  /* body; macro */
    MF_N_FILTERBLOCK, /* body, filter; scope */
    MF_N_WITH,        /* target..., value..., body; scope */
    MF_N_BREAK,
    MF_N_CONTINUE,
    MF_N_COUNT,
} mf_tkind;

enum { MF_FOR_TARGET, MF_FOR_ITERABLE, MF_FOR_CONDITION, MF_FOR_BODY, MF_FOR_ELSE, MF_FOR_KIDS };
enum { MF_SET_TARGET, MF_SET_VALUE, MF_SET_BODY = 1, MF_SET_FILTER };

typedef enum mf_tcmp {
    MF_CMP_LT,
    MF_CMP_GT,
    MF_CMP_LE,
    MF_CMP_GE,
    MF_CMP_EQ,
    MF_CMP_NE,
    MF_CMP_IN,
    MF_CMP_NOT_IN
} mf_tcmp;

typedef enum mf_tctx { MF_CTX_LOAD, MF_CTX_STORE, MF_CTX_PARAM } mf_tctx;

/* How a variable of a scope gets its value when the scope is entered. */
typedef enum mf_tload {
    MF_LOAD_PARAM,   /* by whoever enters */
    MF_LOAD_UNSET,   /* later, by an assignment */
    MF_LOAD_OUTER,   /* from a variable of an outer scope */
    MF_LOAD_CONTEXT, /* from the values the rendering was given, or the built-in functions */
} mf_tload;

typedef struct mf_tvar { /* where a name stands: slot of the frame `hops` frames out */
    const mf_tstr *name;
    uint32_t hops, slot;
} mf_tvar;

typedef struct mf_tinit {
    mf_tload load;
    mf_tvar from; /* OUTER: the outer variable; CONTEXT: its name */
} mf_tinit;

typedef struct mf_tscope {
    mf_tinit *init; /* one for each slot */
    uint32_t n;
} mf_tscope;

#define MF_NO_SLOT UINT32_MAX

typedef struct mf_targlist { /* children 1... of CALL, FILTER, TEST: positional, keyword values, *list, **dict
                              */
    const mf_tstr *name;     /* of the filter or test */
    const mf_tfndef *def;    /* NULL: unknown, an error when it runs */
    const mf_tstr **keywords;
    uint32_t npos, nkw;
    bool star, double_star;
} mf_targlist;

typedef struct mf_tmacroinfo {
    mf_tvar var;     /* where the macro is stored; name NULL for a call block */
    mf_tscope scope; /* slots 0...nparams-1 are the parameters */
    uint32_t nparams, ndefaults;
    uint32_t caller, kwargs, varargs; /* slots, or MF_NO_SLOT where the body does not ask */
} mf_tmacroinfo;

typedef struct mf_tloopinfo {
    mf_tscope body, condition, otherwise;
    uint32_t slot; /* of the variable loop, or MF_NO_SLOT */
    bool recursive;
} mf_tloopinfo;

typedef struct mf_tnode mf_tnode;
struct mf_tnode {
    uint8_t kind; /* mf_tkind */
    uint8_t op;   /* mf_top of BINARY, mf_tctx of NAME */
    uint16_t height;
    uint32_t line, column; /* from 1 */
    uint32_t n;
    mf_tnode **kid;
    union {
        mf_tval value;
        struct {
            mf_tvar var;
            const mf_tstr *attr;
        };
        const uint8_t *ops;
        mf_targlist *args;
        mf_tscope *scope;
        mf_tmacroinfo *macro;
        mf_tloopinfo *loop;
    };
};

struct mf_template {
    mf_arena arena;
    const mf_tnode *root; /* a BLOCK */
    mf_tscope scope;
};

#endif
