/* GGUF reader: any bytes are parsed; of what is accepted, every key goes through the getters and one row of
 * every tensor through dequantization. */
#include "base/mem.h"
#include "base/strmap.h"
#include "gguf/gguf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ROW = 1 << 16 };

static volatile uint64_t sink;

/* Every byte is read, which a sanitizer watches. */
static void touch(const void *p, size_t n)
{
    sink = sink + mf_hash_bytes(p, n, 0);
}

static void get_all(const mf_gguf *g, const mf_gguf_kv *kv)
{
    uint32_t u;
    float f;
    bool b, found;
    mf_str s = {0};
    const mf_gguf_kv *a = NULL;
    minfer_error err;
    char *key = mf_strndup(kv->key.s, kv->key.n);
    if (!key) return;
    if (mf_gguf_find(g, key) != kv) abort();
    mf_gguf_get_u32(g, key, &u, &found, &err);
    mf_gguf_get_f32(g, key, &f, &found, &err);
    mf_gguf_get_bool(g, key, &b, NULL, &err);
    if (mf_gguf_get_str(g, key, &s, &found, &err) == MINFER_OK) touch(s.s, s.n);
    for (int t = 0; t <= MF_GGUF_TYPE_COUNT; t++) mf_gguf_get_array(g, key, (mf_gguf_type)t, &a, NULL, &err);
    mf_free(key);
}

static void read_values(const mf_gguf_kv *kv)
{
    touch(kv->data, kv->size);
    for (uint64_t i = 0; i < kv->count; i++) {
        if (kv->strs) touch(kv->strs[i].s, kv->strs[i].n);
        (void)mf_gguf_array_i64(kv, i);
        (void)mf_gguf_array_f32(kv, i);
    }
}

static void read_tensor(const mf_gguf *g, const mf_gguf_tensor *t, const uint8_t *data, size_t size)
{
    size_t bytes = 0;
    if (mf_gguf_find_tensor(g, t->cname) != t) abort();
    if (t->data < data || t->data + t->size > data + size) abort();
    if (!mf_type_tensor_bytes(t->type, t->dims, &bytes) || bytes != t->size) abort();
    if (!mf_type_get(t->type)->weight || t->dims[0] > MAX_ROW) return;
    float *row = mf_malloc((size_t)t->dims[0] * sizeof *row);
    if (!row) return;
    mf_dequantize_row(t->type, t->data, row, (size_t)t->dims[0]);
    mf_free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mf_gguf *g = NULL;
    minfer_error err = {0};
    if (mf_gguf_parse(data, size, "fuzz", &g, &err) != MINFER_OK) {
        if (g || !err.message[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < mf_gguf_n_kv(g); i++) {
        get_all(g, mf_gguf_kv_at(g, i));
        read_values(mf_gguf_kv_at(g, i));
    }
    for (size_t i = 0; i < mf_gguf_n_tensors(g); i++) read_tensor(g, mf_gguf_tensor_at(g, i), data, size);
    mf_gguf_free(g);
    return 0;
}
