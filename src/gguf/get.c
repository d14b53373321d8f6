/* Typed access to metadata: finding keys, checking types and ranges. Owns nothing. */
#include "gguf/internal.h"

#include "base/bytes.h"

const mf_gguf_kv *mf_gguf_part_find(const mf_gguf_part *p, const char *key)
{
    uint32_t i = mf_strmap_get(&p->kv_index, key, strlen(key));
    return i == MF_STRMAP_NONE ? NULL : &p->slots[i].kv;
}

const mf_gguf_kv *mf_gguf_find(const mf_gguf *g, const char *key)
{
    return mf_gguf_part_find(&g->parts[0], key);
}

static bool is_integer(mf_gguf_type t)
{
    return t <= MF_GGUF_I32 || t == MF_GGUF_U64 || t == MF_GGUF_I64;
}

static int64_t f64_to_i64(double x)
{
    if (x >= 0x1p63) return INT64_MAX;
    if (x <= -0x1p63) return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

int64_t mf_gguf_array_i64(const mf_gguf_kv *kv, uint64_t i)
{
    const uint8_t *p = kv->data;
    uint64_t u;
    switch (kv->elem) {
    case MF_GGUF_U8:
    case MF_GGUF_BOOL: return p[i];
    case MF_GGUF_I8: return (int8_t)p[i];
    case MF_GGUF_U16: return mf_load_u16(p + 2 * i);
    case MF_GGUF_I16: return (int16_t)mf_load_u16(p + 2 * i);
    case MF_GGUF_U32: return mf_load_u32(p + 4 * i);
    case MF_GGUF_I32: return (int32_t)mf_load_u32(p + 4 * i);
    case MF_GGUF_U64: u = mf_load_u64(p + 8 * i); return u > INT64_MAX ? INT64_MAX : (int64_t)u;
    case MF_GGUF_I64: return (int64_t)mf_load_u64(p + 8 * i);
    case MF_GGUF_F32:
    case MF_GGUF_F64: return f64_to_i64(mf_gguf_array_f64(kv, i));
    default: return 0;
    }
}

double mf_gguf_array_f64(const mf_gguf_kv *kv, uint64_t i)
{
    double d;
    switch (kv->elem) {
    case MF_GGUF_F32: return mf_load_f32(kv->data + 4 * i);
    case MF_GGUF_F64: memcpy(&d, kv->data + 8 * i, sizeof d); return d;
    case MF_GGUF_U64: return (double)mf_load_u64(kv->data + 8 * i);
    default: return (double)mf_gguf_array_i64(kv, i);
    }
}

float mf_gguf_array_f32(const mf_gguf_kv *kv, uint64_t i)
{
    return (float)mf_gguf_array_f64(kv, i);
}

/* Does a value of type t satisfy who asks for `wanted`? */
static bool satisfies(mf_gguf_type t, mf_gguf_type wanted)
{
    if (is_integer(wanted)) return is_integer(t);
    return t == wanted || (wanted == MF_GGUF_F32 && t == MF_GGUF_F64);
}

static const char *wanted_name(mf_gguf_type wanted)
{
    return is_integer(wanted) ? "an integer" : mf_gguf_type_name(wanted);
}

/* Finds a single value (or, if array, an array) of a type that satisfies `wanted`; NULL in *out when it is
 * absent and may be. */
static minfer_status find_typed(const mf_gguf_part *p, const char *key, bool array, mf_gguf_type wanted,
                                bool *found, const mf_gguf_kv **out, minfer_error *err)
{
    const mf_gguf_kv *kv = mf_gguf_part_find(p, key);
    const char *file = mf_gguf_shown_path(p->path);
    if (found) *found = kv != NULL;
    *out = kv;
    if (!kv && !found) return mf_fail(err, MINFER_ERR_FORMAT, "%s: key '%s' is missing", file, key);
    if (!kv) return MINFER_OK;
    if ((kv->type == MF_GGUF_ARRAY) == array && satisfies(kv->elem, wanted)) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "%s: key '%s' is of type %s%s, expected %s%s", file, key,
                   kv->type == MF_GGUF_ARRAY ? "array of " : "", mf_gguf_type_name(kv->elem),
                   array ? "array of " : "", wanted_name(wanted));
}

minfer_status mf_gguf_part_u32(const mf_gguf_part *p, const char *key, uint32_t *out, bool *found,
                               minfer_error *err)
{
    const mf_gguf_kv *kv;
    MF_TRY(find_typed(p, key, false, MF_GGUF_U32, found, &kv, err));
    if (!kv) return MINFER_OK;
    int64_t v = mf_gguf_array_i64(kv, 0);
    if (kv->type == MF_GGUF_U64 && mf_load_u64(kv->data) > UINT32_MAX)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: key '%s' is %llu, expected at most %u",
                       mf_gguf_shown_path(p->path), key, (unsigned long long)mf_load_u64(kv->data),
                       UINT32_MAX);
    if (v < 0 || v > UINT32_MAX)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: key '%s' is %lld, expected 0 to %u",
                       mf_gguf_shown_path(p->path), key, (long long)v, UINT32_MAX);
    *out = (uint32_t)v;
    return MINFER_OK;
}

minfer_status mf_gguf_get_u32(const mf_gguf *g, const char *key, uint32_t *out, bool *found,
                              minfer_error *err)
{
    return mf_gguf_part_u32(&g->parts[0], key, out, found, err);
}

minfer_status mf_gguf_get_f32(const mf_gguf *g, const char *key, float *out, bool *found, minfer_error *err)
{
    const mf_gguf_kv *kv;
    MF_TRY(find_typed(&g->parts[0], key, false, MF_GGUF_F32, found, &kv, err));
    if (kv) *out = mf_gguf_array_f32(kv, 0);
    return MINFER_OK;
}

minfer_status mf_gguf_get_bool(const mf_gguf *g, const char *key, bool *out, bool *found, minfer_error *err)
{
    const mf_gguf_kv *kv;
    MF_TRY(find_typed(&g->parts[0], key, false, MF_GGUF_BOOL, found, &kv, err));
    if (kv) *out = kv->data[0] != 0;
    return MINFER_OK;
}

minfer_status mf_gguf_get_str(const mf_gguf *g, const char *key, mf_str *out, bool *found, minfer_error *err)
{
    const mf_gguf_kv *kv;
    MF_TRY(find_typed(&g->parts[0], key, false, MF_GGUF_STRING, found, &kv, err));
    if (kv) *out = kv->strs[0];
    return MINFER_OK;
}

minfer_status mf_gguf_get_array(const mf_gguf *g, const char *key, mf_gguf_type elem, const mf_gguf_kv **out,
                                bool *found, minfer_error *err)
{
    const mf_gguf_kv *kv;
    MF_TRY(find_typed(&g->parts[0], key, true, elem, found, &kv, err));
    if (kv) *out = kv;
    return MINFER_OK;
}
