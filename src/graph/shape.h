/* Shape rules: what an op's sources and attributes say about its value. One function per op, in a table. */
#ifndef MF_GRAPH_SHAPE_H
#define MF_GRAPH_SHAPE_H

#include "graph/ir.h"

/* Computes shape and dtype of n from its sources (already in g) and attributes; n->shape holds the requested
 * shape for INPUT, VIEW, RESHAPE, and the other ops ignore it. Refuses what does not fit, with the shapes. */
minfer_status mf_shape_infer(const mf_graph *g, mf_node *n, minfer_error *err);

#endif
