/* Running a template: expressions to values (eval.c), statements to output (exec.c). */
#ifndef MF_TEMPLATE_EVAL_H
#define MF_TEMPLATE_EVAL_H

#include "template/ast.h"

typedef struct mf_tframe { /* the variables of one scope that is being run */
    struct mf_tframe *up;
    mf_tval captured; /* the text of a capturing block, for its filters */
    mf_tval slot[];   /* MISSING while unset */
} mf_tframe;

typedef enum mf_tflow { MF_FLOW_NEXT, MF_FLOW_BREAK, MF_FLOW_CONTINUE } mf_tflow;

minfer_status mf_tframe_new(mf_trender *r, mf_tframe *up, const mf_tscope *scope, mf_tframe **out);
/* Gives all but the parameters the values they have when the scope is entered. */
minfer_status mf_tframe_enter(mf_trender *r, mf_tframe *f, const mf_tscope *scope);

minfer_status mf_teval(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tval *out);
minfer_status mf_texec(mf_trender *r, mf_tframe *f, const mf_tnode *node, mf_tflow *flow);
/* A CALL node, with one more keyword argument when extra is given. */
minfer_status mf_teval_call(mf_trender *r, mf_tframe *f, const mf_tnode *node, const mf_tkw *extra,
                            mf_tval *out);
/* Stores v in a name, an attribute of a namespace, or item by item in a tuple of targets. */
minfer_status mf_tassign(mf_trender *r, mf_tframe *f, const mf_tnode *target, mf_tval v);

#endif
