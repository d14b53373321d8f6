/* The peephole pass: after assignment, patterns of nodes become one node where the node's device supports it.
 * Feasibility reads metadata only; no fusion changes a bit of the result on its device. */
#ifndef MF_GRAPH_FUSE_H
#define MF_GRAPH_FUSE_H

#include "graph/device.h"

/* Applies every rule once over the graph, marks nodes left without readers dead, and returns how many fusions
 * were made. */
int32_t mf_fuse_peephole(mf_graph *g, mf_device *const *devices);

#endif
