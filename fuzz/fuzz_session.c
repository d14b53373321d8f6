/* Session files: any bytes are verified, with the checksum they would need put under them; what is accepted
 * is loaded into a cache as the header describes it, and written again, which must give the same bytes. */
#include "base/bytes.h"
#include "base/mem.h"
#include "kv/session_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_LAYERS = 8, MAX_CTX = 64, MAX_ROW = 1 << 10 };

/* ---- a device that is plain memory ---- */

static minfer_status dev_write(mf_device *d, mf_mem dst, const void *src, size_t n, minfer_error *err)
{
    (void)d;
    (void)err;
    memcpy((uint8_t *)dst.buf + dst.offset, src, n);
    return MINFER_OK;
}

static minfer_status dev_read(mf_device *d, mf_mem src, void *dst, size_t n, minfer_error *err)
{
    (void)d;
    (void)err;
    memcpy(dst, (const uint8_t *)src.buf + src.offset, n);
    return MINFER_OK;
}

static const mf_device_ops ops = {.write = dev_write, .read = dev_read};

typedef struct {
    mf_device device;
    mf_device *devices[1];
    mf_kv_pair layers[MAX_LAYERS];
    mf_alloc alloc;
    mf_session_cache cache;
} rig;

static void rig_free(rig *r)
{
    for (int i = 0; i < MAX_LAYERS; i++) {
        free(r->layers[i].k);
        free(r->layers[i].v);
    }
}

/* A cache as v's header describes it, of one head, all of one backend. */
static bool rig_make(rig *r, const mf_session_view *v)
{
    mf_type format = v->flags == 1 ? MF_TYPE_Q8_0 : v->flags == 2 ? MF_TYPE_F16 : MF_TYPE_F32;
    *r = (rig){.device = {.ops = &ops, .name = "fuzz", .id = (int32_t)v->backend}};
    r->devices[0] = &r->device;
    r->alloc = (mf_alloc){
        .devices = r->devices, .n_devices = 1, .n_layer = (int32_t)v->n_layer, .layers = r->layers};
    r->cache = (mf_session_cache){&r->alloc, v->model, 1000, 100000};
    for (uint32_t i = 0; i < v->n_layer; i++) {
        mf_kv_pair *p = &r->layers[i];
        p->bytes = (size_t)v->n_ctx * v->row_bytes;
        p->geometry = (mf_attr_kv){
            .n_kv = 1, .head_dim = (int32_t)v->n_kv_embd, .n_ctx = (int32_t)v->n_ctx, .format = format};
        p->k = malloc(p->bytes);
        p->v = malloc(p->bytes);
        if (!p->k || !p->v) return false;
    }
    return true;
}

/* The last cells of the cache, as two runs in reverse. */
static mf_kv_seq cells_for(const mf_session_view *v)
{
    int32_t n = (int32_t)v->n, ctx = (int32_t)v->n_ctx, half = n / 2;
    mf_kv_seq q = {.n = n};
    if (half) q.spans[q.n_spans++] = (mf_kv_span){ctx - half, half};
    if (n - half) q.spans[q.n_spans++] = (mf_kv_span){ctx - n, n - half};
    return q;
}

/* Writes into memory: nothing reaches a file while it fits the buffer. */
static void write_again(const rig *r, const mf_session_state *s, const uint8_t *data, size_t size)
{
    minfer_error err;
    mf_savefile f = {.fd = -1, .dir = -1, .buf = mf_malloc(1 << 16)};
    if (!f.buf) return;
    if (mf_session_file_write(&f, &r->cache, s, &err) != MINFER_OK) abort();
    if (f.n != size || memcmp(f.buf, data, size) != 0) abort();
    mf_free(f.buf);
}

static void load_and_write(const mf_session_view *v, const uint8_t *data, size_t size)
{
    static rig r;
    static int32_t tokens[MAX_CTX], positions[MAX_CTX];
    minfer_error err = {0};
    if (v->n_layer > MAX_LAYERS || v->n_ctx > MAX_CTX || v->row_bytes > MAX_ROW || size > 1 << 16) return;
    if (rig_make(&r, v) && mf_session_file_match(v, &r.cache, "fuzz", &err) == MINFER_OK) {
        mf_kv_seq q = cells_for(v);
        mf_session_state s = {&q, tokens, positions, (const char *)v->host, v->n_host};
        if (mf_session_file_load(v, &r.cache, &q, &err) != MINFER_OK) abort();
        if (mf_session_file_tokens(v, &r.cache, "fuzz", tokens, positions, &err) == MINFER_OK)
            write_again(&r, &s, data, size);
    } else if (!err.message[0]) {
        abort();
    }
    rig_free(&r);
}

static bool verify(const uint8_t *data, size_t size)
{
    mf_session_view v;
    minfer_error err = {0};
    if (mf_session_file_parse(data, size, "fuzz", &v, &err) != MINFER_OK) {
        if (!err.message[0]) abort();
        return false;
    }
    load_and_write(&v, data, size);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (verify(data, size) || size < 8) return 0;
    uint8_t *sealed = mf_malloc(size);
    if (!sealed) return 0;
    memcpy(sealed, data, size);
    uint64_t sum = mf_session_checksum(sealed, size - 8);
    memcpy(sealed + size - 8, &sum, sizeof sum);
    verify(sealed, size);
    mf_free(sealed);
    return 0;
}
