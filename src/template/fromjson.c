/* jansson's trees as values. */
#include "template/fromjson.h"

#include "base/json.h"

#include <string.h>

static minfer_status convert(mf_trender *r, const json_t *j, mf_tval *out);

static minfer_status convert_array(mf_trender *r, const json_t *j, mf_tval *out)
{
    mf_tlist *l;
    size_t n = json_array_size(j);
    MF_TRY(mf_tlist_new(r, n, &l));
    for (; l->n < n; l->n++) MF_TRY(convert(r, json_array_get(j, l->n), &l->v[l->n]));
    *out = mf_tlistval(l);
    return MINFER_OK;
}

static minfer_status convert_object(mf_trender *r, json_t *j, mf_tval *out)
{
    mf_tdict *d;
    MF_TRY(mf_tdict_new(r, &d));
    for (void *it = json_object_iter(j); it; it = json_object_iter_next(j, it)) {
        mf_tval key, value;
        const char *name = json_object_iter_key(it);
        MF_TRY(mf_tstr_new(r, name, strlen(name), &key));
        MF_TRY(convert(r, json_object_iter_value(it), &value));
        MF_TRY(mf_tdict_set(r, d, key, value));
    }
    *out = mf_tdictval(d);
    return MINFER_OK;
}

static minfer_status convert_nested(mf_trender *r, const json_t *j, mf_tval *out)
{
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK)
        st = json_is_array(j) ? convert_array(r, j, out) : convert_object(r, (json_t *)(uintptr_t)j, out);
    mf_trender_leave(r);
    return st;
}

static minfer_status convert(mf_trender *r, const json_t *j, mf_tval *out)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT:
    case JSON_ARRAY: return convert_nested(r, j, out);
    case JSON_STRING: return mf_tstr_new(r, json_string_value(j), json_string_length(j), out);
    case JSON_INTEGER: *out = mf_tint(json_integer_value(j)); break;
    case JSON_REAL: *out = mf_tfloat(json_real_value(j)); break;
    case JSON_TRUE: *out = mf_tbool(true); break;
    case JSON_FALSE: *out = mf_tbool(false); break;
    case JSON_NULL: *out = mf_tnone(); break;
    }
    return MINFER_OK;
}

static minfer_status explain(mf_trender *r, const mf_json_error *e, const char **why)
{
    if (e->nomem) return mf_json_fail(e, r->err);
    mf_tsb text = {0};
    MF_TRY(mf_tsb_text(r, &text, e->text));
    MF_TRY(mf_tsb_printf(r, &text, " at line %d, column %d", e->line, e->column));
    MF_TRY(mf_tsb_char(r, &text, 0));
    *why = text.p;
    return MINFER_OK;
}

minfer_status mf_tval_from_json(mf_trender *r, const char *text, size_t n, mf_tval *out, const char **why)
{
    mf_json_error e;
    *why = NULL;
    json_t *j = mf_json_read(text, n, MF_JSON_ANY, &e);
    if (!j) return explain(r, &e, why);
    minfer_status st = convert(r, j, out);
    json_decref(j);
    return st;
}
