/* Small graphs for the tests of src/graph: weights by hand, a toy layer, devices that only describe
 * themselves. */
#ifndef MF_TESTS_TOY_H
#define MF_TESTS_TOY_H

#include "graph/cache.h"
#include "support/support.h"

enum { TOY_EMBD = 64, TOY_HEADS = 4, TOY_KV = 2, TOY_DIM = 16, TOY_FF = 96, TOY_VOCAB = 40, TOY_CTX = 32 };

/* Weights of a two-layer toy decoder; all types are `type` but for the norms. */
typedef struct toy_model {
    mf_weight embd, out_norm, norm[2], ffn_norm[2], wq[2], wk[2], wv[2], wo[2], gate[2], up[2], down[2],
        bq[2];
    char names[32][32];
    int n_names;
} toy_model;

void toy_model_init(toy_model *m, mf_type type);

/* Seeded values for every weight of the model, registered with the device; memory is kept by the caller in
 * `store`. */
typedef struct toy_store {
    void *data[64];
    int n;
} toy_store;
void toy_register(const toy_model *m, toy_store *s, mf_device *d);
void toy_store_free(toy_store *s);

/* The whole forward pass; an mf_build_fn over a toy_model. */
minfer_status toy_build(void *model, mf_builder *b);

mf_graph_params toy_params(int32_t n_tokens, int32_t n_out);

/* Runs p on a cache with token i = (7 i + 3) mod vocabulary, positions and cells from `at`; logits is
 * [n_out][TOY_VOCAB]. */
void toy_run(mf_graph_cache *c, const mf_graph_params *p, int32_t at, float *logits);

/* A device that only says what it supports. */
typedef struct paper_device {
    mf_device base;
    uint32_t ops; /* bit per op */
} paper_device;
void paper_device_init(paper_device *d, const char *name, int32_t priority, uint32_t ops);

#endif
