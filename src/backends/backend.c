/* Selection of backends by name and priority. */
#include "backends/backend.h"

#include <string.h>

mf_type mf_caps_key(const mf_node *n)
{
    const mf_weight *w[8];
    const mf_attr_kv *kv = mf_node_kv(n);
    if (n->op == MF_OP_RMS_NORM || n->op == MF_OP_QK_NORM || n->op == MF_OP_ROPE) return n->dtype;
    if (mf_node_weights(n, w) > 0) return w[0]->type;
    return kv ? kv->format : n->dtype;
}

bool mf_caps_has(const mf_caps *c, const mf_node *n)
{
    const mf_weight *w[8];
    const mf_attr_kv *kv = mf_node_kv(n);
    if (!(c->types[n->op] >> mf_caps_key(n) & 1)) return false;
    /* further weights of one node must be readable too, and so must its cache */
    int32_t k = mf_node_weights(n, w);
    for (int32_t i = 1; i < k; i++)
        if (w[i]->dims[1] > 1 && !(c->types[n->op] >> w[i]->type & 1)) return false;
    if (kv && k > 0 && !(c->types[MF_OP_KVCACHE_STORE] >> kv->format & 1)) return false;
    return n->op != MF_OP_ATTN || n->attr.attn.window == MF_WINDOW_CAUSAL || c->explicit_windows;
}

static bool name_is(const char *name, const char *word, size_t n)
{
    return strlen(name) == n && memcmp(name, word, n) == 0;
}

static const mf_backend *find(const mf_backend *table, int32_t n_table, const char *word, size_t n)
{
    for (int32_t i = 0; i < n_table; i++)
        if (name_is(table[i].name, word, n)) return &table[i];
    return NULL;
}

static minfer_status refuse_unknown(const mf_backend *table, int32_t n_table, const char *word, size_t n,
                                    minfer_error *err)
{
    mf_buf names = {0};
    for (int32_t i = 0; i < n_table; i++) mf_buf_printf(&names, "%s%s", i ? ", " : "", table[i].name);
    mf_fail(err, MINFER_ERR_ARG, "backend '%.*s' is unknown; there are %s", (int)(n > 40 ? 40 : n), word,
            names.data ? names.data : "");
    mf_buf_free(&names);
    return MINFER_ERR_ARG;
}

/* Marks the named backend, or says which of the three refusals it meets. */
static minfer_status want(const mf_backend *table, int32_t n_table, const char *word, size_t n, bool *use,
                          minfer_error *err)
{
    minfer_error why = {0};
    const mf_backend *b = find(table, n_table, word, n);
    if (!b) return refuse_unknown(table, n_table, word, n, err);
    if (!b->caps) return mf_fail(err, MINFER_ERR_UNSUPPORTED, "backend '%s' is not compiled in", b->name);
    if (b->usable(&why) != MINFER_OK)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "backend '%s' is not usable here: %s", b->name,
                       why.message);
    use[b - table] = true;
    return MINFER_OK;
}

static minfer_status mark(const mf_backend *table, int32_t n_table, const char *list, bool *use,
                          minfer_error *err)
{
    for (int32_t i = 0; i < n_table; i++) {
        bool always = table[i].id == MF_BACKEND_CPU;
        use[i] = always || (!list && table[i].caps && table[i].usable(NULL) == MINFER_OK);
    }
    for (const char *p = list; p;) {
        size_t n = strcspn(p, ",");
        MF_TRY(want(table, n_table, p, n, use, err));
        p = p[n] ? p + n + 1 : NULL;
    }
    return MINFER_OK;
}

minfer_status mf_backend_select_from(const mf_backend *table, int32_t n_table, const char *list,
                                     const mf_backend **out, int32_t *n, minfer_error *err)
{
    bool use[MF_MAX_DEVICES] = {0};
    *n = 0;
    if (n_table > MF_MAX_DEVICES)
        return mf_fail(err, MINFER_ERR_LIMIT, "%d backends, at most %d", n_table, MF_MAX_DEVICES);
    MF_TRY(mark(table, n_table, list, use, err));
    for (int32_t i = 0; i < n_table; i++) {
        if (!use[i]) continue;
        int32_t k = (*n)++;
        for (; k > 0 && out[k - 1]->priority < table[i].priority; k--) out[k] = out[k - 1];
        out[k] = &table[i];
    }
    return MINFER_OK;
}

minfer_status mf_backend_select(const char *list, const mf_backend *out[MF_BACKEND_COUNT], int32_t *n,
                                minfer_error *err)
{
    return mf_backend_select_from(mf_backend_table, MF_BACKEND_COUNT, list, out, n, err);
}
