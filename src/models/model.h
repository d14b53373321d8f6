/* A model: hyper-parameters and weights of one GGUF file, bound to an architecture that can build its graph.
 * Owns descriptions only; weight bytes stay in the file's mapping. */
#ifndef MF_MODELS_MODEL_H
#define MF_MODELS_MODEL_H

#include "gguf/gguf.h"
#include "graph/builder.h"
#include "graph/device.h"

typedef struct mf_hparams {
    int32_t n_layer, n_embd, n_head, n_kv, head_dim, n_ff, n_vocab;
    int32_t n_ctx; /* as trained */
    float eps;
    mf_attr_rope rope; /* n_head is set per use */
} mf_hparams;

/* Weights of one layer; NULL where the architecture or the file has none. Dimensions as [in, out]. */
typedef struct mf_layer {
    const mf_weight *attn_norm;         /* [n_embd] */
    const mf_weight *wq, *wk, *wv, *wo; /* [n_embd, n_head*d], [n_embd, n_kv*d] twice, [n_head*d, n_embd] */
    const mf_weight *bq, *bk, *bv;      /* biases */
    const mf_weight *q_norm, *k_norm;   /* [d], per head */
    const mf_weight *ffn_norm;          /* [n_embd] */
    const mf_weight *gate, *up, *down;  /* [n_embd, n_ff] twice, [n_ff, n_embd] */
} mf_layer;

typedef struct mf_arch mf_arch;

typedef struct mf_model {
    const mf_arch *arch;
    const mf_gguf *gguf;
    mf_hparams hp;
    mf_layer *layers;                                 /* [n_layer] */
    const mf_weight *tok_embd, *output_norm, *output; /* output is tok_embd where the file has none (tied) */
    mf_weight *weights;                               /* one per tensor of the file, in its order */
    size_t n_weights;
    mf_arena arena;
} mf_model;

/* Which sizes a tensor's dimensions have. */
typedef enum mf_dim {
    MF_DIM_ONE,
    MF_DIM_EMBD,
    MF_DIM_Q,
    MF_DIM_KV,
    MF_DIM_HEAD,
    MF_DIM_FF,
    MF_DIM_VOCAB,
    MF_DIM_ROT
} mf_dim;

/* One tensor of every layer ("blk.N." + name) and where its weight goes. */
typedef struct mf_tensor_rule {
    const char *name;
    size_t field; /* offset in mf_layer */
    mf_dim in, out;
    bool required;
} mf_tensor_rule;

typedef struct mf_tensor_rules {
    const mf_tensor_rule *rules;
    size_t n;
} mf_tensor_rules;

/* An architecture: what is special in its hyper-parameters, its tensors, its graph. Nothing else in the
 * program names it. */
struct mf_arch {
    const char *name;         /* general.architecture, exact and case-sensitive */
    bool interleaved;         /* RoPE pairs (2i, 2i+1); otherwise (i, i + n_rot/2) */
    bool rope_factors;        /* rope_freqs.weight may be there */
    mf_tensor_rules layer[2]; /* of every layer: those of its kind of decoder, and its own */
    minfer_status (*build)(const mf_model *m, mf_builder *b);
};

extern const mf_arch mf_arch_qwen2, mf_arch_qwen3, mf_arch_llama;
extern const mf_arch *const mf_arch_table[];
extern const size_t mf_arch_count;

/* Binds g, which must outlive the model. prefix is the namespace of its weight names ("" or "draft.").
 * Refuses by name: an unknown architecture, keys that are missing or out of range, tensors that are missing,
 * surplus, of a wrong shape or of a type no matmul reads. */
minfer_status mf_model_bind(const mf_gguf *g, const char *prefix, mf_model **out, minfer_error *err);
void mf_model_free(mf_model *m);

/* Registers every weight with the device. */
minfer_status mf_model_register(const mf_model *m, mf_device *d, minfer_error *err);

/* The forward pass of b->p; an mf_build_fn. */
minfer_status mf_model_build(void *model, mf_builder *b);

/* Hyper-parameters alone, as far as they can be read: for descriptions of files that cannot be run. */
void mf_model_peek(const mf_gguf *g, mf_hparams *hp);

/* Typed reading of "<arch>.<key>" within [lo, hi]; *found NULL: required. */
minfer_status mf_hparam_i32(const mf_gguf *g, const char *key, int32_t lo, int32_t hi, int32_t *out,
                            bool *found, minfer_error *err);

#endif
