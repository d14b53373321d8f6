/* The allocator: the single owner of all buffers. It asks devices for memory and says where every value
 * lives. It outlives graphs: a graph has a plan, and plans of all cached graphs share one arena per device,
 * because graphs run one at a time. */
#ifndef MF_GRAPH_ALLOC_H
#define MF_GRAPH_ALLOC_H

#include "graph/device.h"

typedef enum mf_place {
    MF_PLACE_NONE,   /* no memory: dead nodes, ordering tokens */
    MF_PLACE_ARENA,  /* bytes [offset, offset + bytes) of the device's arena */
    MF_PLACE_REGION, /* a layer's cache region */
} mf_place;

typedef struct mf_loc {
    mf_place place;
    int32_t device;
    size_t offset, bytes;
} mf_loc;

/* A value that crosses to another device: its own staging memory there, rewritten on each execution. */
typedef struct mf_staged {
    mf_id node;
    int32_t device; /* where it is read */
    mf_loc loc;
    mf_loc extra;
} mf_staged;

typedef struct mf_plan {
    int32_t n_nodes, n_staged;
    mf_loc *value;     /* [n_nodes] on the node's own device */
    mf_loc *extra;     /* [n_nodes] the device's companion memory of the value */
    mf_id *alias_of;   /* [n_nodes] source whose buffer the node writes over, or -1 */
    mf_id *last_use;   /* [n_nodes] last reader in build order (through views); n_nodes when never freed */
    mf_staged *staged; /* [n_staged] */
    mf_loc scratch[MF_MAX_DEVICES];
    size_t arena_bytes[MF_MAX_DEVICES]; /* what the arenas must hold */
} mf_plan;

/* One layer's cache: two never-freed regions on the device that first used the layer. */
typedef struct mf_kv_pair {
    int32_t device; /* -1: not yet */
    mf_attr_kv geometry;
    void *k, *v;
    size_t bytes; /* of each */
} mf_kv_pair;

typedef struct mf_alloc {
    mf_device *const *devices;
    int32_t n_devices, n_layer;
    struct {
        void *buf;
        size_t size;
        uint64_t
            generation; /* grows when the arena moves; programs compiled against the old one are discarded */
    } arena[MF_MAX_DEVICES];
    size_t used[MF_MAX_DEVICES]; /* bytes of arena and regions */
    mf_kv_pair *layers;          /* [n_layer] */
} mf_alloc;

/* devices is kept by reference. */
minfer_status mf_alloc_init(mf_alloc *a, mf_device *const *devices, int32_t n_devices, int32_t n_layer,
                            minfer_error *err);
void mf_alloc_free(mf_alloc *a);

/* Lays out a validated, assigned, fused graph: liveness in build order, in-place aliases, staging, cache
 * regions. Refuses what exceeds a device's budget, with the numbers in MiB; then nothing has changed. */
minfer_status mf_alloc_plan(mf_alloc *a, const mf_graph *g, mf_plan *plan, minfer_error *err);
void mf_plan_free(mf_plan *plan);

/* The layout alone, without budgets and regions (graph/plan.c); used by mf_alloc_plan and by tests. */
minfer_status mf_plan_make(const mf_alloc *a, const mf_graph *g, mf_plan *plan, minfer_error *err);

/* Makes the arenas large enough for plan. Nothing may be pending on a device whose arena moves. */
minfer_status mf_alloc_commit(mf_alloc *a, const mf_plan *plan, minfer_error *err);

/* The only way to a layer's cache regions; NULL while no graph has used the layer. */
const mf_kv_pair *mf_alloc_kv_pair(const mf_alloc *a, int32_t layer);

/* Copies the cache's cells [from, from + n) to [to, to + n) in every layer; they may overlap. */
minfer_status mf_alloc_kv_move(const mf_alloc *a, int32_t from, int32_t to, int32_t n, minfer_error *err);

/* Rows of the cache: cells [cell, cell + n) of one head in one layer's keys or values. */
typedef struct mf_kv_rows {
    int32_t layer, head, cell, n;
    bool is_v;
} mf_kv_rows;

/* Bytes of one row; every layer that a graph has used has the same. */
size_t mf_alloc_kv_row_bytes(const mf_kv_pair *p);

/* Copies rows of a used layer to host memory and back, n * mf_alloc_kv_row_bytes. */
minfer_status mf_alloc_kv_read(const mf_alloc *a, const mf_kv_rows *r, void *dst, minfer_error *err);
minfer_status mf_alloc_kv_write(const mf_alloc *a, const mf_kv_rows *r, const void *src, minfer_error *err);

/* Index in plan->staged of node's copy on device, or -1. */
int32_t mf_plan_staged(const mf_plan *plan, mf_id node, int32_t device);

/* What a device sees of a graph when it compiles and runs it. */
struct mf_exec {
    const mf_graph *graph;
    const mf_alloc *alloc;
    const mf_plan *plan;
};

/* Where device reads (or, for its own nodes, writes) node's value; buf is NULL when there is none. */
mf_mem mf_exec_value(const mf_exec *x, mf_id node, int32_t device);
mf_mem mf_exec_extra(const mf_exec *x, mf_id node, int32_t device);
mf_mem mf_exec_scratch(const mf_exec *x, int32_t device);

/* Size class of n elements: 256; powers of two up to 4096; then multiples of 4096. */
size_t mf_alloc_class(size_t elements);

#endif
