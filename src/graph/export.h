/* Exports of a graph: DOT for Graphviz, and minfer-graph v1 as JSON. Dead nodes are left out. */
#ifndef MF_GRAPH_EXPORT_H
#define MF_GRAPH_EXPORT_H

#include "graph/device.h"
#include "graph/params.h"

typedef struct mf_export {
    const mf_graph *graph;
    mf_device *const *devices; /* NULL: not assigned */
    const char *model;         /* name shown */
    mf_graph_kind kind;
} mf_export;

/* A digraph: nodes labelled name and op, filled by backend (Metal light blue, CPU light yellow, CUDA light
 * green, none white), double circles for inputs and outputs. */
bool mf_export_dot(const mf_export *e, mf_buf *out);

/* {format:"minfer-graph", version:1, model, kind, inputs, outputs,
 * nodes:[{id,name,op,detail,shape,dtype,backend,src,meta}]} */
minfer_status mf_export_json(const mf_export *e, mf_buf *out, minfer_error *err);

#endif
