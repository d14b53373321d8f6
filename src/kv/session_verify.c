/* Session files: what is checked before a byte of one is used. */
#include "kv/session_format.h"

#include "backends/backend.h"
#include "base/bytes.h"

/* ---- the bytes on their own ---- */

/* Bytes not looked at yet. */
typedef struct {
    const uint8_t *p;
    size_t left;
    const char *name;
    minfer_error *err;
} reader;

static minfer_status take(reader *r, size_t n, const char *what, const uint8_t **out)
{
    *out = r->p;
    if (n > r->left)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: cut short: %zu bytes where %zu of %s are to be",
                       r->name, r->left, n, what);
    r->p += n;
    r->left -= n;
    return MINFER_OK;
}

static minfer_status take_u32(reader *r, const char *what, uint32_t *out)
{
    const uint8_t *p;
    MF_TRY(take(r, sizeof *out, what, &p));
    *out = mf_load_u32(p);
    return MINFER_OK;
}

/* n times size bytes. */
static minfer_status take_many(reader *r, size_t n, size_t size, const char *what, const uint8_t **out)
{
    size_t bytes;
    if (!mf_mul_ok(n, size, &bytes))
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %zu times %zu bytes of %s", r->name, n, size, what);
    return take(r, bytes, what, out);
}

static minfer_status parse_header(reader *r, mf_session_view *v)
{
    const uint8_t *p;
    if (r->left < 8 || memcmp(r->p, MF_SESSION_MAGIC, 8) != 0)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: not a session file: does not begin with %s", r->name,
                       MF_SESSION_MAGIC);
    MF_TRY(take(r, MF_SESSION_HEADER, "header", &p));
    if (mf_load_u32(p + 8) != MF_SESSION_VERSION)
        return mf_fail(r->err, MINFER_ERR_UNSUPPORTED, "%s: session file of version %u, %d is read here",
                       r->name, mf_load_u32(p + 8), MF_SESSION_VERSION);
    *v = (mf_session_view){.flags = mf_load_u32(p + 12),
                           .backend = mf_load_u32(p + 16),
                           .n_layer = mf_load_u32(p + 20),
                           .n_ctx = mf_load_u32(p + 24),
                           .n_kv_embd = mf_load_u32(p + 28),
                           .row_bytes = mf_load_u32(p + 32),
                           .model = mf_load_u64(p + 36),
                           .n = mf_load_u32(p + 44)};
    return MINFER_OK;
}

static size_t layer_bytes(
    const mf_session_view *v) /* fits: two times 2^32 * 2^32 would not, see check_sizes */
{
    return 4 + 2 * (size_t)v->n * v->row_bytes;
}

static minfer_status check_sizes(const reader *r, const mf_session_view *v)
{
    size_t bytes;
    if (v->n > v->n_ctx)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %u tokens in a context of %u", r->name, v->n,
                       v->n_ctx);
    if (v->n_layer == 0 || v->n_ctx == 0 || v->n_ctx > INT32_MAX)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %u layers, a context of %u", r->name, v->n_layer,
                       v->n_ctx);
    if (!mf_mul_ok(v->n, v->row_bytes, &bytes) || bytes > SIZE_MAX / 4)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %u rows of %u bytes", r->name, v->n, v->row_bytes);
    return MINFER_OK;
}

static minfer_status parse_sections(reader *r, mf_session_view *v)
{
    MF_TRY(check_sizes(r, v));
    MF_TRY(take_many(r, v->n_layer, layer_bytes(v), "keys and values", &v->layers));
    MF_TRY(take_u32(r, "run table", &v->n_runs));
    MF_TRY(take_many(r, v->n_runs, 8, "run table", &v->runs));
    MF_TRY(take_many(r, v->n, 4, "tokens", &v->tokens));
    MF_TRY(take_u32(r, "the host's part", &v->n_host));
    return take(r, v->n_host, "the host's part", &v->host);
}

static minfer_status check_sum(reader *r, const uint8_t *data, size_t size)
{
    const uint8_t *p;
    MF_TRY(take(r, 8, "checksum", &p));
    if (r->left) return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: %zu bytes follow the end", r->name, r->left);
    uint64_t want = mf_load_u64(p), have = mf_session_checksum(data, size - 8);
    if (want == have) return MINFER_OK;
    return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: damaged: checksum %016llx, its bytes have %016llx",
                   r->name, (unsigned long long)want, (unsigned long long)have);
}

static minfer_status check_format(const reader *r, const mf_session_view *v)
{
    uint64_t e = v->n_kv_embd;
    if (v->flags > MF_SESSION_F16)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: flags 0x%x say no cache format", r->name, v->flags);
    uint64_t row = v->flags == MF_SESSION_Q8_0 ? e / 32 * 34 : v->flags == MF_SESSION_F16 ? 2 * e : 4 * e;
    if (v->row_bytes != row || (v->flags == MF_SESSION_Q8_0 && e % 32) || e == 0)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: rows of %u bytes for %u values", r->name, v->row_bytes,
                       v->n_kv_embd);
    if (mf_load_u32(v->layers + (v->n_layer - 1) * layer_bytes(v)) != v->backend)
        return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: the last layer is not of backend %u", r->name,
                       v->backend);
    return MINFER_OK;
}

/* Runs are not empty, ascend, do not touch, and have all tokens. */
static minfer_status check_runs(const reader *r, const mf_session_view *v)
{
    uint64_t n = 0, end = 0;
    for (uint32_t i = 0; i < v->n_runs; i++) {
        uint64_t first = mf_load_u32(v->runs + 8 * (size_t)i), len = mf_load_u32(v->runs + 8 * (size_t)i + 4);
        if (len == 0 || (i > 0 && first <= end) || first + len > INT32_MAX)
            return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: run %u: %llu tokens from position %llu", r->name,
                           i, (unsigned long long)len, (unsigned long long)first);
        end = first + len;
        n += len;
    }
    if (n == v->n) return MINFER_OK;
    return mf_fail(r->err, MINFER_ERR_FORMAT, "%s: runs of %llu tokens, %u are there", r->name,
                   (unsigned long long)n, v->n);
}

minfer_status mf_session_file_parse(const uint8_t *data, size_t size, const char *name, mf_session_view *v,
                                    minfer_error *err)
{
    reader r = {data, size, name, err};
    MF_TRY(parse_header(&r, v));
    MF_TRY(parse_sections(&r, v));
    MF_TRY(check_sum(&r, data, size));
    MF_TRY(check_format(&r, v));
    return check_runs(&r, v);
}

/* ---- against a cache ---- */

static const char *format_name(uint32_t flags)
{
    return flags == MF_SESSION_Q8_0 ? "q8_0" : flags == MF_SESSION_F16 ? "f16" : "f32";
}

static minfer_status differs(const char *name, const char *what, uint32_t file, uint32_t here,
                             minfer_error *err)
{
    if (file == here) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_ARG, "%s: saved with %s %u, here it is %u", name, what, file, here);
}

static minfer_status match_backends(const mf_session_view *v, const mf_alloc *a, const char *name,
                                    minfer_error *err)
{
    for (int32_t l = 0; l < a->n_layer; l++) {
        const mf_device *d = a->devices[a->layers[l].device];
        uint32_t id = mf_load_u32(v->layers + (size_t)l * layer_bytes(v));
        if (id == (uint32_t)d->id) continue;
        return mf_fail(err, MINFER_ERR_ARG, "%s: layer %d was computed by backend %u (%s), here %s does that",
                       name, l, id, id < MF_BACKEND_COUNT ? mf_backend_table[id].name : "unknown", d->name);
    }
    return MINFER_OK;
}

minfer_status mf_session_file_match(const mf_session_view *v, const mf_session_cache *c, const char *name,
                                    minfer_error *err)
{
    mf_session_view here;
    mf_session_cache_describe(c, &here);
    if (v->model != here.model)
        return mf_fail(err, MINFER_ERR_ARG, "%s: saved with another model (%016llx, this one is %016llx)",
                       name, (unsigned long long)v->model, (unsigned long long)here.model);
    MF_TRY(differs(name, "a number of layers of", v->n_layer, here.n_layer, err));
    MF_TRY(differs(name, "a context of", v->n_ctx, here.n_ctx, err));
    MF_TRY(differs(name, "a key and value width of", v->n_kv_embd, here.n_kv_embd, err));
    if (v->flags != here.flags)
        return mf_fail(err, MINFER_ERR_ARG, "%s: saved with cache type %s, here it is %s", name,
                       format_name(v->flags), format_name(here.flags));
    MF_TRY(differs(name, "rows of bytes", v->row_bytes, here.row_bytes, err));
    return match_backends(v, c->cache, name, err);
}

minfer_status mf_session_file_tokens(const mf_session_view *v, const mf_session_cache *c, const char *name,
                                     int32_t *tokens, int32_t *positions, minfer_error *err)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < v->n_runs; r++) {
        uint32_t first = mf_load_u32(v->runs + 8 * (size_t)r), len = mf_load_u32(v->runs + 8 * (size_t)r + 4);
        for (uint32_t i = 0; i < len && n < v->n; i++) positions[n++] = (int32_t)(first + i);
    }
    if (v->n) memcpy(tokens, v->tokens, (size_t)v->n * sizeof *tokens);
    for (uint32_t i = 0; i < v->n; i++) {
        if (tokens[i] < 0 || tokens[i] >= c->n_vocab)
            return mf_fail(err, MINFER_ERR_FORMAT, "%s: token %d at place %u is not in 0..%d", name,
                           tokens[i], i, c->n_vocab - 1);
        if (positions[i] < 0 || positions[i] >= c->n_positions)
            return mf_fail(err, MINFER_ERR_FORMAT, "%s: position %d at place %u is not in 0..%d", name,
                           positions[i], i, c->n_positions - 1);
    }
    return MINFER_OK;
}
