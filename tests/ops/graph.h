/* The graph of a case: its operands gathered from weights by token_ids, then the op. */
#ifndef MF_TESTS_OPS_GRAPH_H
#define MF_TESTS_OPS_GRAPH_H

#include "graph/builder.h"
#include "ops/case.h"

enum { OP_MAX_KEPT = 3 };

/* What mf_build_fn gets. */
typedef struct op_model {
    const op_case *c;
    const op_data *d;
    bool plain;  /* fused ops are built from the ops they replace */
    bool inputs; /* stop after the operands: what a benchmark subtracts */
    /* Operands whose values must be as they were after the run: they count as outputs of the graph. */
    mf_id kept[OP_MAX_KEPT];
    const op_operand *kept_of[OP_MAX_KEPT];
    int n_kept;
} op_model;

/* An mf_build_fn over an op_model. The node under test is named l1.op. */
minfer_status op_build(void *model, mf_builder *b);
mf_graph_params op_params(const op_case *c);

#define OP_NODE "l1.op"

#endif
