/* allOf: one schema for what satisfies two. Keyword by keyword; what cannot be said by one schema is refused.
 */
#include "grammar/schema.h"

#include <string.h>

enum { MAX_PAIRS = 256 };

typedef struct merger {
    mf_schema *s;
    const json_t *a, *b;
    const char *at;
    json_t *out;
} merger;

static minfer_status set(merger *m, const char *key, json_t *value) /* takes value */
{
    return value && json_object_set_new(m->out, key, value) == 0 ? MINFER_OK : MF_NOMEM(m->s->err);
}

static json_t *both_of(json_t *x, json_t *y)
{
    return json_pack("{s:[O,O]}", "allOf", x, y);
}

static minfer_status differ(merger *m, const char *key)
{
    return mf_schema_fail(m->s, MINFER_ERR_UNSUPPORTED, m->at,
                          "allOf with '%s' in two schemas that differ in it is not supported", key);
}

/* The larger (sign 1) or the smaller one (-1). */
static minfer_status merge_limit(merger *m, const char *key, json_t *x, json_t *y, int sign)
{
    if (!json_is_number(x) || !json_is_number(y)) return json_equal(x, y) ? MINFER_OK : differ(m, key);
    return set(m, key, json_incref((json_number_value(x) - json_number_value(y)) * sign >= 0 ? x : y));
}

static minfer_status merge_types(merger *m)
{
    static const char *const names[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    unsigned x, y;
    MF_TRY(mf_schema_types(m->s, (mf_splace){(json_t *)(uintptr_t)m->a, m->at}, &x));
    MF_TRY(mf_schema_types(m->s, (mf_splace){(json_t *)(uintptr_t)m->b, m->at}, &y));
    if (!x || !y) return MINFER_OK;
    if (x & MF_JSON_NUMBER) x |= MF_JSON_INTEGER;
    if (y & MF_JSON_NUMBER) y |= MF_JSON_INTEGER;
    if (!(x & y))
        return mf_schema_impossible(m->s, m->at, "no type is allowed by all of the combined schemas");
    json_object_del(m->out, "nullable");
    MF_TRY(set(m, "type", json_array()));
    for (unsigned i = 0; i < 7; i++)
        if ((x & y) >> i & 1 && json_array_append_new(json_object_get(m->out, "type"), json_string(names[i])))
            return MF_NOMEM(m->s->err);
    return MINFER_OK;
}

static minfer_status merge_enum(merger *m, json_t *x, json_t *y)
{
    size_t i, k;
    json_t *v, *w, *both = json_array();
    MF_TRY(set(m, "enum", both));
    json_array_foreach(x, i, v) json_array_foreach(y, k, w)
    {
        if (!json_equal(v, w)) continue;
        if (json_array_append(both, v) != 0) return MF_NOMEM(m->s->err);
        break;
    }
    return MINFER_OK;
}

static minfer_status merge_required(merger *m, json_t *x, json_t *y)
{
    size_t i, k;
    json_t *v, *w, *all = mf_json_copy(x);
    MF_TRY(set(m, "required", all));
    json_array_foreach(y, i, v)
    {
        bool known = false;
        json_array_foreach(x, k, w) known |= json_equal(v, w) != 0;
        if (!known && json_array_append(all, v) != 0) return MF_NOMEM(m->s->err);
    }
    return MINFER_OK;
}

static minfer_status merge_properties(merger *m, json_t *x, json_t *y)
{
    const char *name;
    json_t *v, *all = mf_json_copy(x);
    MF_TRY(set(m, "properties", all));
    json_object_foreach(y, name, v)
    {
        json_t *other = json_object_get(x, name);
        bool same = other && json_equal(other, v);
        if (same) continue;
        json_t *one = other ? both_of(other, v) : json_incref(v);
        if (!one || json_object_set_new(all, name, one) != 0) return MF_NOMEM(m->s->err);
    }
    return MINFER_OK;
}

/* Every pair of choices. */
static minfer_status merge_choices(merger *m, const char *key, json_t *x, json_t *y)
{
    size_t i, k;
    json_t *v, *w, *pairs = json_array();
    MF_TRY(set(m, key, pairs));
    if (json_array_size(x) * json_array_size(y) > MAX_PAIRS)
        return mf_schema_fail(m->s, MINFER_ERR_UNSUPPORTED, m->at,
                              "allOf with two '%s' of %zu and %zu choices", key, json_array_size(x),
                              json_array_size(y));
    json_array_foreach(x, i, v) json_array_foreach(y, k, w) if (json_array_append_new(pairs, both_of(v, w)) !=
                                                                0) return MF_NOMEM(m->s->err);
    return MINFER_OK;
}

/* What allows more gives way. */
static minfer_status merge_more(merger *m, const char *key, json_t *x, json_t *y)
{
    if (json_is_true(x) || json_is_false(y)) return set(m, key, json_incref(y));
    return json_is_true(y) || json_is_false(x) ? MINFER_OK : differ(m, key);
}

/* A keyword that both have. */
static minfer_status merge_key(merger *m, const char *key, json_t *x, json_t *y)
{
    static const char *const lower[] = {"minLength", "minItems", "minProperties", "minimum",
                                        "exclusiveMinimum"};
    static const char *const upper[] = {"maxLength", "maxItems", "maxProperties", "maximum",
                                        "exclusiveMaximum"};
    static const char *const notes[] = {
        "title",       "description", "default", "examples",      "example",  "$id",         "id",
        "$comment",    "$schema",     "$anchor", "deprecated",    "readOnly", "writeOnly",   "$defs",
        "definitions", "nullable",    "type",    "discriminator", "xml",      "externalDocs"};
    if (json_equal(x, y)) return MINFER_OK;
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
        if (strcmp(key, lower[i]) == 0) return merge_limit(m, key, x, y, 1);
        if (strcmp(key, upper[i]) == 0) return merge_limit(m, key, x, y, -1);
    }
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(key, notes[i]) == 0) return MINFER_OK;
    if (strcmp(key, "$ref") == 0) return MINFER_OK; /* see merge_refs */
    if (strcmp(key, "const") == 0)
        return mf_schema_impossible(m->s, m->at, "the combined schemas want different constants");
    if (strcmp(key, "additionalProperties") == 0) return merge_more(m, key, x, y);
    if (strcmp(key, "enum") == 0) return merge_enum(m, x, y);
    if (strcmp(key, "required") == 0) return merge_required(m, x, y);
    if (strcmp(key, "properties") == 0) return merge_properties(m, x, y);
    if (strcmp(key, "anyOf") == 0 || strcmp(key, "oneOf") == 0) return merge_choices(m, key, x, y);
    if (strcmp(key, "items") == 0 && !json_is_array(x) && !json_is_array(y))
        return set(m, key, both_of(x, y));
    if (strcmp(key, "allOf") == 0 && json_is_array(x) && json_is_array(y)) {
        MF_TRY(set(m, key, mf_json_copy(x)));
        return json_array_extend(json_object_get(m->out, key), y) == 0 ? MINFER_OK : MF_NOMEM(m->s->err);
    }
    return differ(m, key);
}

/* Where one schema allows only the properties it names, the other one may not name more. */
static minfer_status check_closed(merger *m, const json_t *closed, const json_t *other)
{
    const char *name;
    json_t *v, *more = json_object_get(closed, "additionalProperties");
    if (!more || json_is_true(more)) return MINFER_OK;
    json_object_foreach(json_object_get(other, "properties"), name, v)
    {
        if (json_object_get(json_object_get(closed, "properties"), name)) continue;
        return mf_schema_fail(
            m->s, MINFER_ERR_UNSUPPORTED, m->at,
            "allOf with additionalProperties in one schema and the property '%s' in another is "
            "not supported",
            name);
    }
    return MINFER_OK;
}

/* Of two references one stays, the other goes into allOf. */
static minfer_status merge_refs(merger *m)
{
    json_t *x = json_object_get(m->a, "$ref"), *y = json_object_get(m->b, "$ref");
    json_t *all = json_object_get(m->out, "allOf");
    if (!x || !y || json_equal(x, y)) return MINFER_OK;
    all = json_is_array(all) ? mf_json_copy(all) : json_array();
    MF_TRY(set(m, "allOf", all));
    return json_array_append_new(all, json_pack("{s:O}", "$ref", y)) == 0 ? MINFER_OK : MF_NOMEM(m->s->err);
}

static minfer_status merge_keys(merger *m)
{
    const char *key;
    json_t *y;
    json_object_foreach((json_t *)(uintptr_t)m->b, key, y)
    {
        json_t *x = json_object_get(m->a, key);
        if (x)
            MF_TRY(merge_key(m, key, x, y));
        else
            MF_TRY(set(m, key, json_incref(y)));
    }
    MF_TRY(merge_refs(m));
    MF_TRY(check_closed(m, m->a, m->b));
    MF_TRY(check_closed(m, m->b, m->a));
    return merge_types(m);
}

minfer_status mf_schema_merge(mf_schema *s, mf_splace a, mf_splace b, mf_splace *both)
{
    mf_splace result = {NULL, b.at};
    if (json_is_true(a.j) || json_is_true(b.j)) {
        *both = json_is_true(a.j) ? b : a;
        return MINFER_OK;
    }
    if (json_is_false(a.j) || json_is_false(b.j))
        return mf_schema_impossible(s, b.at, "the schema false allows no value");
    if (!json_is_object(a.j) || !json_is_object(b.j))
        return mf_schema_fail(s, MINFER_ERR_ARG, b.at, "a schema is an object, true or false");
    merger m = {s, a.j, b.j, b.at, mf_json_copy(a.j)};
    MF_TRY(mf_schema_keep(s, m.out));
    MF_TRY(merge_keys(&m));
    result.j = m.out;
    *both = result;
    return MINFER_OK;
}
