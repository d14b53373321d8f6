/* Hyper-parameters: the keys all architectures share, and the limits they must keep. */
#include "models/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_LAYERS = 1024, MAX_WIDTH = 1 << 20, MAX_HEADS = 1024, MAX_HEAD_DIM = 256, MAX_CTX = 1 << 28 };

static minfer_status full_key(const mf_gguf *g, const char *key, char out[128], minfer_error *err)
{
    mf_str arch;
    MF_TRY(mf_gguf_get_str(g, "general.architecture", &arch, NULL, err));
    snprintf(out, 128, "%.*s.%s", (int)(arch.n > 40 ? 40 : arch.n), arch.s, key);
    return MINFER_OK;
}

minfer_status mf_hparam_i32(const mf_gguf *g, const char *key, int32_t lo, int32_t hi, int32_t *out,
                            bool *found, minfer_error *err)
{
    char full[128];
    uint32_t v = (uint32_t)*out;
    bool there = true;
    MF_TRY(full_key(g, key, full, err));
    MF_TRY(mf_gguf_get_u32(g, full, &v, found ? &there : NULL, err));
    if (found) *found = there;
    if (!there) return MINFER_OK;
    if (v > INT32_MAX || (int32_t)v < lo || (int32_t)v > hi)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: %s is %u, must be in %d..%d", mf_gguf_path(g), full, v,
                       lo, hi);
    *out = (int32_t)v;
    return MINFER_OK;
}

static minfer_status hparam_f32(const mf_gguf *g, const char *key, float lo, float hi, float *out,
                                bool *found, minfer_error *err)
{
    char full[128];
    float v = *out;
    bool there = true;
    MF_TRY(full_key(g, key, full, err));
    MF_TRY(mf_gguf_get_f32(g, full, &v, found ? &there : NULL, err));
    if (found) *found = there;
    if (!there) return MINFER_OK;
    if (!(v >= lo && v <= hi))
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: %s is %g, must be in %g..%g", mf_gguf_path(g), full,
                       (double)v, (double)lo, (double)hi);
    *out = v;
    return MINFER_OK;
}

/* Linear position scaling ("linear" with a factor); other kinds would give wrong results and are refused by
 * name. */
static minfer_status rope_scaling(const mf_gguf *g, mf_hparams *hp, minfer_error *err)
{
    char full[128];
    mf_str type = {"none", 4};
    float factor = 1;
    bool found, old;
    MF_TRY(full_key(g, "rope.scaling.type", full, err));
    MF_TRY(mf_gguf_get_str(g, full, &type, &found, err));
    bool linear = type.n == 6 && memcmp(type.s, "linear", 6) == 0,
         none = type.n == 4 && memcmp(type.s, "none", 4) == 0;
    if (!linear && !none)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: %s '%.*s' is not supported (none, linear)",
                       mf_gguf_path(g), full, (int)(type.n > 40 ? 40 : type.n), type.s);
    MF_TRY(hparam_f32(g, "rope.scale_linear", 1e-3f, 1e6f, &factor, &old, err));
    MF_TRY(hparam_f32(g, "rope.scaling.factor", 1e-3f, 1e6f, &factor, &found, err));
    if (linear || old) hp->rope.freq_scale = 1.f / factor;
    return MINFER_OK;
}

static minfer_status heads(const mf_gguf *g, mf_hparams *hp, minfer_error *err)
{
    bool found;
    int32_t value_length;
    MF_TRY(mf_hparam_i32(g, "attention.head_count", 1, MAX_HEADS, &hp->n_head, NULL, err));
    hp->n_kv = hp->n_head;
    MF_TRY(mf_hparam_i32(g, "attention.head_count_kv", 1, MAX_HEADS, &hp->n_kv, &found, err));
    if (hp->n_head % hp->n_kv)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: %d query heads cannot share %d key heads",
                       mf_gguf_path(g), hp->n_head, hp->n_kv);
    hp->head_dim = hp->n_embd / hp->n_head;
    MF_TRY(mf_hparam_i32(g, "attention.key_length", 2, MAX_HEAD_DIM, &hp->head_dim, &found, err));
    if (!found && (hp->n_embd % hp->n_head || hp->head_dim > MAX_HEAD_DIM || hp->head_dim < 2))
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "%s: embedding length %d over %d heads gives no head size (2..%d)", mf_gguf_path(g),
                       hp->n_embd, hp->n_head, MAX_HEAD_DIM);
    value_length = hp->head_dim;
    MF_TRY(mf_hparam_i32(g, "attention.value_length", 1, MAX_HEAD_DIM, &value_length, &found, err));
    if (value_length != hp->head_dim)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: key length %d and value length %d differ",
                       mf_gguf_path(g), hp->head_dim, value_length);
    if (hp->head_dim % 2)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: head size %d is odd", mf_gguf_path(g), hp->head_dim);
    return MINFER_OK;
}

static minfer_status rope(const mf_gguf *g, mf_hparams *hp, minfer_error *err)
{
    bool found;
    hp->rope = (mf_attr_rope){
        .head_dim = hp->head_dim, .n_rot = hp->head_dim, .freq_base = 10000.f, .freq_scale = 1.f};
    MF_TRY(mf_hparam_i32(g, "rope.dimension_count", 2, hp->head_dim, &hp->rope.n_rot, &found, err));
    if (hp->rope.n_rot % 2)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: rope.dimension_count %d is odd", mf_gguf_path(g),
                       hp->rope.n_rot);
    MF_TRY(hparam_f32(g, "rope.freq_base", 1.f, 1e12f, &hp->rope.freq_base, &found, err));
    return rope_scaling(g, hp, err);
}

/* Keys that change the computation in ways nothing here does. */
static minfer_status refuse_strange(const mf_gguf *g, const mf_hparams *hp, minfer_error *err)
{
    int32_t experts = 0, window = 0;
    bool found;
    MF_TRY(mf_hparam_i32(g, "expert_count", 0, INT32_MAX, &experts, &found, err));
    if (experts > 0)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: mixture of %d experts is not supported",
                       mf_gguf_path(g), experts);
    MF_TRY(mf_hparam_i32(g, "attention.sliding_window", 0, INT32_MAX, &window, &found, err));
    if (window > 0 && window < hp->n_ctx)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: a sliding window of %d tokens is not supported",
                       mf_gguf_path(g), window);
    return MINFER_OK;
}

minfer_status mf_hparams_read(const mf_gguf *g, mf_hparams *hp, minfer_error *err)
{
    *hp = (mf_hparams){0};
    MF_TRY(mf_hparam_i32(g, "block_count", 1, MAX_LAYERS, &hp->n_layer, NULL, err));
    MF_TRY(mf_hparam_i32(g, "embedding_length", 1, MAX_WIDTH, &hp->n_embd, NULL, err));
    MF_TRY(mf_hparam_i32(g, "feed_forward_length", 1, MAX_WIDTH, &hp->n_ff, NULL, err));
    MF_TRY(mf_hparam_i32(g, "context_length", 1, MAX_CTX, &hp->n_ctx, NULL, err));
    MF_TRY(hparam_f32(g, "attention.layer_norm_rms_epsilon", 0.f, 1.f, &hp->eps, NULL, err));
    MF_TRY(heads(g, hp, err));
    MF_TRY(rope(g, hp, err));
    return refuse_strange(g, hp, err);
}

void mf_model_peek(const mf_gguf *g, mf_hparams *hp)
{
    bool found;
    const mf_gguf_tensor *embd = mf_gguf_find_tensor(g, "token_embd.weight");
    *hp = (mf_hparams){0};
    mf_hparam_i32(g, "block_count", 0, INT32_MAX, &hp->n_layer, &found, NULL);
    mf_hparam_i32(g, "embedding_length", 0, INT32_MAX, &hp->n_embd, &found, NULL);
    mf_hparam_i32(g, "feed_forward_length", 0, INT32_MAX, &hp->n_ff, &found, NULL);
    mf_hparam_i32(g, "context_length", 0, INT32_MAX, &hp->n_ctx, &found, NULL);
    mf_hparam_i32(g, "attention.head_count", 0, INT32_MAX, &hp->n_head, &found, NULL);
    hp->n_kv = hp->n_head;
    mf_hparam_i32(g, "attention.head_count_kv", 0, INT32_MAX, &hp->n_kv, &found, NULL);
    hp->head_dim = hp->n_head > 0 ? hp->n_embd / hp->n_head : 0;
    mf_hparam_i32(g, "attention.key_length", 0, INT32_MAX, &hp->head_dim, &found, NULL);
    if (embd && embd->dims[1] <= INT32_MAX) hp->n_vocab = (int32_t)embd->dims[1];
}
