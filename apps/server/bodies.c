/* Bodies of replies that are made in one go. */
#include "server/json_out.h"
#include "server/reply.h"

#include <string.h>

#define NOMEM \
    "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\",\"param\":null,\"code\":null}}"
const char srv_nomem_body[] = NOMEM;
const char srv_nomem_frames[] = "data: " NOMEM "\n\ndata: [DONE]\n\n";

bool srv_error_body(const srv_error *e, mf_buf *out)
{
    return mf_buf_str(out, "{\"error\":{\"message\":") && srv_put_string(out, e->message) &&
           mf_buf_str(out, ",\"type\":") && srv_put_string(out, e->type) && mf_buf_str(out, ",\"param\":") &&
           srv_put_string(out, e->param[0] ? e->param : NULL) && mf_buf_str(out, ",\"code\":") &&
           srv_put_string(out, e->code) && mf_buf_str(out, "}}");
}

bool srv_stream_error(const srv_error *e, mf_buf *out)
{
    return mf_buf_str(out, "data: ") && srv_error_body(e, out) && mf_buf_str(out, "\n\ndata: [DONE]\n\n");
}

bool srv_model_body(const char *name, int64_t created, mf_buf *out)
{
    return mf_buf_str(out, "{\"id\":") && srv_put_string(out, name) &&
           mf_buf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"minfer\"}",
                         (long long)created);
}

bool srv_models_body(const char *const *names, size_t n, int64_t created, mf_buf *out)
{
    bool ok = mf_buf_str(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n && ok; i++)
        ok = (!i || mf_buf_char(out, ',')) && srv_model_body(names[i], created, out);
    return ok && mf_buf_str(out, "]}");
}

/* ---- embeddings */

static bool put_base64(mf_buf *out, const void *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i += 3) {
        size_t k = n - i < 3 ? n - i : 3;
        unsigned v = (unsigned)p[i] << 16 | (k > 1 ? (unsigned)p[i + 1] << 8 : 0) | (k > 2 ? p[i + 2] : 0);
        char group[4] = {digits[v >> 18], digits[v >> 12 & 63], k > 1 ? digits[v >> 6 & 63] : '=',
                         k > 2 ? digits[v & 63] : '='};
        if (!mf_buf_append(out, group, sizeof group)) return false;
    }
    return true;
}

static bool put_vector(const srv_request *r, const float *v, size_t n, mf_buf *out)
{
    /* Hosts are little-endian, as the format is. */
    if (r->base64) return mf_buf_char(out, '"') && put_base64(out, v, n * sizeof *v) && mf_buf_char(out, '"');
    bool ok = mf_buf_char(out, '[');
    for (size_t i = 0; i < n && ok; i++) ok = (!i || mf_buf_char(out, ',')) && srv_put_float(out, v[i]);
    return ok && mf_buf_char(out, ']');
}

bool srv_embeddings_body(const srv_request *r, const char *model, const float *vectors, size_t n,
                         size_t n_embd, size_t n_tokens, mf_buf *out)
{
    bool ok = mf_buf_str(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < n && ok; i++)
        ok = mf_buf_printf(out, "%s{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", i ? "," : "",
                           i) &&
             put_vector(r, vectors + i * n_embd, n_embd, out) && mf_buf_char(out, '}');
    return ok && mf_buf_str(out, "],\"model\":") && srv_put_string(out, model) &&
           mf_buf_printf(out, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}", n_tokens, n_tokens);
}

/* ---- tokens and text */

static bool put_piece(const minfer_model *m, int32_t id, mf_buf *out)
{
    char *bytes;
    size_t n;
    minfer_error err;
    if (minfer_token_bytes(m, id, true, &bytes, &n, &err) != MINFER_OK) return false;
    bool ok = mf_buf_printf(out, "{\"id\":%d,\"piece\":", id) && srv_put_text(out, bytes, n) &&
              mf_buf_char(out, '}');
    minfer_free(bytes);
    return ok;
}

bool srv_tokens_body(const srv_request *r, const minfer_model *m, const int32_t *ids, size_t n, mf_buf *out)
{
    bool ok = mf_buf_str(out, "{\"tokens\":[");
    for (size_t i = 0; i < n && ok; i++)
        ok = (!i || mf_buf_char(out, ',')) &&
             (r->with_pieces ? put_piece(m, ids[i], out) : mf_buf_printf(out, "%d", ids[i]));
    return ok && mf_buf_str(out, "]}");
}

bool srv_text_body(const char *text, size_t n, mf_buf *out)
{
    return mf_buf_str(out, "{\"content\":") && srv_put_text(out, text ? text : "", n) &&
           mf_buf_char(out, '}');
}
