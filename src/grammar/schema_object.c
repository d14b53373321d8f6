/* Objects and arrays. Properties stand in the order of the schema, required or not; what may be added comes
 * last. */
#include "grammar/schema.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_RULE = -1, ANY_VALUE = -2 }; /* instead of a rule */
enum { MAX_NAME = 1000 };

typedef struct property {
    const char *name;
    bool required;
    uint32_t rule;
} property;

typedef struct object {
    mf_schema *s;
    mf_splace p;
    property *v;
    size_t n, cap;
    int64_t more;   /* rule of the values of further properties, ANY_VALUE, or NO_RULE */
    uint32_t extra; /* rule of a further property, where there may be any */
    uint32_t min, max;
} object;

static bool put_value(mf_buf *b, int64_t rule)
{
    return rule == ANY_VALUE ? mf_buf_str(b, "value") : mf_buf_printf(b, "r%u", (uint32_t)rule);
}

/* ---- which properties there are */

static bool has_name(const json_t *list, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(list, i,
                       v) if (json_is_string(v) && strcmp(json_string_value(v), name) == 0) return true;
    return false;
}

static minfer_status add_property(object *o, const char *name, bool required, uint32_t rule)
{
    if (!mf_grow((void **)&o->v, &o->cap, o->n + 1, sizeof *o->v)) return MF_NOMEM(o->s->err);
    o->v[o->n++] = (property){name, required, rule};
    return MINFER_OK;
}

static minfer_status read_properties(object *o, json_t *properties, const json_t *required)
{
    const char *name;
    json_t *j;
    json_object_foreach(properties, name, j)
    {
        mf_splace at;
        uint32_t rule;
        bool possible = true, needed = has_name(required, name);
        MF_TRY(mf_schema_below(o->s, o->p, "properties", name, j, &at));
        if (needed)
            MF_TRY(mf_schema_rule(o->s, at, &rule));
        else
            MF_TRY(mf_schema_try_rule(o->s, at, &rule, &possible));
        if (possible) MF_TRY(add_property(o, name, needed, rule));
    }
    return MINFER_OK;
}

/* Required names that properties does not have. */
static minfer_status read_required(object *o, const json_t *properties, const json_t *required)
{
    size_t i;
    json_t *v;
    json_array_foreach(required, i, v)
    {
        uint32_t rule;
        mf_buf b = {0};
        const char *name = json_string_value(v);
        if (!name)
            return mf_schema_fail(o->s, MINFER_ERR_ARG, o->p.at, "required has an entry that is not a text");
        if (json_object_get(properties, name)) continue;
        if (o->more == NO_RULE)
            return mf_schema_impossible(
                o->s, o->p.at, "'%s' is required, but neither a property nor allowed as a further one", name);
        MF_TRY(mf_schema_new_rule(o->s, o->p.at, &rule));
        minfer_status st = put_value(&b, o->more) ? mf_schema_put_rule(o->s, rule, &b) : MF_NOMEM(o->s->err);
        mf_buf_free(&b);
        MF_TRY(st);
        bool twice = false;
        for (size_t k = 0; k < o->n; k++) twice |= strcmp(o->v[k].name, name) == 0;
        if (!twice) MF_TRY(add_property(o, name, true, rule));
    }
    return MINFER_OK;
}

/* additionalProperties; without it, none where properties are named, else any. */
static minfer_status read_more(object *o, bool named, bool required)
{
    json_t *more = json_object_get(o->p.j, "additionalProperties");
    mf_splace at;
    uint32_t rule;
    bool possible;
    o->more = (more ? json_is_false(more) : named && !required) ? NO_RULE : ANY_VALUE;
    if (!more || json_is_boolean(more)) return MINFER_OK;
    MF_TRY(mf_schema_below(o->s, o->p, "additionalProperties", NULL, more, &at));
    MF_TRY(mf_schema_try_rule(o->s, at, &rule, &possible));
    if (possible)
        o->more = rule;
    else
        o->more = NO_RULE;
    return MINFER_OK;
}

static minfer_status read_object(object *o)
{
    json_t *properties = json_object_get(o->p.j, "properties"),
           *required = json_object_get(o->p.j, "required");
    bool named = json_object_size(properties) > 0, foreign = false;
    size_t i;
    json_t *v;
    if (properties && !json_is_object(properties))
        return mf_schema_fail(o->s, MINFER_ERR_ARG, o->p.at, "properties is not an object");
    if (required && !json_is_array(required))
        return mf_schema_fail(o->s, MINFER_ERR_ARG, o->p.at, "required is not a list");
    MF_TRY(mf_schema_count(o->s, o->p, "minProperties", &o->min));
    MF_TRY(mf_schema_count(o->s, o->p, "maxProperties", &o->max));
    if (o->min > o->max)
        return mf_schema_impossible(o->s, o->p.at, "minProperties %u is more than maxProperties %u", o->min,
                                    o->max);
    json_array_foreach(required, i, v) foreign |= !json_object_get(properties, json_string_value(v));
    MF_TRY(read_more(o, named, foreign));
    MF_TRY(read_properties(o, properties, required));
    MF_TRY(read_required(o, properties, required));
    if (named && !json_object_get(o->p.j, "additionalProperties")) o->more = NO_RULE;
    return MINFER_OK;
}

/* ---- names of further properties: not one of those that are named
 * Such a name is written without escapes, so named ones that need escapes cannot be met. */

static bool plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == '"' || *name == '\\' || *name == 0x7F) return false;
    return true;
}

/* A character in a class of GBNF. */
static bool put_class_char(mf_buf *b, const char *s, size_t n)
{
    bool special = strchr("]^-[\\", *s) != NULL;
    return (!special || mf_buf_char(b, '\\')) && mf_buf_append(b, s, n);
}

/* The rest of a name of which `at` bytes are those of every name in v[n]; where it stops being one of them it
 * is free. The rules form the tree of the names. */
static minfer_status put_other_names(object *o, const property *const *v, size_t n, size_t at, uint32_t *rule)
{
    mf_buf b = {0}, firsts = {0};
    bool ends = false, ok = true;
    if (at > MAX_NAME)
        return mf_schema_fail(o->s, MINFER_ERR_UNSUPPORTED, o->p.at,
                              "further properties beside one whose name has more than %d bytes", MAX_NAME);
    minfer_status st = mf_schema_new_rule(o->s, o->p.at, rule);
    for (size_t i = 0, k; i < n && ok && st == MINFER_OK; i = k) {
        const char *c = v[i]->name + at;
        uint32_t cp, below;
        size_t len = strlen(c) ? mf_utf8_decode(c, strlen(c), &cp) : 0;
        for (k = i + 1; k < n && strlen(c) && strncmp(v[k]->name + at, c, len) == 0;) k++;
        if (len == 0) {
            ends = true;
            continue;
        }
        st = put_other_names(o, v + i, k - i, at + len, &below);
        ok = put_class_char(&firsts, c, len) && mf_schema_literal(&b, c, len) &&
             mf_buf_printf(&b, " r%u | ", below);
    }
    ok = ok && mf_buf_str(&b, "[^\"\\\\\\x00-\\x1F\\x7F") &&
         (!firsts.len || mf_buf_append(&b, firsts.data, firsts.len)) && mf_buf_str(&b, "] plain*") &&
         (ends || mf_buf_str(&b, " | \"\""));
    if (st == MINFER_OK) st = ok ? mf_schema_put_rule(o->s, *rule, &b) : MF_NOMEM(o->s->err);
    mf_buf_free(&b);
    mf_buf_free(&firsts);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const property *const *)a)->name, (*(const property *const *)b)->name);
}

static minfer_status put_extra(object *o)
{
    size_t n = 0;
    uint32_t names = 0;
    mf_buf b = {0};
    minfer_status st = MINFER_OK;
    const property **v = mf_calloc(o->n, sizeof *v);
    if (!v) return MF_NOMEM(o->s->err);
    for (size_t i = 0; i < o->n; i++)
        if (plain(o->v[i].name)) v[n++] = &o->v[i];
    if (n) {
        qsort(v, n, sizeof *v, by_name);
        st = put_other_names(o, v, n, 0, &names);
    }
    if (st == MINFER_OK) st = mf_schema_new_rule(o->s, o->p.at, &o->extra);
    bool ok = n ? mf_buf_printf(&b, "\"\\\"\" r%u \"\\\"\"", names) : mf_buf_str(&b, "string");
    ok = ok && mf_buf_str(&b, " \":\" ws ") && put_value(&b, o->more);
    if (st == MINFER_OK) st = ok ? mf_schema_put_rule(o->s, o->extra, &b) : MF_NOMEM(o->s->err);
    mf_buf_free(&b);
    mf_free(v);
    return st;
}

/* ---- text */

static bool put_property(object *o, size_t i, mf_buf *b)
{
    json_t *key = json_string(o->v[i].name);
    bool ok = key && mf_schema_value(b, key) && mf_buf_printf(b, " \":\" ws r%u", o->v[i].rule);
    json_decref(key);
    return ok;
}

/* One more member after others: property i, or any number of further ones behind the last. */
static bool put_next(object *o, size_t i, mf_buf *b)
{
    if (i == o->n) return o->more == NO_RULE || mf_buf_printf(b, " (\",\" ws r%u)*", o->extra);
    bool needed = o->v[i].required;
    return mf_buf_str(b, needed ? " \",\" ws " : " (\",\" ws ") && put_property(o, i, b) &&
           (needed || mf_buf_str(b, ")?"));
}

/* Rules tail[i]: all members from i on, after others. */
static minfer_status put_tails(object *o, uint32_t *tail)
{
    minfer_status st = MINFER_OK;
    for (size_t i = o->n + 1; i-- > 1 && st == MINFER_OK;) {
        mf_buf b = {0};
        st = mf_schema_new_rule(o->s, o->p.at, &tail[i]);
        bool ok = put_next(o, i, &b) && (i == o->n || mf_buf_printf(&b, " r%u", tail[i + 1]));
        if (st == MINFER_OK) st = ok ? mf_schema_put_rule(o->s, tail[i], &b) : MF_NOMEM(o->s->err);
        mf_buf_free(&b);
    }
    return st;
}

/* The members begin with one of the properties up to the first required one. */
static minfer_status put_choice_of_first(object *o, mf_buf *b)
{
    uint32_t *tail = mf_calloc(o->n + 2, sizeof *tail);
    minfer_status st = tail ? put_tails(o, tail) : MF_NOMEM(o->s->err);
    bool ok = true, open = true;
    for (size_t i = 0; i < o->n && open && ok && st == MINFER_OK; i++) {
        ok = (i == 0 || mf_buf_str(b, " | ")) && put_property(o, i, b) &&
             mf_buf_printf(b, " r%u", tail[i + 1]);
        open = !o->v[i].required;
    }
    if (open && o->more != NO_RULE) ok = ok && mf_buf_printf(b, " | r%u (\",\" ws r%u)*", o->extra, o->extra);
    mf_free(tail);
    return st != MINFER_OK || ok ? st : MF_NOMEM(o->s->err);
}

static minfer_status put_members(object *o, mf_buf *b)
{
    bool ok = true;
    if (!o->v[0].required) return put_choice_of_first(o, b);
    ok = put_property(o, 0, b);
    for (size_t i = 1; i <= o->n && ok; i++) ok = put_next(o, i, b);
    return ok ? MINFER_OK : MF_NOMEM(o->s->err);
}

/* A list of min to max times `item`, separated by commas. */
static bool put_list(mf_buf *b, const char *item, uint32_t min, uint32_t max)
{
    if (max == 0) return mf_buf_str(b, " ws ");
    bool ok = mf_buf_printf(b, min ? " ws %s (\",\" ws %s){%u," : " ws (%s (\",\" ws %s){%u,", item, item,
                            min ? min - 1 : 0);
    if (max != MF_G_MANY) ok = ok && mf_buf_printf(b, "%u", max - 1);
    return ok && mf_buf_str(b, min ? "} ws " : "} ws)? ");
}

static minfer_status put_map(object *o, mf_buf *b)
{
    char item[16];
    if (o->more == NO_RULE && o->min > 0)
        return mf_schema_impossible(o->s, o->p.at, "minProperties %u, but no property is allowed", o->min);
    snprintf(item, sizeof item, "r%u", o->extra);
    return put_list(b, item, o->min, o->more == NO_RULE ? 0 : o->max) ? MINFER_OK : MF_NOMEM(o->s->err);
}

static minfer_status check_counts(const object *o)
{
    size_t required = 0;
    for (size_t i = 0; i < o->n; i++) required += o->v[i].required;
    bool closed = o->more == NO_RULE;
    if (required > o->max || (closed && o->min > o->n))
        return mf_schema_impossible(o->s, o->p.at,
                                    "no object has minProperties, maxProperties and what is required");
    if (o->min > required || (o->max != MF_G_MANY && (!closed || o->max < o->n)))
        return mf_schema_fail(o->s, MINFER_ERR_UNSUPPORTED, o->p.at,
                              "%s beside optional properties is not supported",
                              o->min > required ? "minProperties" : "maxProperties");
    return MINFER_OK;
}

static minfer_status put_object(object *o, mf_buf *b)
{
    bool needed = false;
    MF_TRY(read_object(o));
    if (o->more != NO_RULE) MF_TRY(put_extra(o));
    if (!mf_buf_str(b, "\"{\"")) return MF_NOMEM(o->s->err);
    if (o->n == 0) {
        MF_TRY(put_map(o, b));
    } else {
        MF_TRY(check_counts(o));
        for (size_t i = 0; i < o->n; i++) needed |= o->v[i].required;
        if (!mf_buf_str(b, needed ? " ws (" : " ws ((")) return MF_NOMEM(o->s->err);
        MF_TRY(put_members(o, b));
        if (!mf_buf_str(b, needed ? ") ws " : ") ws)? ")) return MF_NOMEM(o->s->err);
    }
    return mf_buf_str(b, "\"}\"") ? MINFER_OK : MF_NOMEM(o->s->err);
}

minfer_status mf_schema_object(mf_schema *s, mf_splace p, mf_buf *b)
{
    object o = {.s = s, .p = p, .max = MF_G_MANY};
    minfer_status st = put_object(&o, b);
    mf_free(o.v);
    return st;
}

/* ---- arrays */

typedef struct array {
    mf_schema *s;
    mf_splace p;
    json_t *prefix; /* schemas of the first items, or NULL */
    size_t n_prefix;
    int64_t item; /* rule of the others, ANY_VALUE, or NO_RULE */
    uint32_t min, max;
    bool short_prefix; /* minItems allows fewer items than prefix has */
} array;

/* A list under items is prefixItems as older drafts spell it, with additionalItems for the others. */
static minfer_status read_items(array *a)
{
    json_t *items = json_object_get(a->p.j, "items");
    const char *key = "items";
    bool possible;
    uint32_t rule;
    mf_splace at;
    a->prefix = json_object_get(a->p.j, "prefixItems");
    if (!a->prefix && json_is_array(items)) {
        a->prefix = items;
        key = "additionalItems";
        items = json_object_get(a->p.j, key);
    }
    if (a->prefix && !json_is_array(a->prefix))
        return mf_schema_fail(a->s, MINFER_ERR_ARG, a->p.at, "prefixItems is not a list");
    a->n_prefix = json_array_size(a->prefix);
    a->item = a->n_prefix && (!items || json_is_false(items)) ? NO_RULE : ANY_VALUE;
    if (!items || json_is_true(items) || a->item == NO_RULE) return MINFER_OK;
    MF_TRY(mf_schema_below(a->s, a->p, key, NULL, items, &at));
    MF_TRY(mf_schema_try_rule(a->s, at, &rule, &possible));
    if (possible)
        a->item = rule;
    else
        a->item = NO_RULE;
    return MINFER_OK;
}

static minfer_status read_array(array *a)
{
    json_t *unique = json_object_get(a->p.j, "uniqueItems");
    MF_TRY(mf_schema_count(a->s, a->p, "minItems", &a->min));
    MF_TRY(mf_schema_count(a->s, a->p, "maxItems", &a->max));
    if (a->min > a->max)
        return mf_schema_impossible(a->s, a->p.at, "minItems %u is more than maxItems %u", a->min, a->max);
    if (unique && !json_is_false(unique) && a->max > 1)
        return mf_schema_fail(a->s, MINFER_ERR_UNSUPPORTED, a->p.at,
                              "the keyword 'uniqueItems' is not supported");
    MF_TRY(read_items(a));
    if (a->n_prefix > a->max) a->n_prefix = a->max;
    if (a->item == NO_RULE && a->min > a->n_prefix)
        return mf_schema_impossible(a->s, a->p.at, "minItems %u, but only %zu items are allowed", a->min,
                                    a->n_prefix);
    a->short_prefix = json_object_get(a->p.j, "minItems") && a->min < a->n_prefix;
    return MINFER_OK;
}

/* Items behind those of prefix. */
static bool put_more_items(array *a, mf_buf *b)
{
    uint32_t n = (uint32_t)a->n_prefix, min = a->min > n ? a->min - n : 0;
    if (a->item == NO_RULE || a->max == n) return true;
    bool ok = mf_buf_str(b, " (\",\" ws ") && put_value(b, a->item) && mf_buf_printf(b, "){%u,", min);
    if (a->max != MF_G_MANY) ok = ok && mf_buf_printf(b, "%u", a->max - n);
    return ok && mf_buf_str(b, "}");
}

/* The items from i of prefix on, the last ones first: each is a rule that goes on with the next. Below
 * minItems, or without it, the first ones are required. */
static minfer_status put_prefix(array *a, mf_buf *b)
{
    mf_buf after = {0};
    bool ok = put_more_items(a, &after) && mf_buf_str(&after, "");
    minfer_status st = MINFER_OK;
    for (size_t i = a->n_prefix; i-- > 0 && ok && st == MINFER_OK;) {
        char place[24];
        mf_splace at;
        uint32_t rule, next = 0;
        mf_buf one = {0};
        bool optional = a->short_prefix && i >= a->min;
        snprintf(place, sizeof place, "%zu", i);
        st = mf_schema_below(a->s, a->p, "prefixItems", place, json_array_get(a->prefix, i), &at);
        if (st == MINFER_OK) st = mf_schema_rule(a->s, at, &rule);
        if (st == MINFER_OK) st = mf_schema_new_rule(a->s, a->p.at, &next);
        ok = st != MINFER_OK ||
             (mf_buf_str(&one, optional ? "(" : "") && mf_buf_str(&one, i ? "\",\" ws " : "") &&
              mf_buf_printf(&one, "r%u ", rule) &&
              (!after.len || mf_buf_append(&one, after.data, after.len)) &&
              mf_buf_str(&one, optional ? ")?" : ""));
        if (st == MINFER_OK && ok) st = mf_schema_put_rule(a->s, next, &one);
        mf_buf_free(&one);
        after.len = 0;
        ok = ok && mf_buf_printf(&after, " r%u", next);
    }
    ok = ok && mf_buf_str(b, " ws") && mf_buf_append(b, after.data, after.len) && mf_buf_str(b, " ws ");
    mf_buf_free(&after);
    return st != MINFER_OK || ok ? st : MF_NOMEM(a->s->err);
}

static minfer_status put_array(array *a, mf_buf *b)
{
    char item[16] = "value";
    MF_TRY(read_array(a));
    if (!mf_buf_str(b, "\"[\"")) return MF_NOMEM(a->s->err);
    if (a->n_prefix) {
        MF_TRY(put_prefix(a, b));
    } else {
        if (a->item >= 0) snprintf(item, sizeof item, "r%u", (uint32_t)a->item);
        if (!put_list(b, item, a->min, a->item == NO_RULE ? 0 : a->max)) return MF_NOMEM(a->s->err);
    }
    return mf_buf_str(b, "\"]\"") ? MINFER_OK : MF_NOMEM(a->s->err);
}

minfer_status mf_schema_array(mf_schema *s, mf_splace p, mf_buf *b)
{
    array a = {.s = s, .p = p, .max = MF_G_MANY};
    return put_array(&a, b);
}
