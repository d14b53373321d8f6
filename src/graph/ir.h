/* The graph as data: nodes in build order, their attributes, and the graph that owns them. Knows no device
 * and executes nothing. */
#ifndef MF_GRAPH_IR_H
#define MF_GRAPH_IR_H

#include "base/mem.h"
#include "gguf/types.h"

typedef int32_t mf_id; /* index of a node in its graph; -1 = none */

typedef enum mf_op {
#define OP(id, name, min_src, max_src, attr, alias) MF_OP_##id,
#include "graph/ops.def"
#undef OP
    MF_OP_COUNT,
} mf_op;

/* Which member of mf_attr an op uses. */
typedef enum mf_attr_kind {
    MF_ATTR_NONE,
    MF_ATTR_INPUT,
    MF_ATTR_WEIGHT,
    MF_ATTR_NORM,
    MF_ATTR_SCALE,
    MF_ATTR_ROPE,
    MF_ATTR_ATTN,
    MF_ATTR_KV,
    MF_ATTR_VIEW,
    MF_ATTR_RESHAPE,
    MF_ATTR_PERMUTE,
    MF_ATTR_QKV,
    MF_ATTR_FFN,
} mf_attr_kind;

typedef struct mf_op_info {
    const char *name; /* lower-case snake, as exported */
    int32_t min_src, max_src;
    mf_attr_kind attr;
    bool alias; /* may write over its first source when it is the only reader */
} mf_op_info;

extern const mf_op_info mf_op_table[MF_OP_COUNT];

/* A weight by name and metadata: dims[0] = in (row length), dims[1] = out (rows). Its bytes are found by the
 * backend, by name. Owned by the model, which outlives its graphs. */
typedef struct mf_weight {
    const char *name; /* with the model's namespace prefix */
    mf_type type;
    int64_t dims[2]; /* dims[1] = 1 for a vector */
} mf_weight;

typedef enum mf_input {                     /* what the host fills before each run */
                        MF_INPUT_TOKEN_IDS, /* [nt] */
                        MF_INPUT_POSITIONS, /* [nt] index of the token in its sequence */
                        MF_INPUT_CELLS,     /* [nt] cache row the token's K and V are written to */
                        MF_INPUT_TAIL_IDS,  /* [n_out] which tokens' logits are wanted */
                        MF_INPUT_ATTN_SPAN, /* [2 nt] first cell and end cell of the window */
                        MF_INPUT_KV_MAP, /* [8 nt] four (first cell, length) spans in sequence order; unused
                                            ones have length 0 */
                        MF_INPUT_COUNT,
} mf_input;

extern const char *const mf_input_names[MF_INPUT_COUNT];

typedef enum mf_attn_kind { MF_ATTN_FLASH, MF_ATTN_GQA, MF_ATTN_MHA } mf_attn_kind;

typedef enum mf_window {
    MF_WINDOW_CAUSAL, /* cells 0..=position */
    MF_WINDOW_SPAN,   /* cells [low, high) of attn_span */
    MF_WINDOW_MAP,    /* the cells of kv_map, one span after the other */
} mf_window;

typedef struct mf_attr_weight {
    const mf_weight *w; /* NULL: both operands are sources */
} mf_attr_weight;

typedef struct mf_attr_norm {
    const mf_weight *w;
    float eps;
    int32_t n_head, head_dim; /* QK_NORM only */
} mf_attr_norm;

typedef struct mf_attr_rope {
    int32_t n_head, head_dim, n_rot; /* n_rot even, <= head_dim */
    bool interleaved;                /* pairs (2i, 2i+1); otherwise (i, i + n_rot/2) */
    float freq_base, freq_scale;     /* theta = position * freq_scale * base^(-2i/n_rot) / factor_i */
    const mf_weight *factors;        /* [n_rot/2] F32, or NULL */
} mf_attr_rope;

/* The geometry of one layer's cache: K and V regions of [n_kv][n_ctx] rows of head_dim values in `format`. */
typedef struct mf_attr_kv {
    int32_t layer, n_kv, head_dim, n_ctx;
    mf_type format;
    bool is_v; /* KVCACHE_LOAD: V rather than K */
} mf_attr_kv;

/* Sources: FLASH (q, store, positions[, window]); GQA and MHA (q, load K, load V, positions[, window]). Flash
 * reads the regions itself; the others read loaded values. MHA needs n_head == n_kv. All give the same bits
 * on one backend. */
typedef struct mf_attr_attn {
    mf_attr_kv kv;
    mf_attn_kind kind;
    mf_window window;
    int32_t n_head;
    float scale;
} mf_attr_attn;

typedef struct mf_attr_qkv {
    mf_attr_kv kv;
    mf_attr_rope rope; /* n_head is the query's */
    const mf_weight *wq, *wk, *wv;
    const mf_weight *bq, *bk, *bv; /* NULL: no bias */
    const mf_weight *nq, *nk;      /* FUSED_QKV_NORM: head norms */
    float eps;
} mf_attr_qkv;

typedef struct mf_attr_ffn {
    const mf_weight *gate, *up;
} mf_attr_ffn;

typedef union mf_attr {
    mf_input input;
    mf_attr_weight weight;
    mf_attr_norm norm;
    float scale;
    mf_attr_rope rope;
    mf_attr_attn attn;
    mf_attr_kv kv;
    int64_t view_offset; /* elements of the source, in memory order */
    int32_t permute[4];  /* output axis i is input axis permute[i] */
    mf_attr_qkv qkv;
    mf_attr_ffn ffn;
} mf_attr;

enum { MF_MAX_SRC = 5 };

typedef struct mf_node {
    mf_id id;
    const char *name; /* unique in the graph */
    mf_op op;
    mf_type dtype; /* F32, I32, or a cache format (KVCACHE_LOAD) */
    int32_t n_src;
    mf_id src[MF_MAX_SRC];
    int64_t shape[4]; /* shape[0] fastest; none is 0 */
    int32_t layer;    /* -1: before the first or after the last layer */
    int32_t device;   /* index into the device set; -1 until assigned */
    bool output;      /* read by the host after the run */
    bool dead;        /* left without readers by a fusion: no buffer, not executed */
    mf_attr attr;
} mf_node;

typedef struct mf_graph {
    mf_arena arena; /* names */
    mf_node *nodes;
    size_t cap;
    int32_t n_nodes;
    int32_t n_layer;
    uint64_t uid;                 /* from 1; never reused within a cache */
    mf_id inputs[MF_INPUT_COUNT]; /* -1 when absent */
    mf_id output;                 /* logits [n_vocab, n_out]; -1 when the graph only fills the cache */
} mf_graph;

void mf_graph_init(mf_graph *g);
void mf_graph_free(mf_graph *g);

static inline int64_t mf_node_elements(const mf_node *n)
{
    return n->shape[0] * n->shape[1] * n->shape[2] * n->shape[3];
}

/* Bytes of the node's value. */
size_t mf_node_bytes(const mf_node *n);

/* The node whose buffer id's value lies in: VIEW, RESHAPE follow their source, all others are their own. */
mf_id mf_graph_root(const mf_graph *g, mf_id id);

/* Equal op, attributes, shape, dtype, sources, layer: what the debug check of a reused graph compares.
 * Weights compare by name. On a difference, *where names the field. */
bool mf_node_equal(const mf_node *a, const mf_node *b, const char **where);

/* How many weights a node names (0..8) and the i-th of them. */
int32_t mf_node_weights(const mf_node *n, const mf_weight *out[8]);

/* The cache geometry a node works on, or NULL. */
const mf_attr_kv *mf_node_kv(const mf_node *n);

#endif
