/* Reading general.sampling.* from a model's metadata. Owns nothing. */
#include "sampling/recommended.h"

#include "sampling/sampler.h"

static const struct recommended {
    const char *key;
    unsigned bit;
    bool whole; /* an int32_t field; a float otherwise */
    size_t offset;
} table[] = {
#define KEY(k)   "general.sampling." k
#define FIELD(f) offsetof(minfer_sampling, f)
    {KEY("temp"), MINFER_SAMPLING_TEMPERATURE, false, FIELD(temperature)},
    {KEY("top_k"), MINFER_SAMPLING_TOP_K, true, FIELD(top_k)},
    {KEY("top_p"), MINFER_SAMPLING_TOP_P, false, FIELD(top_p)},
    {KEY("min_p"), MINFER_SAMPLING_MIN_P, false, FIELD(min_p)},
    {KEY("xtc_probability"), MINFER_SAMPLING_XTC_PROBABILITY, false, FIELD(xtc_probability)},
    {KEY("xtc_threshold"), MINFER_SAMPLING_XTC_THRESHOLD, false, FIELD(xtc_threshold)},
    {KEY("penalty_repeat"), MINFER_SAMPLING_REPEAT_PENALTY, false, FIELD(repeat_penalty)},
    {KEY("penalty_last_n"), MINFER_SAMPLING_REPEAT_LAST_N, true, FIELD(repeat_last_n)},
    {KEY("mirostat"), MINFER_SAMPLING_MIROSTAT, true, FIELD(mirostat)},
    {KEY("mirostat_tau"), MINFER_SAMPLING_MIROSTAT_TAU, false, FIELD(mirostat_tau)},
    {KEY("mirostat_eta"), MINFER_SAMPLING_MIROSTAT_ETA, false, FIELD(mirostat_eta)},
#undef KEY
#undef FIELD
};

static bool is_whole(mf_gguf_type t)
{
    return t <= MF_GGUF_I32 || t == MF_GGUF_U64 || t == MF_GGUF_I64;
}

static bool is_number(mf_gguf_type t)
{
    return is_whole(t) || t == MF_GGUF_F32 || t == MF_GGUF_F64;
}

static minfer_status read(const mf_gguf_kv *kv, const struct recommended *r, minfer_sampling *p,
                          minfer_error *err)
{
    void *field = (char *)p + r->offset;
    if (!(r->whole ? is_whole(kv->type) : is_number(kv->type)))
        return mf_fail(err, MINFER_ERR_FORMAT, "is of type %s, expected %s", mf_gguf_type_name(kv->type),
                       r->whole ? "an integer" : "a number");
    if (!r->whole) {
        *(float *)field = mf_gguf_array_f32(kv, 0);
        return MINFER_OK;
    }
    int64_t v = mf_gguf_array_i64(kv, 0);
    if (v < INT32_MIN || v > INT32_MAX)
        return mf_fail(err, MINFER_ERR_FORMAT, "is %lld, expected %d to %d", (long long)v, INT32_MIN,
                       INT32_MAX);
    *(int32_t *)field = (int32_t)v;
    return MINFER_OK;
}

/* The range check sees this one field among defaults, so that it blames nothing else. */
static minfer_status read_checked(const mf_gguf_kv *kv, const struct recommended *r, minfer_sampling *p,
                                  minfer_error *err)
{
    minfer_sampling alone;
    minfer_sampling_init(&alone);
    MF_TRY(read(kv, r, &alone, err));
    if (minfer_sampling_check(&alone, 1, err) != MINFER_OK) return MINFER_ERR_FORMAT;
    return read(kv, r, p, err);
}

minfer_status mf_sampling_recommended(const mf_gguf *g, unsigned given, minfer_sampling *p, minfer_error *err)
{
    minfer_sampling filled = *p;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct recommended *r = &table[i];
        const mf_gguf_kv *kv = given & r->bit ? NULL : mf_gguf_find(g, r->key);
        if (!kv || read_checked(kv, r, &filled, err) == MINFER_OK) continue;
        return mf_fail_prefix(err, MINFER_ERR_FORMAT, "%s: key '%s'", mf_gguf_path(g), r->key);
    }
    *p = filled;
    return MINFER_OK;
}
