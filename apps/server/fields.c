/* Reading JSON: the text as a whole, and fields with types and ranges. */
#include "server/fields.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Schemas and templates recurse over what is read, so depth is bounded before. Returns where it is exceeded,
 * or n. */
static size_t too_deep(const char *s, size_t n)
{
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"') {
            for (i++; i < n && s[i] != '"'; i++)
                if (s[i] == '\\') i++;
        } else if (s[i] == '[' || s[i] == '{') {
            if (++depth > SRV_MAX_DEPTH) return i;
        } else if (s[i] == ']' || s[i] == '}') {
            depth -= depth > 0;
        }
    }
    return n;
}

json_t *srv_json_read(const char *text, size_t n, bool strict, srv_error *e)
{
    mf_json_error why;
    size_t blank = 0, deep = too_deep(text, n);
    while (blank < n && is_blank(text[blank])) blank++;
    if (blank == n) {
        srv_refuse(e, 400, NULL, NULL, "empty, expected a JSON object");
        return NULL;
    }
    if (deep < n) {
        srv_refuse(e, 400, NULL, NULL, "invalid JSON at byte %zu: brackets are more than %d deep", deep + 1,
                   SRV_MAX_DEPTH);
        return NULL;
    }
    json_t *j = mf_json_read(text, n, MF_JSON_ANY | (strict ? MF_JSON_UNIQUE : 0u), &why);
    if (!j && why.nomem) {
        srv_nomem_refuse(e);
    } else if (!j) {
        srv_refuse(e, 400, NULL, NULL, "invalid JSON at line %d, column %d: %s", why.line, why.column,
                   why.text);
    } else if (!json_is_object(j)) {
        srv_type_refuse(e, NULL, "a JSON object", j);
        json_decref(j);
        return NULL;
    }
    return j;
}

json_t *srv_field(const srv_object *o, const char *name)
{
    json_t *j = json_object_get(o->j, name);
    return json_is_null(j) ? NULL : j;
}

const char *srv_path_of(const srv_object *o, const char *name, srv_path out)
{
    snprintf(out, sizeof(srv_path), "%s%s%s", o->path, o->path[0] ? "." : "", name);
    return out;
}

const char *srv_path_item(const char *path, size_t i, srv_path out)
{
    snprintf(out, sizeof(srv_path), "%s[%zu]", path, i);
    return out;
}

bool srv_field_refuse(const srv_object *o, const char *name, const char *fmt, ...)
{
    srv_path path;
    char what[sizeof o->e->message];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    srv_path_of(o, name, path);
    return srv_refuse(o->e, 400, NULL, path, "%s: %s", path, what);
}

static const char *type_name(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "nothing";
}

bool srv_type_refuse(srv_error *e, const char *path, const char *expected, const json_t *j)
{
    const char *name = path ? path : "the body";
    if (json_is_number(j))
        return srv_refuse(e, 400, NULL, path, "%s is %.10g, expected %s", name, json_number_value(j),
                          expected);
    return srv_refuse(e, 400, NULL, path, "%s is %s, expected %s", name, type_name(j), expected);
}

bool srv_nomem_refuse(srv_error *e)
{
    return srv_refuse(e, 500, NULL, NULL, "out of memory");
}

static bool wrong_type(const srv_object *o, const char *name, const char *expected, const json_t *j)
{
    srv_path path;
    return srv_type_refuse(o->e, srv_path_of(o, name, path), expected, j);
}

bool srv_field_bool(const srv_object *o, const char *name, bool *v)
{
    const json_t *j = srv_field(o, name);
    if (!j) return true;
    if (!json_is_boolean(j)) return wrong_type(o, name, "a boolean", j);
    *v = json_is_true(j);
    return true;
}

bool srv_json_int(const json_t *j, int64_t *v)
{
    const double limit = 9007199254740992.0; /* 2^53: beyond it a real is no sure integer */
    if (json_is_integer(j)) {
        *v = json_integer_value(j);
        return true;
    }
    double d = json_is_real(j) ? json_real_value(j) : limit;
    if (floor(d) != d || fabs(d) >= limit) return false;
    *v = (int64_t)d;
    return true;
}

/* "a whole number from 1 to 5", "a number of at least 0" */
static bool out_of_range(const srv_object *o, const char *name, const char *kind, double low, double high,
                         const json_t *j)
{
    const double far = 2147483647;
    char expected[100];
    if (low < -far && high > far) return wrong_type(o, name, kind, j);
    if (high >= far)
        snprintf(expected, sizeof expected, "%s of at least %.10g", kind, low);
    else
        snprintf(expected, sizeof expected, "%s from %.10g to %.10g", kind, low, high);
    return wrong_type(o, name, expected, j);
}

bool srv_field_int(const srv_object *o, const char *name, int64_t low, int64_t high, int64_t *v)
{
    const json_t *j = srv_field(o, name);
    int64_t i;
    if (!j) return true;
    if (!srv_json_int(j, &i) || i < low || i > high)
        return out_of_range(o, name, "a whole number", (double)low, (double)high, j);
    *v = i;
    return true;
}

bool srv_field_real(const srv_object *o, const char *name, double low, double high, double *v)
{
    const json_t *j = srv_field(o, name);
    if (!j) return true;
    double d = json_number_value(j);
    if (!json_is_number(j) || d < low || d > high) return out_of_range(o, name, "a number", low, high, j);
    *v = d;
    return true;
}

bool srv_keep_text(const json_t *j, const char *path, mf_arena *mem, const char **v, size_t *n, srv_error *e)
{
    if (!json_is_string(j)) return srv_type_refuse(e, path, "a string", j);
    size_t len = json_string_length(j);
    if (!n && strlen(json_string_value(j)) != len)
        return srv_refuse(e, 400, NULL, path, "%s contains a NUL character", path);
    *v = mf_arena_strndup(mem, json_string_value(j), len);
    if (n) *n = len;
    return *v || srv_nomem_refuse(e);
}

bool srv_field_text(const srv_object *o, const char *name, const char **v, size_t *n)
{
    const json_t *j = srv_field(o, name);
    srv_path path;
    return !j || srv_keep_text(j, srv_path_of(o, name, path), o->mem, v, n, o->e);
}

bool srv_field_array(const srv_object *o, const char *name, json_t **v)
{
    *v = srv_field(o, name);
    return !*v || json_is_array(*v) || wrong_type(o, name, "an array", *v);
}

bool srv_field_object(const srv_object *o, const char *name, srv_path path, srv_object *v)
{
    const json_t *j = srv_field(o, name);
    *v = (srv_object){j, srv_path_of(o, name, path), o->mem, o->e};
    return !j || json_is_object(j) || srv_type_refuse(o->e, path, "an object", j);
}

bool srv_keep_json(const json_t *j, mf_arena *mem, const char **v, srv_error *e)
{
    enum { DIGITS = 15 }; /* so that 0.1 is written 0.1 */
    char *text = mf_json_text(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(DIGITS));
    *v = text ? mf_arena_strndup(mem, text, strlen(text)) : NULL;
    mf_free(text);
    return *v || srv_nomem_refuse(e);
}

void *srv_keep_array(mf_arena *mem, size_t n, size_t size, srv_error *e)
{
    void *p = mf_arena_array(mem, n ? n : 1, size);
    if (!p) srv_nomem_refuse(e);
    return p;
}
