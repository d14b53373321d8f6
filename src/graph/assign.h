/* Assignment: which device runs each node. By capability and priority, once, when the graph is built. */
#ifndef MF_GRAPH_ASSIGN_H
#define MF_GRAPH_ASSIGN_H

#include "graph/device.h"
#include "graph/params.h"

typedef struct mf_assign {
    mf_device *const *devices; /* by descending priority; the last is the CPU, which runs everything the
                                  builder makes for it */
    int32_t n_devices;
    /* Tests: the wished device of a node, or -1 for the rule. A wish that the device does not support is
     * ignored. */
    int32_t (*wish)(void *user, const mf_graph *g, mf_id id);
    void *user;
} mf_assign;

/* Sets device of every node. Rules: the first device by priority that supports the node; layers below n_layer
 * - gpu_layers stay on the last device; all nodes that touch one layer's cache share a device, namely
 * kv_home[layer] where that is set (>= 0): the cache is already there; inputs go to their first reader, views
 * to their source. A node no device supports is an error that names it and its types. kv_home may be NULL. */
minfer_status mf_assign_devices(mf_graph *g, const mf_graph_params *p, const mf_assign *a,
                                const int32_t *kv_home, minfer_error *err);

#endif
