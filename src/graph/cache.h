/* The reuse cache: built graphs by their parameters, with everything that belongs to them. It owns graph,
 * plan, schedule, parameters, and the allocator that outlives them. A reused graph skips building,
 * assignment, fusion and allocation, and only refills its inputs. */
#ifndef MF_GRAPH_CACHE_H
#define MF_GRAPH_CACHE_H

#include "graph/assign.h"
#include "graph/builder.h"
#include "graph/sched.h"

enum { MF_GRAPH_CACHE_SIZE = 8 };

typedef struct mf_cached_graph {
    mf_graph_params params;
    mf_graph graph;
    mf_plan plan;
    mf_sched sched;
    mf_exec exec;
    mf_node *built;     /* with check_reuse: the nodes as the builder made them */
    int32_t n_fused;    /* peephole fusions */
    bool traced;        /* for the runtime: its splits have been told */
    uint64_t last_used; /* 0: empty slot */
} mf_cached_graph;

/* Appends the whole forward pass for b->p; called with inputs declared. Returns mf_build_finish's status. */
typedef minfer_status mf_build_fn(void *model, mf_builder *b);

typedef struct mf_graph_cache {
    mf_alloc alloc;
    mf_assign assign;
    mf_build_fn *build;
    void *model;
    int32_t n_layer;
    bool fuse;        /* run the peephole pass */
    bool check_reuse; /* build again on every hit and compare node by node (debug builds) */
    uint64_t next_uid, clock;
    uint64_t n_built, n_reused;
    mf_cached_graph slots[MF_GRAPH_CACHE_SIZE];
} mf_graph_cache;

/* assign->devices, build and model are kept by reference. fuse is on; check_reuse is on in debug builds. */
minfer_status mf_graph_cache_init(mf_graph_cache *c, const mf_assign *assign, int32_t n_layer,
                                  mf_build_fn *build, void *model, minfer_error *err);
void mf_graph_cache_free(mf_graph_cache *c);

/* The graph for p: one of the 8 most recently used, or a new one. It stays valid until 8 other graphs have
 * been asked for. */
minfer_status mf_graph_cache_get(mf_graph_cache *c, const mf_graph_params *p, mf_cached_graph **out,
                                 minfer_error *err);

/* Runs it, and reads its output (mf_node_bytes of the output node; NULL when the graph has none or it is not
 * wanted). */
minfer_status mf_graph_cache_run(mf_graph_cache *c, mf_cached_graph *g, const mf_inputs *in, float *output,
                                 minfer_error *err);

/* Reads rows [first, first + n) of what the last run of g put out; g has an output. */
minfer_status mf_graph_cache_read(mf_graph_cache *c, const mf_cached_graph *g, size_t first, size_t n,
                                  float *rows, minfer_error *err);

#endif
