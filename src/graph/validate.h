/* Validation of a whole graph before it is assigned and allocated. */
#ifndef MF_GRAPH_VALIDATE_H
#define MF_GRAPH_VALIDATE_H

#include "graph/ir.h"

/* Ids in order, sources that exist, no cycle (Kahn's algorithm, which only proves that; execution follows
 * build order), sources built before their readers, shapes and dtypes as the rules say, unique names, one
 * store per layer, inputs and output that belong to the graph. */
minfer_status mf_graph_validate(const mf_graph *g, minfer_error *err);

/* Node by node: op, attributes, shape, dtype, sources. The error names the first node that differs and the
 * field. */
minfer_status mf_graph_compare(const mf_graph *a, const mf_graph *b, minfer_error *err);

#endif
