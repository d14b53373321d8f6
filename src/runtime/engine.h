/* The engine: a model on devices, with its graph cache and cache of keys and values. */
#ifndef MF_RUNTIME_ENGINE_H
#define MF_RUNTIME_ENGINE_H

#include "graph/cache.h"
#include "runtime/model.h"
#include "runtime/times.h"

struct minfer_engine {
    const minfer_model *model;
    mf_device *devices[MF_MAX_DEVICES]; /* by descending priority */
    int32_t n_devices;
    mf_graph_cache graphs;
    mf_graph_params base; /* what all graphs of this engine share */
    int32_t n_ctx, n_batch;
    void (*trace)(void *user, const char *text);
    void *trace_user;
    mf_times *times; /* NULL: not measured */
    char backends[64];
    char tier[16];
    int32_t n_threads;
    int32_t *iota;   /* [n_batch] 0, 1, 2, ...: tail ids */
    int32_t *cells;  /* [n_batch] */
    bool cache_busy; /* a session owns the cells */
};

/* One forward pass over n <= n_batch tokens: row i is token ids[i] at positions[i] of its sequence, written
 * to cells[i]. Logits of the last n_out tokens go to logits (n_out rows of n_vocab). */
typedef struct mf_batch {
    int32_t n, n_out;
    const int32_t *ids, *positions, *cells;
} mf_batch;
minfer_status mf_engine_forward(minfer_engine *e, const mf_batch *b, float *logits, minfer_error *err);

minfer_engine *mf_session_engine(const minfer_session *s);

/* The parameters of a graph: one rule for runtime, export and trace. */
mf_graph_params mf_engine_params(const minfer_engine *e, int32_t n_tokens, int32_t n_out);

/* Makes an engine from devices that are already open (tests mix in their own), by descending priority; takes
 * them over, also on failure. wish, when set, is mf_assign's. */
typedef struct mf_engine_devices {
    mf_device *devices[MF_MAX_DEVICES];
    int32_t n;
    int32_t (*wish)(void *user, const mf_graph *g, mf_id id);
    void *user;
} mf_engine_devices;
minfer_status mf_engine_create_on(const minfer_model *m, const minfer_engine_options *o,
                                  const mf_engine_devices *on, minfer_engine **out, minfer_error *err);

#endif
