/* Metadata entries as text. */
#include "runtime/model.h"

#include "base/bytes.h"

#include <string.h>

static bool scalar(const mf_gguf_kv *kv, mf_gguf_type type, uint64_t i, mf_buf *out)
{
    switch (type) {
    case MF_GGUF_F32: return mf_buf_printf(out, "%.9g", (double)mf_load_f32(kv->data + 4 * i));
    case MF_GGUF_F64: {
        double v;
        memcpy(&v, kv->data + 8 * i, sizeof v);
        return mf_buf_printf(out, "%.17g", v);
    }
    case MF_GGUF_BOOL: return mf_buf_str(out, kv->data[i] ? "true" : "false");
    case MF_GGUF_U64: return mf_buf_printf(out, "%llu", (unsigned long long)mf_load_u64(kv->data + 8 * i));
    case MF_GGUF_STRING: return mf_buf_append(out, kv->strs[i].s, kv->strs[i].n);
    default: return mf_buf_printf(out, "%lld", (long long)mf_gguf_array_i64(kv, i));
    }
}

enum { SHOWN = 8 }; /* elements of an array that are written out */

static bool array(const mf_gguf_kv *kv, mf_buf *out)
{
    bool text = kv->elem == MF_GGUF_STRING;
    bool ok = mf_buf_printf(out, "[%llu %s]", (unsigned long long)kv->count, mf_gguf_type_name(kv->elem));
    for (uint64_t i = 0; i < kv->count && i < SHOWN && ok; i++)
        ok = mf_buf_str(out, i ? ", " : " ") && (!text || mf_buf_char(out, '"')) &&
             scalar(kv, kv->elem, i, out) && (!text || mf_buf_char(out, '"'));
    return ok && (kv->count <= SHOWN || mf_buf_str(out, ", ..."));
}

minfer_status minfer_model_metadata(const minfer_model *m, size_t i, char **key, char **value,
                                    minfer_error *err)
{
    *key = *value = NULL;
    if (i >= mf_gguf_n_kv(m->gguf))
        return mf_fail(err, MINFER_ERR_ARG, "metadata entry %zu of %zu", i, mf_gguf_n_kv(m->gguf));
    const mf_gguf_kv *kv = mf_gguf_kv_at(m->gguf, i);
    mf_buf out = {0};
    bool ok = mf_buf_append(&out, "", 0) &&
              (kv->type == MF_GGUF_ARRAY ? array(kv, &out) : scalar(kv, kv->type, 0, &out));
    char *k = ok ? mf_strndup(kv->key.s, kv->key.n) : NULL;
    if (!k) {
        mf_buf_free(&out);
        return MF_NOMEM(err);
    }
    *key = k;
    *value = out.data;
    return MINFER_OK;
}
