/* Metadata entries as text and as JSON. */
#include "runtime/model.h"

#include "base/bytes.h"
#include "base/json.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The shortest number that reads back as the same float or double. */
static void number_text(double v, bool narrow, char out[40])
{
    int digits = narrow ? 6 : 15, most = narrow ? 9 : 17;
    do snprintf(out, 40, "%.*g", digits, v);
    while (digits++ < most && (narrow ? strtof(out, NULL) != (float)v : strtod(out, NULL) != v));
}

static bool scalar(const mf_gguf_kv *kv, mf_gguf_type type, uint64_t i, mf_buf *out)
{
    switch (type) {
    case MF_GGUF_F32:
    case MF_GGUF_F64: {
        char text[40];
        number_text(mf_gguf_array_f64(kv, i), type == MF_GGUF_F32, text);
        return mf_buf_str(out, text);
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

/* Ill-formed UTF-8 becomes U+FFFD, because JSON cannot hold it. */
static json_t *json_text(mf_str s)
{
    mf_buf b = {0};
    bool ok = mf_buf_append(&b, "", 0);
    for (size_t i = 0, n; ok && i < s.n; i += n) {
        uint32_t cp;
        char bytes[4];
        n = mf_utf8_decode(s.s + i, s.n - i, &cp);
        ok = mf_buf_append(&b, bytes, mf_utf8_encode(cp == MF_UTF8_BAD ? 0xFFFD : cp, bytes));
    }
    json_t *j = ok ? json_stringn(b.data, b.len) : NULL;
    mf_buf_free(&b);
    return j;
}

/* JSON has no word for what is no number. */
static json_t *json_float(double v, bool narrow)
{
    char text[40];
    number_text(v, narrow, text);
    return isfinite(v) ? json_real(strtod(text, NULL)) : json_null();
}

static json_t *json_scalar(const mf_gguf_kv *kv, mf_gguf_type type, uint64_t i)
{
    switch (type) {
    case MF_GGUF_F32:
    case MF_GGUF_F64: return json_float(mf_gguf_array_f64(kv, i), type == MF_GGUF_F32);
    case MF_GGUF_BOOL: return json_boolean(kv->data[i]);
    case MF_GGUF_STRING: return json_text(kv->strs[i]);
    case MF_GGUF_U64: {
        uint64_t v = mf_load_u64(kv->data + 8 * i);
        return v > INT64_MAX ? json_real((double)v) : json_integer((json_int_t)v);
    }
    default: return json_integer(mf_gguf_array_i64(kv, i));
    }
}

static json_t *json_array_of(const mf_gguf_kv *kv)
{
    json_t *a = json_array();
    for (uint64_t i = 0; a && i < kv->count; i++)
        if (json_array_append_new(a, json_scalar(kv, kv->elem, i)) != 0) {
            json_decref(a);
            a = NULL;
        }
    return a;
}

minfer_status minfer_model_metadata_json(const minfer_model *m, size_t i, char **key, char **value,
                                         minfer_error *err)
{
    *key = *value = NULL;
    if (i >= mf_gguf_n_kv(m->gguf))
        return mf_fail(err, MINFER_ERR_ARG, "metadata entry %zu of %zu", i, mf_gguf_n_kv(m->gguf));
    const mf_gguf_kv *kv = mf_gguf_kv_at(m->gguf, i);
    json_t *j = kv->type == MF_GGUF_ARRAY ? json_array_of(kv) : json_scalar(kv, kv->type, 0);
    *value = mf_json_text(j, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(j);
    *key = *value ? mf_strndup(kv->key.s, kv->key.n) : NULL;
    if (*key) return MINFER_OK;
    mf_free(*value);
    *value = NULL;
    return MF_NOMEM(err);
}
