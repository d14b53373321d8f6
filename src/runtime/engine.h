/* The engine: a model on devices, with its graph cache and cache of keys and values. */
#ifndef MF_RUNTIME_ENGINE_H
#define MF_RUNTIME_ENGINE_H

#include "graph/cache.h"
#include "kv/cells.h"
#include "runtime/model.h"
#include "runtime/times.h"

/* The rows of one forward pass, for at most n_batch of them. */
typedef struct mf_rows {
    int32_t *ids, *positions, *cells;
    int32_t *tail;   /* rows whose logits are wanted, ascending */
    int32_t *window; /* 8 per row: attn_span or kv_map */
} mf_rows;

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
    mf_kv_cells kv;
    mf_rows rows;
};

/* One forward pass over the first n of e->rows; n_out rows come out, as logits or, with states, as the final
 * norm leaves them. Reads nothing back. */
typedef struct mf_pass {
    int32_t n, n_out;
    mf_window window;
    bool states;
} mf_pass;
minfer_status mf_engine_forward(minfer_engine *e, const mf_pass *pass, mf_cached_graph **g,
                                minfer_error *err);

/* A session: one timeline of tokens, whose keys and values lie in the cells of seq. */
struct minfer_session {
    minfer_engine *e;
    int32_t *tokens;    /* [n_ctx] */
    int32_t *positions; /* [n_ctx] ascending; token i's is i while nothing has been removed */
    mf_kv_seq seq;
};

/* The position of the next token. */
int32_t mf_session_next(const minfer_session *s);

/* The parameters of a graph: one rule for runtime, export and trace. */
mf_graph_params mf_engine_params(const minfer_engine *e, int32_t n_tokens, int32_t n_out, mf_window window);

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
