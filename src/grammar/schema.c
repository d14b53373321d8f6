/* Entry, references, keywords, and the choice among types. */
#include "grammar/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 100, MAX_RULES = 100000 };

/* What every translation may refer to. Blanks: one where JSON allows any; digits so many that every reader
 * can hold the number. */
static const char common[] = "ws ::= \" \"?\n"
                             "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
                             "object ::= \"{\" ws (member (\",\" ws member)* ws)? \"}\"\n"
                             "member ::= string \":\" ws value\n"
                             "array ::= \"[\" ws (value (\",\" ws value)* ws)? \"]\"\n"
                             "string ::= \"\\\"\" char* \"\\\"\"\n"
                             "plain ::= [^\"\\\\\\x00-\\x1F\\x7F]\n"
                             "char ::= plain | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" unit)\n"
                             "unit ::= [0-9a-cefA-CEF] hex{3} | [dD] [0-7] hex{2} |\n"
                             "  [dD] [89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2}\n"
                             "hex ::= [0-9a-fA-F]\n"
                             "whole ::= \"0\" | [1-9] [0-9]{0,15}\n"
                             "integer ::= \"-\"? whole\n"
                             "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n";

/* ---- refusals */

static minfer_status vfail(mf_schema *s, minfer_status st, const char *at, const char *fmt, va_list ap)
{
    mf_vfail(s->err, st, fmt, ap);
    return mf_fail_prefix(s->err, st, "%s", at);
}

minfer_status mf_schema_fail(mf_schema *s, minfer_status st, const char *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    s->impossible = false;
    vfail(s, st, at, fmt, ap);
    va_end(ap);
    return st;
}

minfer_status mf_schema_impossible(mf_schema *s, const char *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    s->impossible = true;
    vfail(s, MINFER_ERR_ARG, at, fmt, ap);
    va_end(ap);
    return MINFER_ERR_ARG;
}

/* ---- small things */

minfer_status mf_schema_keep(mf_schema *s, json_t *j)
{
    return j && json_array_append_new(s->made, j) == 0 ? MINFER_OK : MF_NOMEM(s->err);
}

static bool put_step(mf_buf *b, const char *step)
{
    bool ok = mf_buf_char(b, '/');
    for (; *step && ok; step++)
        ok = *step == '~' ? mf_buf_str(b, "~0") : *step == '/' ? mf_buf_str(b, "~1") : mf_buf_char(b, *step);
    return ok;
}

minfer_status mf_schema_below(mf_schema *s, mf_splace p, const char *key, const char *more, json_t *j,
                              mf_splace *out)
{
    mf_buf b = {0};
    bool ok = mf_buf_str(&b, p.at) && put_step(&b, key) && (!more || put_step(&b, more));
    *out = (mf_splace){j, ok ? mf_arena_strndup(&s->arena, b.data, b.len) : NULL};
    mf_buf_free(&b);
    return out->at ? MINFER_OK : MF_NOMEM(s->err);
}

minfer_status mf_schema_count(mf_schema *s, mf_splace p, const char *key, uint32_t *v)
{
    const json_t *j = json_object_get(p.j, key);
    double x = json_number_value(j);
    if (!j) return MINFER_OK;
    if (!json_is_number(j) || !(x >= 0 && x <= 1 << 30) || x != (double)(uint32_t)x)
        return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "%s is not a whole number from 0 to %d", key, 1 << 30);
    *v = (uint32_t)x;
    return MINFER_OK;
}

bool mf_schema_literal(mf_buf *b, const char *text, size_t n)
{
    bool ok = mf_buf_char(b, '"');
    for (size_t i = 0; i < n && ok; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            ok = mf_buf_char(b, '\\') && mf_buf_char(b, (char)c);
        else
            ok = c < 0x20 || c == 0x7F ? mf_buf_printf(b, "\\x%02X", c) : mf_buf_char(b, (char)c);
    }
    return ok && mf_buf_char(b, '"');
}

/* With the fewest digits that give the same numbers again. */
bool mf_schema_value(mf_buf *b, const json_t *value)
{
    bool same = false, nomem = false;
    char *text = NULL;
    for (size_t digits = 15; digits <= 17 && !same && !nomem; digits++) {
        mf_json_error e = {0};
        mf_free(text);
        text = mf_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *again = text ? mf_json_read(text, strlen(text), MF_JSON_ANY, &e) : NULL;
        same = again && json_equal(again, value);
        nomem = !text || e.nomem;
        json_decref(again);
    }
    bool ok = !nomem && mf_schema_literal(b, text, strlen(text));
    mf_free(text);
    return ok;
}

minfer_status mf_schema_new_rule(mf_schema *s, const char *at, uint32_t *rule)
{
    if (s->n_rules >= MAX_RULES)
        return mf_schema_fail(s, MINFER_ERR_LIMIT, at, "the schema needs more than %d rules", MAX_RULES);
    if (!mf_grow((void **)&s->where, &s->cap, s->n_rules + 1, sizeof *s->where)) return MF_NOMEM(s->err);
    *rule = (uint32_t)s->n_rules;
    s->where[s->n_rules++] = at;
    return MINFER_OK;
}

minfer_status mf_schema_put_rule(mf_schema *s, uint32_t rule, const mf_buf *text)
{
    bool ok = mf_buf_printf(&s->out, "r%u ::= ", rule);
    ok = ok && (text->len ? mf_buf_append(&s->out, text->data, text->len) : mf_buf_str(&s->out, "\"\""));
    return ok && mf_buf_char(&s->out, '\n') ? MINFER_OK : MF_NOMEM(s->err);
}

/* ---- keywords */

typedef struct keyword {
    const char *name;
    unsigned types; /* of values that it constrains; 0: an annotation, or handled whatever the type is */
} keyword;

static const keyword keywords[] = {
    {"properties", MF_JSON_OBJECT},
    {"required", MF_JSON_OBJECT},
    {"additionalProperties", MF_JSON_OBJECT},
    {"minProperties", MF_JSON_OBJECT},
    {"maxProperties", MF_JSON_OBJECT},
    {"items", MF_JSON_ARRAY},
    {"prefixItems", MF_JSON_ARRAY},
    {"additionalItems", MF_JSON_ARRAY},
    {"minItems", MF_JSON_ARRAY},
    {"maxItems", MF_JSON_ARRAY},
    {"uniqueItems", MF_JSON_ARRAY},
    {"minLength", MF_JSON_STRING},
    {"maxLength", MF_JSON_STRING},
    {"pattern", MF_JSON_STRING},
    {"format", MF_JSON_STRING},
    {"minimum", MF_JSON_NUMBER},
    {"maximum", MF_JSON_NUMBER},
    {"exclusiveMinimum", MF_JSON_NUMBER},
    {"exclusiveMaximum", MF_JSON_NUMBER},
    {"multipleOf", MF_JSON_NUMBER},
    {"type", 0},
    {"enum", 0},
    {"const", 0},
    {"nullable", 0},
    {"allOf", 0},
    {"anyOf", 0},
    {"oneOf", 0},
    {"$ref", 0},
    {"$defs", 0},
    {"definitions", 0},
    {"title", 0},
    {"description", 0},
    {"default", 0},
    {"examples", 0},
    {"example", 0},
    {"$schema", 0},
    {"$id", 0},
    {"id", 0},
    {"$anchor", 0},
    {"$comment", 0},
    {"deprecated", 0},
    {"readOnly", 0},
    {"writeOnly", 0},
    {"contentMediaType", 0},
    {"contentEncoding", 0},
    {"discriminator", 0},
    {"xml", 0},
    {"externalDocs", 0},
};

static const keyword *find_keyword(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0) return &keywords[i];
    return NULL;
}

/* Refuses unknown keywords; *constrained: the types that some keyword constrains. */
static minfer_status check_keywords(mf_schema *s, mf_splace p, unsigned *constrained)
{
    const char *name;
    json_t *value;
    *constrained = 0;
    json_object_foreach(p.j, name, value)
    {
        const keyword *k = find_keyword(name);
        if (k)
            *constrained |= k->types;
        else if (strncmp(name, "x-", 2) != 0)
            return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at, "the keyword '%s' is not supported", name);
    }
    return MINFER_OK;
}

static unsigned type_bit(const json_t *j)
{
    static const char *const names[] = {"null", "boolean", "number", "integer", "string", "array", "object"};
    for (unsigned i = 0; json_is_string(j) && i < 7; i++)
        if (strcmp(json_string_value(j), names[i]) == 0) return 1u << i;
    return 0;
}

minfer_status mf_schema_types(mf_schema *s, mf_splace p, unsigned *types)
{
    json_t *type = json_object_get(p.j, "type"), *one;
    size_t i;
    *types = 0;
    if (!type) return MINFER_OK;
    if (json_is_array(type)) {
        json_array_foreach(type, i, one)
        {
            if (!type_bit(one))
                return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "type has an entry that names no type");
            *types |= type_bit(one);
        }
        if (!*types) return mf_schema_impossible(s, p.at, "type is an empty list");
    } else {
        *types = type_bit(type);
        if (!*types && json_is_string(type))
            return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "'%s' is not a type", json_string_value(type));
        if (!*types) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "type is neither a name nor a list");
    }
    if (json_is_true(json_object_get(p.j, "nullable"))) *types |= MF_JSON_NULL;
    return MINFER_OK;
}

/* ---- listed values */

static unsigned value_type(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL: return MF_JSON_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return MF_JSON_BOOL;
    case JSON_STRING: return MF_JSON_STRING;
    case JSON_ARRAY: return MF_JSON_ARRAY;
    case JSON_OBJECT: return MF_JSON_OBJECT;
    case JSON_INTEGER: return MF_JSON_NUMBER | MF_JSON_INTEGER;
    case JSON_REAL: break;
    }
    double x = json_real_value(v);
    return x == (double)(int64_t)(x > -9e18 && x < 9e18 ? x : 0.5) ? MF_JSON_NUMBER | MF_JSON_INTEGER
                                                                   : MF_JSON_NUMBER;
}

/* A listed value must be allowed by what stands beside the list; of that only types are looked at. */
static minfer_status check_beside(mf_schema *s, mf_splace p, unsigned type)
{
    const char *name;
    json_t *value;
    json_object_foreach(p.j, name, value)
    {
        const keyword *k = find_keyword(name);
        if (k && (k->types & type))
            return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at,
                                  "the keyword '%s' beside enum or const is not supported", name);
    }
    return MINFER_OK;
}

static bool listed(const json_t *list, const json_t *v)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (json_equal(one, v)) return true;
    return false;
}

/* enum, const, or both. */
static minfer_status put_values(mf_schema *s, mf_splace p, unsigned types, mf_buf *b)
{
    json_t *list = json_object_get(p.j, "enum"), *only = json_object_get(p.j, "const");
    size_t n = 0, n_values = list ? json_array_size(list) : 1;
    if (list && !json_is_array(list)) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "enum is not a list");
    if (list && n_values == 0) return mf_schema_impossible(s, p.at, "enum is empty");
    if (only && list && !listed(list, only))
        return mf_schema_impossible(s, p.at, "const is not among the values of enum");
    if (only) n_values = 1;
    for (size_t i = 0; i < n_values; i++) {
        const json_t *v = only ? only : json_array_get(list, i);
        if (types && !(types & value_type(v))) continue;
        MF_TRY(check_beside(s, p, value_type(v)));
        if ((n++ && !mf_buf_str(b, " | ")) || !mf_schema_value(b, v)) return MF_NOMEM(s->err);
    }
    return n ? MINFER_OK : mf_schema_impossible(s, p.at, "none of the listed values is of the type");
}

/* ---- what is left out because no value satisfies it */

typedef struct written {
    size_t out, n_refs;
    int depth;
} written;

static written mark(mf_schema *s)
{
    s->impossible = false;
    return (written){s->out.len, s->n_refs, s->depth};
}

/* Forgets what was written since, when st is a refusal because of that. false for other refusals. */
static bool take_back(mf_schema *s, written w, minfer_status st)
{
    if (st == MINFER_OK) return true;
    s->out.len = w.out;
    s->n_refs = w.n_refs;
    s->depth = w.depth;
    return s->impossible;
}

minfer_status mf_schema_try_rule(mf_schema *s, mf_splace p, uint32_t *rule, bool *possible)
{
    written w = mark(s);
    minfer_status st = mf_schema_rule(s, p, rule);
    *possible = st == MINFER_OK;
    return take_back(s, w, st) ? MINFER_OK : st;
}

/* ---- types */

static minfer_status put_type(mf_schema *s, mf_splace p, unsigned type, mf_buf *b)
{
    switch (type) {
    case MF_JSON_NULL: return mf_buf_str(b, "\"null\"") ? MINFER_OK : MF_NOMEM(s->err);
    case MF_JSON_BOOL: return mf_buf_str(b, "\"true\" | \"false\"") ? MINFER_OK : MF_NOMEM(s->err);
    case MF_JSON_STRING: return mf_schema_string(s, p, b);
    case MF_JSON_ARRAY: return mf_schema_array(s, p, b);
    case MF_JSON_OBJECT: return mf_schema_object(s, p, b);
    default: return mf_schema_number(s, p, type == MF_JSON_INTEGER, b);
    }
}

/* A choice among types. One that cannot be satisfied is left out, unless it is the last one. */
static minfer_status put_types(mf_schema *s, mf_splace p, unsigned types, mf_buf *b)
{
    bool any = false;
    minfer_status st = MINFER_OK;
    if (types & MF_JSON_NUMBER) types &= ~(unsigned)MF_JSON_INTEGER;
    for (unsigned t = 1; t < MF_JSON_ALL; t <<= 1) {
        size_t before = b->len;
        if (!(types & t)) continue;
        if (any && !mf_buf_str(b, " | ")) return MF_NOMEM(s->err);
        written w = mark(s);
        st = put_type(s, p, t, b);
        if (!take_back(s, w, st)) return st;
        if (st != MINFER_OK) b->len = before;
        any |= st == MINFER_OK;
    }
    return any ? MINFER_OK : st;
}

/* ---- combinations */

static json_t *without(const json_t *j, const char *key)
{
    json_t *c = mf_json_copy(j);
    if (c) json_object_del(c, key);
    return c;
}

/* Keywords other than annotations: whether what is beside a $ref says anything. */
static bool constrains(const json_t *j)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)j, name, value)
    {
        const keyword *k = find_keyword(name);
        static const char *const combining[] = {"type",  "enum",  "const", "nullable",
                                                "allOf", "anyOf", "oneOf", "$ref"};
        if (!k || k->types) return true;
        for (size_t i = 0; i < sizeof combining / sizeof *combining; i++)
            if (strcmp(name, combining[i]) == 0) return true;
    }
    return false;
}

/* The rest of p without `key`, and the place of it. */
static minfer_status rest_of(mf_schema *s, mf_splace p, const char *key, mf_splace *rest)
{
    *rest = (mf_splace){without(p.j, key), p.at};
    return mf_schema_keep(s, rest->j);
}

/* ---- references */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* A step of a pointer in place: %XX, then ~0 and ~1. */
static void decode_percent(char *step)
{
    char *to = step;
    for (; *step; step++) {
        if (*step == '%' && hex_digit(step[1]) >= 0 && hex_digit(step[2]) >= 0) {
            *to++ = (char)(hex_digit(step[1]) << 4 | hex_digit(step[2]));
            step += 2;
        } else {
            *to++ = *step;
        }
    }
    *to = 0;
}

static void decode_tilde(char *step)
{
    char *to = step;
    for (; *step; step++) {
        if (*step == '~' && (step[1] == '0' || step[1] == '1'))
            *to++ = *++step == '0' ? '~' : '/';
        else
            *to++ = *step;
    }
    *to = 0;
}

static json_t *step_into(json_t *j, const char *step)
{
    char *end;
    if (json_is_object(j)) return json_object_get(j, step);
    if (!json_is_array(j) || !(*step >= '0' && *step <= '9')) return NULL;
    unsigned long i = strtoul(step, &end, 10);
    return *end ? NULL : json_array_get(j, i);
}

static minfer_status resolve(mf_schema *s, const char *at, const char *ref, json_t **target)
{
    if (ref[0] != '#' || (ref[1] && ref[1] != '/'))
        return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, at,
                              "$ref '%s': only #/... of the same schema is supported", ref);
    char *path = mf_arena_strndup(&s->arena, ref + 1, strlen(ref + 1));
    if (!path) return MF_NOMEM(s->err);
    json_t *j = s->root;
    for (char *step = path, *next; step && *step && j; step = next) {
        next = strchr(++step, '/');
        if (next) *next = 0;
        decode_percent(step);
        decode_tilde(step);
        j = step_into(j, step);
        if (next) *next = '/';
    }
    *target = j;
    return j ? MINFER_OK : mf_schema_fail(s, MINFER_ERR_ARG, at, "$ref '%s': there is nothing", ref);
}

static minfer_status ref_target(mf_schema *s, mf_splace p, mf_splace *target)
{
    const char *ref = json_string_value(json_object_get(p.j, "$ref"));
    if (!ref) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "$ref is not a text");
    *target = (mf_splace){NULL, ref};
    return resolve(s, p.at, ref, &target->j);
}

static minfer_status put_any_of(mf_schema *s, mf_splace p, const char *key, mf_buf *b)
{
    json_t *list = json_object_get(p.j, key);
    size_t n = json_array_size(list), n_put = 0;
    minfer_status st = MINFER_OK;
    mf_splace rest;
    if (!json_is_array(list)) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "%s is not a list", key);
    if (n == 0) return mf_schema_impossible(s, p.at, "%s is empty", key);
    MF_TRY(rest_of(s, p, key, &rest));
    for (size_t i = 0; i < n; i++) {
        char place[24];
        mf_splace one;
        uint32_t rule;
        snprintf(place, sizeof place, "%zu", i);
        MF_TRY(mf_schema_below(s, p, key, place, json_array_get(list, i), &one));
        written w = mark(s);
        st = constrains(rest.j) ? mf_schema_merge(s, rest, one, &one) : MINFER_OK;
        if (st == MINFER_OK) st = mf_schema_rule(s, one, &rule);
        if (!take_back(s, w, st)) return st;
        if (st != MINFER_OK) continue;
        if (!mf_buf_printf(b, n_put++ ? " | r%u" : "r%u", rule)) return MF_NOMEM(s->err);
    }
    return n_put ? MINFER_OK : st;
}

/* Replaces a reference, and what that refers to, by the schema meant; what stands beside it comes after it.
 */
static minfer_status follow_refs(mf_schema *s, mf_splace *p)
{
    for (int i = 0; json_object_get(p->j, "$ref"); i++) {
        mf_splace target, rest;
        if (i == MAX_DEPTH)
            return mf_schema_fail(s, MINFER_ERR_LIMIT, p->at, "references to references deeper than %d",
                                  MAX_DEPTH);
        MF_TRY(ref_target(s, *p, &target));
        MF_TRY(rest_of(s, *p, "$ref", &rest));
        if (constrains(rest.j)) MF_TRY(mf_schema_merge(s, target, rest, &target));
        *p = target;
    }
    return MINFER_OK;
}

static minfer_status put_all_of(mf_schema *s, mf_splace p, mf_buf *b)
{
    json_t *list = json_object_get(p.j, "allOf");
    mf_splace all;
    uint32_t rule;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "allOf is not a list with entries");
    MF_TRY(rest_of(s, p, "allOf", &all));
    for (size_t i = 0; i < json_array_size(list); i++) {
        char place[24];
        mf_splace one;
        snprintf(place, sizeof place, "%zu", i);
        MF_TRY(mf_schema_below(s, p, "allOf", place, json_array_get(list, i), &one));
        MF_TRY(follow_refs(s, &one));
        MF_TRY(mf_schema_merge(s, all, one, &all));
    }
    all.at = p.at;
    MF_TRY(mf_schema_rule(s, all, &rule));
    return mf_buf_printf(b, "r%u", rule) ? MINFER_OK : MF_NOMEM(s->err);
}

/* ---- references as rules */

/* A reference is a rule of its own, made once: so that schemas may contain themselves. */
static minfer_status ref_rule(mf_schema *s, mf_splace target, uint32_t *rule);

/* With constraints beside it the reference is replaced by what it refers to. */
static minfer_status put_ref(mf_schema *s, mf_splace p, mf_buf *b)
{
    mf_splace target, rest;
    uint32_t rule;
    MF_TRY(ref_target(s, p, &target));
    MF_TRY(rest_of(s, p, "$ref", &rest));
    if (constrains(rest.j)) {
        MF_TRY(mf_schema_merge(s, target, rest, &rest));
        rest.at = p.at;
        MF_TRY(mf_schema_rule(s, rest, &rule));
    } else {
        MF_TRY(ref_rule(s, target, &rule));
    }
    return mf_buf_printf(b, "r%u", rule) ? MINFER_OK : MF_NOMEM(s->err);
}

/* ---- a schema */

static minfer_status put_schema(mf_schema *s, mf_splace p, mf_buf *b)
{
    unsigned types, constrained;
    if (json_is_true(p.j)) return mf_buf_str(b, "value") ? MINFER_OK : MF_NOMEM(s->err);
    if (json_is_false(p.j)) return mf_schema_impossible(s, p.at, "the schema false allows no value");
    if (!json_is_object(p.j))
        return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "a schema is an object, true or false");
    MF_TRY(check_keywords(s, p, &constrained));
    if (json_object_get(p.j, "$ref")) return put_ref(s, p, b);
    if (json_object_get(p.j, "allOf")) return put_all_of(s, p, b);
    if (json_object_get(p.j, "anyOf")) return put_any_of(s, p, "anyOf", b);
    if (json_object_get(p.j, "oneOf")) return put_any_of(s, p, "oneOf", b);
    MF_TRY(mf_schema_types(s, p, &types));
    if (json_object_get(p.j, "enum") || json_object_get(p.j, "const")) return put_values(s, p, types, b);
    if (constrained && json_is_true(json_object_get(p.j, "nullable"))) constrained |= MF_JSON_NULL;
    if (!types && !constrained) return mf_buf_str(b, "value") ? MINFER_OK : MF_NOMEM(s->err);
    return put_types(s, p, types ? types : constrained, b);
}

static minfer_status fill_rule(mf_schema *s, mf_splace p, uint32_t rule)
{
    mf_buf b = {0};
    if (++s->depth > MAX_DEPTH)
        return mf_schema_fail(s, MINFER_ERR_LIMIT, p.at, "schemas within schemas deeper than %d", MAX_DEPTH);
    minfer_status st = put_schema(s, p, &b);
    if (st == MINFER_OK) st = mf_schema_put_rule(s, rule, &b);
    mf_buf_free(&b);
    s->depth--;
    return st;
}

minfer_status mf_schema_rule(mf_schema *s, mf_splace p, uint32_t *rule)
{
    MF_TRY(mf_schema_new_rule(s, p.at, rule));
    return fill_rule(s, p, *rule);
}

static minfer_status ref_rule(mf_schema *s, mf_splace target, uint32_t *rule)
{
    uint64_t hash = mf_hash_bytes(target.at, strlen(target.at), 0);
    for (size_t i = 0; i < s->n_refs; i++)
        if (s->refs[i].hash == hash && strcmp(s->refs[i].ref, target.at) == 0) {
            *rule = s->refs[i].rule;
            return MINFER_OK;
        }
    MF_TRY(mf_schema_new_rule(s, target.at, rule));
    if (!mf_grow((void **)&s->refs, &s->refs_cap, s->n_refs + 1, sizeof *s->refs)) return MF_NOMEM(s->err);
    s->refs[s->n_refs++] = (struct mf_sref){hash, target.at, *rule};
    return fill_rule(s, target, *rule);
}

/* ---- the whole */

/* A rule that never ends, as the place in the schema that it comes from. */
static minfer_status blame(mf_schema *s, mf_str rule, minfer_status st)
{
    if (rule.n < 2 || rule.s[0] != 'r') return st;
    unsigned long i = strtoul(rule.s + 1, NULL, 10);
    return i < s->n_rules ? mf_schema_impossible(s, s->where[i],
                                                 "no value can satisfy it: it contains itself without end")
                          : st;
}

static minfer_status translate(mf_schema *s, mf_buf *gbnf, mf_program *p)
{
    uint32_t rule;
    mf_str culprit;
    MF_TRY(ref_rule(s, (mf_splace){s->root, "#"}, &rule));
    bool ok = mf_buf_printf(gbnf, "root ::= r%u\n", rule) && mf_buf_append(gbnf, s->out.data, s->out.len) &&
              mf_buf_str(gbnf, common);
    if (!ok) return MF_NOMEM(s->err);
    minfer_status st = mf_program_read(p, gbnf->data, gbnf->len, &culprit, s->err);
    return st == MINFER_ERR_ARG ? blame(s, culprit, st) : st;
}

minfer_status mf_schema_read(const char *json, size_t n, mf_buf *gbnf, mf_program *p, minfer_error *err)
{
    mf_json_error e;
    mf_schema s = {.err = err};
    s.root = mf_json_read(json, n, MF_JSON_ANY | MF_JSON_UNIQUE, &e);
    if (!s.root) return mf_fail_prefix(err, mf_json_fail(&e, err), "schema");
    s.made = json_array();
    minfer_status st = s.made ? translate(&s, gbnf, p) : MF_NOMEM(err);
    if (st != MINFER_OK) mf_fail_prefix(err, st, "schema");
    json_decref(s.made);
    json_decref(s.root);
    mf_buf_free(&s.out);
    mf_free(s.where);
    mf_free(s.refs);
    mf_arena_free(&s.arena);
    return st;
}

minfer_status minfer_schema_to_gbnf(const char *json, size_t n, char **gbnf, size_t *n_gbnf,
                                    minfer_error *err)
{
    mf_buf b = {0};
    mf_program p = {0};
    *gbnf = NULL;
    *n_gbnf = 0;
    minfer_status st = mf_schema_read(json, n, &b, &p, err);
    mf_program_free(&p);
    if (st != MINFER_OK) {
        mf_buf_free(&b);
        return st;
    }
    *gbnf = b.data;
    *n_gbnf = b.len;
    return MINFER_OK;
}
