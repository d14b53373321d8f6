/* minfer-graph v1. Attributes become `meta` (an object) and `detail` (one short line), by kind of attribute.
 */
#include "graph/export.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>

static json_t *weight_json(const mf_weight *w)
{
    return json_pack("{s:s, s:s, s:[I, I]}", "name", w->name, "dtype", mf_type_name(w->type), "shape",
                     (json_int_t)w->dims[0], (json_int_t)w->dims[1]);
}

static void set(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}

/* Floats that came from a file may be anything; JSON has no NaN or infinity. */
static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static void meta_kv(json_t *o, const mf_attr_kv *kv)
{
    set(o, "cache_layer", json_integer(kv->layer));
    set(o, "n_kv_head", json_integer(kv->n_kv));
    set(o, "head_dim", json_integer(kv->head_dim));
    set(o, "n_ctx", json_integer(kv->n_ctx));
    set(o, "cache_type", json_string(mf_type_name(kv->format)));
}

static void meta_rope(json_t *o, const mf_attr_rope *r)
{
    set(o, "n_head", json_integer(r->n_head));
    set(o, "head_dim", json_integer(r->head_dim));
    set(o, "n_rot", json_integer(r->n_rot));
    set(o, "interleaved", json_boolean(r->interleaved));
    set(o, "freq_base", number(r->freq_base));
    set(o, "freq_scale", number(r->freq_scale));
}

static void meta_norm(json_t *o, const mf_node *n)
{
    set(o, "eps", number(n->attr.norm.eps));
    if (n->op != MF_OP_QK_NORM) return;
    set(o, "n_head", json_integer(n->attr.norm.n_head));
    set(o, "head_dim", json_integer(n->attr.norm.head_dim));
}

static void meta_attn(json_t *o, const mf_attr_attn *a)
{
    static const char *const kinds[] = {"flash", "gqa", "mha"}, *const windows[] = {"causal", "span", "map"};
    meta_kv(o, &a->kv);
    set(o, "variant", json_string(kinds[a->kind]));
    set(o, "window", json_string(windows[a->window]));
    set(o, "explicit_span", json_boolean(a->window != MF_WINDOW_CAUSAL));
    set(o, "n_head", json_integer(a->n_head));
    set(o, "scale", number(a->scale));
}

static void meta_attr(json_t *o, const mf_node *n)
{
    switch (mf_op_table[n->op].attr) {
    case MF_ATTR_INPUT: set(o, "input", json_string(mf_input_names[n->attr.input])); break;
    case MF_ATTR_NORM: meta_norm(o, n); break;
    case MF_ATTR_SCALE: set(o, "factor", number(n->attr.scale)); break;
    case MF_ATTR_ROPE: meta_rope(o, &n->attr.rope); break;
    case MF_ATTR_ATTN: meta_attn(o, &n->attr.attn); break;
    case MF_ATTR_KV:
        meta_kv(o, &n->attr.kv);
        if (n->op == MF_OP_KVCACHE_LOAD) set(o, "which", json_string(n->attr.kv.is_v ? "v" : "k"));
        break;
    case MF_ATTR_VIEW: set(o, "offset", json_integer(n->attr.view_offset)); break;
    case MF_ATTR_PERMUTE:
        set(o, "axes",
            json_pack("[i, i, i, i]", n->attr.permute[0], n->attr.permute[1], n->attr.permute[2],
                      n->attr.permute[3]));
        break;
    case MF_ATTR_QKV:
        meta_kv(o, &n->attr.qkv.kv);
        meta_rope(o, &n->attr.qkv.rope);
        if (n->op == MF_OP_FUSED_QKV_NORM) set(o, "eps", number(n->attr.qkv.eps));
        break;
    case MF_ATTR_NONE:
    case MF_ATTR_WEIGHT:
    case MF_ATTR_RESHAPE:
    case MF_ATTR_FFN: break;
    }
}

static json_t *meta(const mf_node *n)
{
    const mf_weight *w[8];
    int32_t k = mf_node_weights(n, w);
    json_t *o = json_object();
    set(o, "layer", n->layer < 0 ? json_null() : json_integer(n->layer));
    if (k) {
        json_t *list = json_array();
        for (int32_t i = 0; i < k; i++) json_array_append_new(list, weight_json(w[i]));
        set(o, "weights", list);
    }
    meta_attr(o, n);
    return o;
}

/* "a, b x c, ...": the attributes a reader looks for first. */
static void detail(const mf_node *n, char *out, size_t size)
{
    const mf_weight *w[8];
    const mf_attr_kv *kv = mf_node_kv(n);
    int32_t k = mf_node_weights(n, w);
    if (n->op == MF_OP_ATTN)
        snprintf(out, size, "%d heads on %d, %s cache of %d", n->attr.attn.n_head, kv->n_kv,
                 mf_type_name(kv->format), kv->n_ctx);
    else if (kv && k == 0)
        snprintf(out, size, "layer %d, %s cache of %d", kv->layer, mf_type_name(kv->format), kv->n_ctx);
    else if (k)
        snprintf(out, size, "%s %s [%lld, %lld]%s", w[0]->name, mf_type_name(w[0]->type),
                 (long long)w[0]->dims[0], (long long)w[0]->dims[1], k > 1 ? ", ..." : "");
    else if (n->op == MF_OP_ROPE)
        snprintf(out, size, "%s, base %g", n->attr.rope.interleaved ? "interleaved" : "halves",
                 (double)n->attr.rope.freq_base);
    else if (n->op == MF_OP_SCALE)
        snprintf(out, size, "times %g", (double)n->attr.scale);
    else
        snprintf(out, size, "%s", n->op == MF_OP_INPUT ? mf_input_names[n->attr.input] : "");
}

static json_t *node_json(const mf_export *e, const mf_node *n)
{
    char text[256];
    json_t *src = json_array(), *shape = json_array();
    detail(n, text, sizeof text);
    for (int32_t k = 0; k < n->n_src; k++) json_array_append_new(src, json_integer(n->src[k]));
    for (int i = 0; i < 4; i++) json_array_append_new(shape, json_integer(n->shape[i]));
    json_t *backend = e->devices && n->device >= 0 ? json_string(e->devices[n->device]->name) : json_null();
    return json_pack("{s:i, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:o}", "id", n->id, "name", n->name, "op",
                     mf_op_table[n->op].name, "detail", text, "shape", shape, "dtype", mf_type_name(n->dtype),
                     "backend", backend, "src", src, "meta", meta(n));
}

static json_t *graph_json(const mf_export *e)
{
    json_t *inputs = json_array(), *outputs = json_array(), *nodes = json_array();
    for (mf_id i = 0; i < e->graph->n_nodes; i++) {
        const mf_node *n = &e->graph->nodes[i];
        if (n->dead) continue;
        if (n->op == MF_OP_INPUT) json_array_append_new(inputs, json_integer(i));
        if (n->output) json_array_append_new(outputs, json_integer(i));
        json_array_append_new(nodes, node_json(e, n));
    }
    return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o}", "format", "minfer-graph", "version", 1, "model",
                     e->model, "kind", e->kind == MF_GRAPH_DECODE ? "decode" : "prefill", "inputs", inputs,
                     "outputs", outputs, "nodes", nodes);
}

minfer_status mf_export_json(const mf_export *e, mf_buf *out, minfer_error *err)
{
    json_t *root = graph_json(e);
    if (!root)
        return mf_fail(err, MINFER_ERR_NOMEM, "graph export: out of memory, or a name that is not UTF-8");
    bool ok = mf_json_write(root, JSON_COMPACT | JSON_ENSURE_ASCII, out);
    json_decref(root);
    return ok ? MINFER_OK : MF_NOMEM(err);
}
