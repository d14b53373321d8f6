/* Binding: every tensor of the file finds its place in the model, and every place its tensor. */
#include "models/hparams.h"

#include <stdio.h>
#include <string.h>

const mf_arch *const mf_arch_table[] = {&mf_arch_llama, &mf_arch_qwen2, &mf_arch_qwen3};
const size_t mf_arch_count = sizeof mf_arch_table / sizeof *mf_arch_table;

typedef struct {
    mf_model *m;
    const mf_gguf *g;
    bool *used; /* per tensor of the file */
    minfer_error *err;
} ctx;

static minfer_status find_arch(const mf_gguf *g, const mf_arch **out, minfer_error *err)
{
    mf_str name;
    MF_TRY(mf_gguf_get_str(g, "general.architecture", &name, NULL, err));
    for (size_t i = 0; i < mf_arch_count; i++) {
        *out = mf_arch_table[i];
        if (strlen((*out)->name) == name.n && memcmp((*out)->name, name.s, name.n) == 0) return MINFER_OK;
    }
    mf_buf known = {0};
    for (size_t i = 0; i < mf_arch_count; i++)
        mf_buf_printf(&known, "%s%s", i ? ", " : "", mf_arch_table[i]->name);
    mf_fail(err, MINFER_ERR_UNSUPPORTED, "%s: architecture '%.*s' is not supported (%s)", mf_gguf_path(g),
            (int)(name.n > 40 ? 40 : name.n), name.s, known.data ? known.data : "");
    mf_buf_free(&known);
    return MINFER_ERR_UNSUPPORTED;
}

static int64_t size_of(const mf_hparams *hp, mf_dim d)
{
    switch (d) {
    case MF_DIM_ONE: return 1;
    case MF_DIM_EMBD: return hp->n_embd;
    case MF_DIM_Q: return (int64_t)hp->n_head * hp->head_dim;
    case MF_DIM_KV: return (int64_t)hp->n_kv * hp->head_dim;
    case MF_DIM_HEAD: return hp->head_dim;
    case MF_DIM_FF: return hp->n_ff;
    case MF_DIM_VOCAB: return hp->n_vocab;
    case MF_DIM_ROT: return hp->rope.n_rot / 2;
    }
    return 0;
}

static minfer_status check_shape(const ctx *c, const mf_gguf_tensor *t, int64_t in, int64_t out)
{
    uint64_t rest = t->dims[2] * t->dims[3];
    if (t->dims[0] == (uint64_t)in && t->dims[1] == (uint64_t)out && rest == 1) return MINFER_OK;
    return mf_fail(
        c->err, MINFER_ERR_FORMAT, "%s: tensor %s is [%llu, %llu, %llu, %llu], must be [%lld, %lld]",
        mf_gguf_path(c->g), t->cname, (unsigned long long)t->dims[0], (unsigned long long)t->dims[1],
        (unsigned long long)t->dims[2], (unsigned long long)t->dims[3], (long long)in, (long long)out);
}

static minfer_status check_type(const ctx *c, const mf_gguf_tensor *t, bool vector)
{
    const mf_type_info *info = mf_type_get((uint32_t)t->type);
    if (vector ? t->type == MF_TYPE_F32 : info->weight) return MINFER_OK;
    return mf_fail(c->err, MINFER_ERR_UNSUPPORTED, "%s: tensor %s has type %s, %s", mf_gguf_path(c->g),
                   t->cname, info->name ? info->name : "?",
                   vector ? "must be F32" : "which no matmul here reads");
}

/* Binds one tensor; *out stays NULL when it is absent and not required. */
static minfer_status bind_tensor(ctx *c, const char *name, mf_dim in, mf_dim out_dim, bool required,
                                 const mf_weight **out)
{
    const mf_hparams *hp = &c->m->hp;
    const mf_gguf_tensor *t = mf_gguf_find_tensor(c->g, name);
    *out = NULL;
    if (!t && required)
        return mf_fail(c->err, MINFER_ERR_FORMAT, "%s: tensor %s is missing", mf_gguf_path(c->g), name);
    if (!t) return MINFER_OK;
    size_t i = (size_t)(t - mf_gguf_tensor_at(c->g, 0)); /* tensors are one array */
    MF_TRY(check_shape(c, t, size_of(hp, in), size_of(hp, out_dim)));
    MF_TRY(check_type(c, t, out_dim == MF_DIM_ONE));
    c->used[i] = true;
    *out = &c->m->weights[i];
    return MINFER_OK;
}

static minfer_status bind_rules(ctx *c, int32_t il, const mf_tensor_rules *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const mf_tensor_rule *r = &t->rules[i];
        char name[128];
        snprintf(name, sizeof name, "blk.%d.%s", il, r->name);
        const mf_weight **field = (const mf_weight **)(void *)((char *)&c->m->layers[il] + r->field);
        MF_TRY(bind_tensor(c, name, r->in, r->out, r->required, field));
    }
    return MINFER_OK;
}

static minfer_status bind_layers(ctx *c)
{
    for (int32_t il = 0; il < c->m->hp.n_layer; il++)
        for (int i = 0; i < 2; i++) MF_TRY(bind_rules(c, il, &c->m->arch->layer[i]));
    return MINFER_OK;
}

static minfer_status describe_weights(ctx *c, const char *prefix)
{
    mf_model *m = c->m;
    m->n_weights = mf_gguf_n_tensors(c->g);
    m->weights = mf_arena_array(&m->arena, m->n_weights ? m->n_weights : 1, sizeof *m->weights);
    if (!m->weights) return MF_NOMEM(c->err);
    for (size_t i = 0; i < m->n_weights; i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(c->g, i);
        size_t np = strlen(prefix);
        char *name = mf_arena_alloc(&m->arena, np + t->name.n + 1);
        if (!name) return MF_NOMEM(c->err);
        memcpy(name, prefix, np);
        memcpy(name + np, t->name.s, t->name.n);
        m->weights[i] = (mf_weight){name, t->type, {(int64_t)t->dims[0], (int64_t)t->dims[1]}};
    }
    return MINFER_OK;
}

static minfer_status bind_vocabulary(ctx *c)
{
    const mf_gguf_tensor *t = mf_gguf_find_tensor(c->g, "token_embd.weight");
    if (!t)
        return mf_fail(c->err, MINFER_ERR_FORMAT, "%s: tensor token_embd.weight is missing",
                       mf_gguf_path(c->g));
    if (t->dims[1] > INT32_MAX)
        return mf_fail(c->err, MINFER_ERR_FORMAT, "%s: tensor token_embd.weight has %llu rows",
                       mf_gguf_path(c->g), (unsigned long long)t->dims[1]);
    c->m->hp.n_vocab = (int32_t)t->dims[1];
    return MINFER_OK;
}

static minfer_status refuse_surplus(const ctx *c)
{
    for (size_t i = 0; i < c->m->n_weights; i++)
        if (!c->used[i])
            return mf_fail(c->err, MINFER_ERR_UNSUPPORTED, "%s: tensor %s has no place in architecture %s",
                           mf_gguf_path(c->g), mf_gguf_tensor_at(c->g, i)->cname, c->m->arch->name);
    return MINFER_OK;
}

static minfer_status bind_all(ctx *c, const char *prefix)
{
    mf_model *m = c->m;
    MF_TRY(find_arch(c->g, &m->arch, c->err));
    MF_TRY(mf_hparams_read(c->g, &m->hp, c->err));
    m->hp.rope.interleaved = m->arch->interleaved;
    MF_TRY(bind_vocabulary(c));
    MF_TRY(describe_weights(c, prefix));
    m->layers = mf_arena_array(&m->arena, (size_t)m->hp.n_layer, sizeof *m->layers);
    c->used = mf_calloc(m->n_weights, sizeof *c->used);
    if (!m->layers || !c->used) return MF_NOMEM(c->err);
    MF_TRY(bind_tensor(c, "token_embd.weight", MF_DIM_EMBD, MF_DIM_VOCAB, true, &m->tok_embd));
    MF_TRY(bind_tensor(c, "output_norm.weight", MF_DIM_EMBD, MF_DIM_ONE, true, &m->output_norm));
    MF_TRY(bind_tensor(c, "output.weight", MF_DIM_EMBD, MF_DIM_VOCAB, false, &m->output));
    if (!m->output) m->output = m->tok_embd;
    if (m->arch->rope_factors)
        MF_TRY(bind_tensor(c, "rope_freqs.weight", MF_DIM_ROT, MF_DIM_ONE, false, &m->hp.rope.factors));
    MF_TRY(bind_layers(c));
    return refuse_surplus(c);
}

minfer_status mf_model_bind(const mf_gguf *g, const char *prefix, mf_model **out, minfer_error *err)
{
    mf_model *m = mf_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return MF_NOMEM(err);
    m->gguf = g;
    ctx c = {.m = m, .g = g, .err = err};
    minfer_status st = bind_all(&c, prefix);
    mf_free(c.used);
    if (st != MINFER_OK) {
        mf_model_free(m);
        return st;
    }
    *out = m;
    return MINFER_OK;
}

void mf_model_free(mf_model *m)
{
    if (!m) return;
    mf_arena_free(&m->arena);
    mf_free(m);
}

minfer_status mf_model_register(const mf_model *m, mf_device *d, minfer_error *err)
{
    for (size_t i = 0; i < m->n_weights; i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(m->gguf, i);
        MF_TRY(d->ops->weight_register(d, &m->weights[i], t->data, t->size, err));
    }
    return MINFER_OK;
}

minfer_status mf_model_build(void *model, mf_builder *b)
{
    const mf_model *m = model;
    return m->arch->build(m, b);
}
