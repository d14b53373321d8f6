/* Random graphs: chains and diamonds of elementwise ops, norms, products, shapes and attention over values of
 * a few widths and two numbers of tokens, so that buffers are reused in every way. */
#ifndef MF_TESTS_OPS_RANDOM_GRAPH_H
#define MF_TESTS_OPS_RANDOM_GRAPH_H

#include "graph/cache.h"
#include "support/support.h"

enum { RG_MAX_WEIGHTS = 160, RG_LAYERS = 3, RG_MAX_TOKENS = 40 };

/* What a seed decides, with the weights its graph names: made when first named, registered by rg_register. */
typedef struct random_graph {
    uint64_t seed;
    mf_graph_params params;
    mf_attr_kv kv;
    struct {
        char name[24];
        mf_weight w;
        void *data;
        size_t bytes;
    } weights[RG_MAX_WEIGHTS];
    int n_weights;
    int32_t ids[RG_MAX_TOKENS], positions[RG_MAX_TOKENS], cells[RG_MAX_TOKENS], tail[RG_MAX_TOKENS];
} random_graph;

void rg_init(random_graph *r, uint64_t seed);
void rg_free(random_graph *r);

/* An mf_build_fn over a random_graph. */
minfer_status rg_build(void *model, mf_builder *b);
minfer_status rg_register(const random_graph *r, mf_device *d, minfer_error *err);
mf_inputs rg_inputs(const random_graph *r);

/* What the cache holds before a run. */
void rg_fill_cache(const random_graph *r, void *kv, size_t bytes);

#endif
