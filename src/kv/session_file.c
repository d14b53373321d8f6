/* Session files: writing, and loading what was verified. */
#include "kv/session_format.h"

#include "base/bytes.h"

/* ---- checksum: every step is a bijection of h, so one changed word always changes the result ---- */

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

mf_session_sum mf_session_sum_new(void)
{
    return (mf_session_sum){.h = 0xcbf29ce484222325u};
}

void mf_session_sum_add(mf_session_sum *s, const void *data, size_t n)
{
    const uint8_t *p = data;
    uint64_t h = s->h;
    for (; n > 0 && (s->n_part || n < 8); n--) {
        s->part |= (uint64_t)*p++ << 8 * s->n_part++;
        if (s->n_part < 8) continue;
        h = mix(h, s->part);
        s->part = 0;
        s->n_part = 0;
    }
    for (; n >= 8; n -= 8, p += 8) h = mix(h, mf_load_u64(p));
    s->h = h;
    if (n > 0) mf_session_sum_add(s, p, n);
}

uint64_t mf_session_sum_end(mf_session_sum *s)
{
    return s->n_part ? mix(s->h, s->part) : s->h;
}

uint64_t mf_session_checksum(const void *data, size_t n)
{
    mf_session_sum s = mf_session_sum_new();
    mf_session_sum_add(&s, data, n);
    return mf_session_sum_end(&s);
}

/* ---- writing ---- */

typedef struct {
    mf_savefile *f;
    mf_session_sum sum;
    minfer_error *err;
} writer;

static minfer_status put(writer *w, const void *data, size_t n)
{
    mf_session_sum_add(&w->sum, data, n);
    return mf_savefile_write(w->f, data, n, w->err);
}

static minfer_status put_u32(writer *w, uint32_t v)
{
    return put(w, &v, sizeof v);
}

static uint32_t flags_of(mf_type format)
{
    return format == MF_TYPE_Q8_0 ? MF_SESSION_Q8_0 : format == MF_TYPE_F16 ? MF_SESSION_F16 : 0;
}

void mf_session_cache_describe(const mf_session_cache *c, mf_session_view *v)
{
    const mf_alloc *a = c->cache;
    const mf_kv_pair *last = &a->layers[a->n_layer - 1];
    const mf_attr_kv *g = &last->geometry;
    *v = (mf_session_view){.flags = flags_of(g->format),
                           .backend = (uint32_t)a->devices[last->device]->id,
                           .n_layer = (uint32_t)a->n_layer,
                           .n_ctx = (uint32_t)g->n_ctx,
                           .n_kv_embd = (uint32_t)(g->n_kv * g->head_dim),
                           .row_bytes = (uint32_t)g->n_kv * (uint32_t)mf_alloc_kv_row_bytes(last),
                           .model = c->model};
}

static minfer_status put_header(writer *w, const mf_session_cache *c, int32_t n)
{
    mf_session_view v;
    mf_session_cache_describe(c, &v);
    const uint32_t words[] = {MF_SESSION_VERSION, v.flags,    v.backend, v.n_layer, v.n_ctx,
                              v.n_kv_embd,        v.row_bytes};
    MF_TRY(put(w, MF_SESSION_MAGIC, 8));
    MF_TRY(put(w, words, sizeof words));
    MF_TRY(put(w, &c->model, sizeof c->model));
    return put_u32(w, (uint32_t)n);
}

/* One head's rows of a sequence; buf has room for all of them. */
static minfer_status put_head(writer *w, const mf_session_cache *c, const mf_kv_seq *q, mf_kv_rows r,
                              void *buf)
{
    size_t row = mf_alloc_kv_row_bytes(&c->cache->layers[r.layer]);
    for (int32_t s = 0; s < q->n_spans; s++) {
        r.cell = q->spans[s].cell;
        r.n = q->spans[s].len;
        MF_TRY(mf_alloc_kv_read(c->cache, &r, buf, w->err));
        MF_TRY(put(w, buf, (size_t)r.n * row));
    }
    return MINFER_OK;
}

static minfer_status put_layer(writer *w, const mf_session_cache *c, const mf_kv_seq *q, int32_t layer,
                               void *buf)
{
    const mf_kv_pair *p = &c->cache->layers[layer];
    MF_TRY(put_u32(w, (uint32_t)c->cache->devices[p->device]->id));
    for (int is_v = 0; is_v < 2; is_v++)
        for (int32_t h = 0; h < p->geometry.n_kv; h++)
            MF_TRY(put_head(w, c, q, (mf_kv_rows){.layer = layer, .head = h, .is_v = is_v}, buf));
    return MINFER_OK;
}

static minfer_status put_layers(writer *w, const mf_session_cache *c, const mf_kv_seq *q)
{
    void *buf = mf_malloc((size_t)q->n * mf_alloc_kv_row_bytes(&c->cache->layers[0]));
    minfer_status st = buf ? MINFER_OK : MF_NOMEM(w->err);
    for (int32_t l = 0; l < c->cache->n_layer && st == MINFER_OK; l++) st = put_layer(w, c, q, l, buf);
    mf_free(buf);
    return st;
}

/* The run of consecutive positions that begins at i. */
static int32_t run_at(const mf_session_state *s, int32_t i)
{
    int32_t n = 1;
    while (i + n < s->seq->n && s->positions[i + n] == s->positions[i] + n) n++;
    return n;
}

static minfer_status put_runs(writer *w, const mf_session_state *s)
{
    uint32_t n_runs = 0;
    for (int32_t i = 0; i < s->seq->n; i += run_at(s, i)) n_runs++;
    MF_TRY(put_u32(w, n_runs));
    for (int32_t i = 0, n; i < s->seq->n; i += n) {
        n = run_at(s, i);
        MF_TRY(put_u32(w, (uint32_t)s->positions[i]));
        MF_TRY(put_u32(w, (uint32_t)n));
    }
    return MINFER_OK;
}

minfer_status mf_session_file_write(mf_savefile *f, const mf_session_cache *c, const mf_session_state *s,
                                    minfer_error *err)
{
    writer w = {f, mf_session_sum_new(), err};
    if (s->n_host > UINT32_MAX)
        return mf_fail(err, MINFER_ERR_LIMIT, "%s: the host's part has %zu bytes, %u are possible", f->path,
                       s->n_host, UINT32_MAX);
    MF_TRY(put_header(&w, c, s->seq->n));
    MF_TRY(put_layers(&w, c, s->seq));
    MF_TRY(put_runs(&w, s));
    MF_TRY(put(&w, s->tokens, (size_t)s->seq->n * sizeof *s->tokens));
    MF_TRY(put_u32(&w, (uint32_t)s->n_host));
    MF_TRY(put(&w, s->host, s->n_host));
    uint64_t sum = mf_session_sum_end(&w.sum);
    return mf_savefile_write(f, &sum, sizeof sum, err);
}

/* ---- loading ---- */

static minfer_status load_head(const mf_session_cache *c, const mf_kv_seq *q, mf_kv_rows r,
                               const uint8_t **from, minfer_error *err)
{
    size_t row = mf_alloc_kv_row_bytes(&c->cache->layers[r.layer]);
    for (int32_t s = 0; s < q->n_spans; s++) {
        r.cell = q->spans[s].cell;
        r.n = q->spans[s].len;
        MF_TRY(mf_alloc_kv_write(c->cache, &r, *from, err));
        *from += (size_t)r.n * row;
    }
    return MINFER_OK;
}

minfer_status mf_session_file_load(const mf_session_view *v, const mf_session_cache *c, const mf_kv_seq *q,
                                   minfer_error *err)
{
    const uint8_t *from = v->layers;
    for (int32_t l = 0; l < c->cache->n_layer; l++) {
        from += sizeof(uint32_t);
        for (int is_v = 0; is_v < 2; is_v++)
            for (int32_t h = 0; h < c->cache->layers[l].geometry.n_kv; h++)
                MF_TRY(load_head(c, q, (mf_kv_rows){.layer = l, .head = h, .is_v = is_v}, &from, err));
    }
    return MINFER_OK;
}
