/* The validator: each keyword as the specification defines it. pattern and format are left to the caller. */
#include "validate.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_type(const char *t, const json_t *v)
{
    if (strcmp(t, "integer") == 0)
        return json_is_integer(v) || (json_is_real(v) && floor(json_real_value(v)) == json_real_value(v));
    return (strcmp(t, "null") == 0 && json_is_null(v)) || (strcmp(t, "boolean") == 0 && json_is_boolean(v)) ||
           (strcmp(t, "number") == 0 && json_is_number(v)) ||
           (strcmp(t, "string") == 0 && json_is_string(v)) || (strcmp(t, "array") == 0 && json_is_array(v)) ||
           (strcmp(t, "object") == 0 && json_is_object(v));
}

static bool any_type(const json_t *types, const json_t *v)
{
    size_t i;
    json_t *t;
    if (json_is_string(types)) return has_type(json_string_value(types), v);
    json_array_foreach(types, i, t) if (has_type(json_string_value(t), v)) return true;
    return false;
}

static bool is_listed(const json_t *list, const json_t *v)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (json_equal(one, v)) return true;
    return false;
}

/* How many of the schemas hold. */
static size_t count_valid(const json_t *root, const json_t *list, const json_t *v)
{
    size_t i, n = 0;
    json_t *one;
    json_array_foreach(list, i, one) n += is_valid(root, one, v);
    return n;
}

static const json_t *find(const json_t *root, const char *ref)
{
    const json_t *j = root;
    char step[64];
    for (ref++; *ref == '/'; ref += 1 + strlen(step)) {
        snprintf(step, sizeof step, "%.*s", (int)strcspn(ref + 1, "/"), ref + 1);
        j = json_object_get(j, step);
    }
    return j;
}

static bool check_members(const json_t *root, const json_t *schema, const json_t *v)
{
    const char *name;
    json_t *member, *properties = json_object_get(schema, "properties");
    json_t *more = json_object_get(schema, "additionalProperties");
    json_object_foreach((json_t *)(uintptr_t)v, name, member)
    {
        json_t *own = json_object_get(properties, name);
        if (own && !is_valid(root, own, member)) return false;
        if (!own && more && !is_valid(root, more, member)) return false;
    }
    return true;
}

static bool check_object(const json_t *root, const json_t *schema, const char *key, const json_t *arg,
                         const json_t *v)
{
    size_t i, n = json_object_size(v);
    json_t *name;
    if (strcmp(key, "properties") == 0 || strcmp(key, "additionalProperties") == 0)
        return check_members(root, schema, v);
    if (strcmp(key, "minProperties") == 0) return n >= (size_t)json_integer_value(arg);
    if (strcmp(key, "maxProperties") == 0) return n <= (size_t)json_integer_value(arg);
    if (strcmp(key, "required") != 0) return true;
    json_array_foreach(arg, i, name) if (!json_object_get(v, json_string_value(name))) return false;
    return true;
}

static bool check_array(const json_t *root, const json_t *schema, const char *key, const json_t *arg,
                        const json_t *v)
{
    size_t i, n = json_array_size(v), n_prefix = json_array_size(json_object_get(schema, "prefixItems"));
    json_t *item;
    if (strcmp(key, "minItems") == 0) return n >= (size_t)json_integer_value(arg);
    if (strcmp(key, "maxItems") == 0) return n <= (size_t)json_integer_value(arg);
    json_array_foreach(v, i, item)
    {
        if (strcmp(key, "prefixItems") == 0 && i < n_prefix && !is_valid(root, json_array_get(arg, i), item))
            return false;
        if (strcmp(key, "items") == 0 && i >= n_prefix && !is_valid(root, arg, item)) return false;
    }
    return true;
}

static bool check_number(const char *key, double limit, double x)
{
    return strcmp(key, "minimum") == 0            ? x >= limit
           : strcmp(key, "maximum") == 0          ? x <= limit
           : strcmp(key, "exclusiveMinimum") == 0 ? x > limit
           : strcmp(key, "exclusiveMaximum") == 0 ? x < limit
                                                  : true;
}

static bool check_string(const char *key, const json_t *arg, const json_t *v)
{
    size_t n = mf_utf8_count(json_string_value(v), json_string_length(v));
    if (strcmp(key, "minLength") == 0) return n >= (size_t)json_integer_value(arg);
    return strcmp(key, "maxLength") != 0 || n <= (size_t)json_integer_value(arg);
}

static bool check_keyword(const json_t *root, const json_t *schema, const char *key, const json_t *arg,
                          const json_t *v)
{
    if (strcmp(key, "type") == 0)
        return any_type(arg, v) || (json_is_null(v) && json_is_true(json_object_get(schema, "nullable")));
    if (strcmp(key, "enum") == 0) return is_listed(arg, v);
    if (strcmp(key, "const") == 0) return json_equal(arg, v);
    if (strcmp(key, "allOf") == 0) return count_valid(root, arg, v) == json_array_size(arg);
    if (strcmp(key, "anyOf") == 0) return count_valid(root, arg, v) > 0;
    if (strcmp(key, "$ref") == 0) return is_valid(root, find(root, json_string_value(arg)), v);
    if (json_is_object(v)) return check_object(root, schema, key, arg, v);
    if (json_is_array(v)) return check_array(root, schema, key, arg, v);
    if (json_is_number(v)) return check_number(key, json_number_value(arg), json_number_value(v));
    return !json_is_string(v) || check_string(key, arg, v);
}

bool is_valid(const json_t *root, const json_t *schema, const json_t *value)
{
    const char *key;
    json_t *arg;
    if (!json_is_object(schema)) return json_is_true(schema);
    json_object_foreach((json_t *)(uintptr_t)schema, key, arg)
    {
        if (!check_keyword(root, schema, key, arg, value)) return false;
    }
    return true;
}
