/* Sampling parameters of a request: a table of fields, and logit_bias. */
#include "server/request_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR 1e30 /* finite as a float */

/* The ranges are those of minfer_sampling. */
static const struct real_field {
    const char *name;
    size_t offset;
    double low, high;
} reals[] = {
#define FIELD(f) #f, offsetof(minfer_sampling, f)
    {FIELD(temperature), 0, FAR},
    {FIELD(top_p), 0, 1},
    {FIELD(min_p), 0, 1},
    {FIELD(typical_p), 0, 1},
    {FIELD(repeat_penalty), 1e-6, FAR},
    {FIELD(frequency_penalty), -2, 2},
    {FIELD(presence_penalty), -2, 2},
    {FIELD(xtc_probability), 0, 1},
    {FIELD(xtc_threshold), 0, 1},
    {FIELD(dry_multiplier), 0, FAR},
    {FIELD(dry_base), 1, FAR},
    {FIELD(mirostat_tau), 0, FAR},
    {FIELD(mirostat_eta), 0, FAR},
};

static const struct int_field {
    const char *name;
    size_t offset;
    int64_t low, high;
} ints[] = {
    {FIELD(top_k), INT32_MIN, INT32_MAX},
    {FIELD(repeat_last_n), -1, INT32_MAX},
    {FIELD(dry_allowed_length), 0, INT32_MAX},
    {FIELD(mirostat), 0, 2},
#undef FIELD
};

static bool read_reals(const srv_object *body, minfer_sampling *p)
{
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        float *f = (float *)(void *)((char *)p + reals[i].offset);
        double v = *f;
        if (!srv_field(body, reals[i].name)) continue;
        if (!srv_field_real(body, reals[i].name, reals[i].low, reals[i].high, &v)) return false;
        *f = (float)v;
    }
    return true;
}

static bool read_ints(const srv_object *body, minfer_sampling *p)
{
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        int32_t *f = (int32_t *)(void *)((char *)p + ints[i].offset);
        int64_t v = *f;
        if (!srv_field_int(body, ints[i].name, ints[i].low, ints[i].high, &v)) return false;
        *f = (int32_t)v;
    }
    return true;
}

/* A key of logit_bias: digits only, within the vocabulary. */
static bool read_id(const char *key, const srv_context *c, int32_t *id)
{
    char *end;
    if (key[0] < '0' || key[0] > '9') return false;
    errno = 0;
    long v = strtol(key, &end, 10);
    if (*end || errno || v > INT32_MAX || (c->n_vocab && v >= c->n_vocab)) return false;
    *id = (int32_t)v;
    return true;
}

static bool read_bias(const srv_object *body, const srv_context *c, minfer_sampling *p)
{
    srv_path path;
    srv_object o;
    size_t n = 0;
    p->logit_bias = NULL;
    p->n_logit_bias = 0;
    if (!srv_field_object(body, "logit_bias", path, &o)) return false;
    if (!o.j) return true;
    if (json_object_size(o.j) > SRV_MAX_BIASES)
        return srv_field_refuse(body, "logit_bias", "%zu tokens, at most %d are taken", json_object_size(o.j),
                                SRV_MAX_BIASES);
    struct minfer_logit_bias *list = srv_keep_array(body->mem, json_object_size(o.j), sizeof *list, body->e);
    if (!list) return false;
    for (void *at = json_object_iter((json_t *)(uintptr_t)o.j); at;
         at = json_object_iter_next((json_t *)(uintptr_t)o.j, at)) {
        const char *key = json_object_iter_key(at);
        double v = 0;
        if (!read_id(key, c, &list[n].id))
            return srv_field_refuse(body, "logit_bias", "'%.60s' is not a token id%s", key,
                                    c->n_vocab ? " of this model" : "");
        if (!srv_field_real(&o, key, -100, 100, &v)) return false;
        list[n++].bias = (float)v;
    }
    p->logit_bias = list;
    p->n_logit_bias = n;
    return true;
}

bool srv_read_sampling(const srv_object *body, const srv_context *c, srv_request *r)
{
    const json_t *seed = srv_field(body, "seed");
    int64_t v = -1;
    r->sampling = c->sampling;
    if (!read_reals(body, &r->sampling) || !read_ints(body, &r->sampling) ||
        !read_bias(body, c, &r->sampling))
        return false;
    if (seed && !srv_json_int(seed, &v)) return srv_field_int(body, "seed", INT64_MIN, INT64_MAX, &v);
    r->seed_given = seed && v != -1;
    r->sampling.seed = r->seed_given ? (uint64_t)v : 0;
    return true;
}
