/* The key-value section: checks every entry, splits strings, indexes keys. Knows the meaning of one key only,
 * general.alignment, because the tensor data depends on it. */
#include "gguf/internal.h"

#include "base/bytes.h"

enum { MIN_ENTRY = 8 + 1 + 4 + 1 }; /* bytes: length and one byte of key, type, the smallest value */

static const struct {
    const char *name;
    uint8_t size; /* bytes of a value; 0: has a length of its own */
} value_types[MF_GGUF_TYPE_COUNT] = {
    [MF_GGUF_U8] = {"u8", 1},       [MF_GGUF_I8] = {"i8", 1},     [MF_GGUF_U16] = {"u16", 2},
    [MF_GGUF_I16] = {"i16", 2},     [MF_GGUF_U32] = {"u32", 4},   [MF_GGUF_I32] = {"i32", 4},
    [MF_GGUF_F32] = {"f32", 4},     [MF_GGUF_BOOL] = {"bool", 1}, [MF_GGUF_STRING] = {"string", 0},
    [MF_GGUF_ARRAY] = {"array", 0}, [MF_GGUF_U64] = {"u64", 8},   [MF_GGUF_I64] = {"i64", 8},
    [MF_GGUF_F64] = {"f64", 8},
};

const char *mf_gguf_type_name(mf_gguf_type t)
{
    return (unsigned)t < MF_GGUF_TYPE_COUNT ? value_types[t].name : "?";
}

static minfer_status read_type(mf_cursor *c, const char *what, mf_gguf_type *t, minfer_error *err)
{
    uint32_t id;
    size_t at = c->pos;
    MF_TRY(mf_cursor_u32(c, what, &id, err));
    if (id >= MF_GGUF_TYPE_COUNT)
        return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: %s %u is unknown, there are 0 to %d", at, what, id,
                       MF_GGUF_TYPE_COUNT - 1);
    *t = (mf_gguf_type)id;
    return MINFER_OK;
}

static minfer_status string_fault(const mf_cursor *c, uint64_t i, uint64_t count, minfer_error *err)
{
    size_t left = mf_cursor_left(c);
    if (left < 8)
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "byte %zu: the length of string %llu of %llu takes 8 bytes, but only %zu are left",
                       c->pos, (unsigned long long)i + 1, (unsigned long long)count, left);
    return mf_fail(err, MINFER_ERR_FORMAT,
                   "byte %zu: string %llu of %llu has %llu bytes, but only %zu are left", c->pos,
                   (unsigned long long)i + 1, (unsigned long long)count,
                   (unsigned long long)mf_load_u64(c->data + c->pos), left - 8);
}

/* count strings, one after the other: the loop that decides how fast a file with a large vocabulary opens. */
static minfer_status read_strings(mf_gguf_part *p, mf_cursor *c, uint64_t count, minfer_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        size_t left = mf_cursor_left(c);
        uint64_t n = left < 8 ? 0 : mf_load_u64(c->data + c->pos);
        if (left < 8 || n > left - 8) return string_fault(c, i, count, err);
        if (!mf_grow((void **)&p->strs, &p->cap_strs, p->n_strs + 1, sizeof *p->strs)) return MF_NOMEM(err);
        p->strs[p->n_strs++] = (mf_str){(const char *)c->data + c->pos + 8, (size_t)n};
        c->pos += 8 + (size_t)n;
    }
    return MINFER_OK;
}

static minfer_status check_bools(const uint8_t *data, size_t n, size_t at, minfer_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (data[i] > 1)
            return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: a bool is %d, it can be 0 or 1 only", at + i,
                           data[i]);
    return MINFER_OK;
}

static minfer_status read_numbers(mf_cursor *c, const mf_gguf_kv *kv, minfer_error *err)
{
    size_t at = c->pos, size = value_types[kv->elem].size;
    if (kv->count > mf_cursor_left(c) / size)
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "byte %zu: %llu values of type %s do not fit into the %zu bytes left", at,
                       (unsigned long long)kv->count, value_types[kv->elem].name, mf_cursor_left(c));
    c->pos += (size_t)kv->count * size;
    return kv->elem == MF_GGUF_BOOL ? check_bools(kv->data, (size_t)kv->count, at, err) : MINFER_OK;
}

static minfer_status read_array_head(mf_cursor *c, mf_gguf_kv *kv, minfer_error *err)
{
    size_t at = c->pos;
    MF_TRY(read_type(c, "element type", &kv->elem, err));
    if (kv->elem == MF_GGUF_ARRAY)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "byte %zu: an array of arrays cannot be read", at);
    at = c->pos;
    MF_TRY(mf_cursor_u64(c, "array length", &kv->count, err));
    if (kv->elem == MF_GGUF_STRING && kv->count > mf_cursor_left(c) / 8)
        return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: %llu strings do not fit into the %zu bytes left",
                       at, (unsigned long long)kv->count, mf_cursor_left(c));
    return MINFER_OK;
}

static minfer_status read_value(mf_gguf_part *p, mf_cursor *c, mf_gguf_kv *kv, minfer_error *err)
{
    MF_TRY(read_type(c, "value type", &kv->type, err));
    kv->elem = kv->type;
    kv->count = 1;
    if (kv->type == MF_GGUF_ARRAY) MF_TRY(read_array_head(c, kv, err));
    size_t start = c->pos;
    kv->data = c->data + start;
    if (kv->elem == MF_GGUF_STRING)
        MF_TRY(read_strings(p, c, kv->count, err));
    else
        MF_TRY(read_numbers(c, kv, err));
    kv->size = c->pos - start;
    return MINFER_OK;
}

static minfer_status add_slot(mf_gguf_part *p, const mf_gguf_slot *slot, minfer_error *err)
{
    uint32_t there;
    const mf_str *key = &slot->kv.key;
    if (!mf_grow((void **)&p->slots, &p->cap_kv, p->n_kv + 1, sizeof *p->slots)) return MF_NOMEM(err);
    if (!mf_strmap_add(&p->kv_index, key->s, key->n, (uint32_t)p->n_kv, &there)) return MF_NOMEM(err);
    if (there != MF_STRMAP_NONE)
        return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: the same key is at byte %zu already",
                       (size_t)((const uint8_t *)key->s - p->data),
                       (size_t)((const uint8_t *)p->slots[there].kv.key.s - p->data));
    p->slots[p->n_kv++] = *slot;
    return MINFER_OK;
}

static minfer_status read_entry(mf_gguf_part *p, mf_cursor *c, uint64_t i, uint64_t n, minfer_error *err)
{
    mf_gguf_slot slot = {.first_str = p->n_strs};
    minfer_status st = mf_cursor_name(c, "key", MF_GGUF_MAX_KEY, &slot.kv.key, err);
    if (st != MINFER_OK)
        return mf_fail_prefix(err, st, "key %llu of %llu", (unsigned long long)i + 1, (unsigned long long)n);
    st = read_value(p, c, &slot.kv, err);
    if (st == MINFER_OK) st = add_slot(p, &slot, err);
    if (st != MINFER_OK) return mf_fail_prefix(err, st, "key %s", mf_quote(slot.kv.key).text);
    return MINFER_OK;
}

/* Strings moved while their array grew; from here on it stays where it is. */
static void fix_strings(mf_gguf_part *p)
{
    for (size_t i = 0; i < p->n_kv; i++)
        if (p->slots[i].kv.elem == MF_GGUF_STRING && p->strs)
            p->slots[i].kv.strs = p->strs + p->slots[i].first_str;
}

static minfer_status read_alignment(mf_gguf_part *p, minfer_error *err)
{
    static const char key[] = "general.alignment";
    const mf_gguf_kv *kv = mf_gguf_part_find(p, key);
    p->alignment = MF_GGUF_DEFAULT_ALIGNMENT;
    if (!kv) return MINFER_OK;
    size_t at = (size_t)(kv->data - p->data);
    if (kv->type != MF_GGUF_U32)
        return mf_fail(err, MINFER_ERR_FORMAT, "key '%s': byte %zu: is of type %s, it must be u32", key, at,
                       mf_gguf_type_name(kv->type));
    uint32_t a = mf_load_u32(kv->data);
    if (a < MF_GGUF_MIN_ALIGNMENT || a > MF_GGUF_MAX_ALIGNMENT || (a & (a - 1)) != 0)
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "key '%s': byte %zu: is %u, it must be a power of two from %d to %d", key, at, a,
                       MF_GGUF_MIN_ALIGNMENT, MF_GGUF_MAX_ALIGNMENT);
    p->alignment = a;
    return MINFER_OK;
}

minfer_status mf_gguf_read_metadata(mf_gguf_part *p, mf_cursor *c, uint64_t n_kv, minfer_error *err)
{
    MF_TRY(mf_gguf_check_count(c, n_kv, MIN_ENTRY, "keys", err));
    for (uint64_t i = 0; i < n_kv; i++) MF_TRY(read_entry(p, c, i, n_kv, err));
    fix_strings(p);
    return read_alignment(p, err);
}
