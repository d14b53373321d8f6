/* JSON output: json.dumps without HTML escaping. */
#include "template/number.h"
#include "template/print.h"
#include "template/sort.h"
#include "template/unicode.h"

#include <math.h>
#include <string.h>

typedef struct writer {
    mf_trender *r;
    mf_tsb *out;
    const mf_tjson *how;
    size_t level;
} writer;

static minfer_status put_value(writer *w, mf_tval v);

static minfer_status put(writer *w, const char *text)
{
    return mf_tsb_text(w->r, w->out, text);
}

/* The short escape of a character, or NULL. */
static const char *short_escape(uint32_t cp)
{
    switch (cp) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\f': return "\\f";
    case '\b': return "\\b";
    default: return NULL;
    }
}

static minfer_status put_unicode_escape(writer *w, uint32_t cp)
{
    if (cp < 0x10000) return mf_tsb_printf(w->r, w->out, "\\u%04x", cp);
    cp -= 0x10000;
    return mf_tsb_printf(w->r, w->out, "\\u%04x\\u%04x", 0xD800 + (cp >> 10), 0xDC00 + (cp & 0x3FF));
}

static minfer_status put_string(writer *w, const mf_tstr *s)
{
    uint32_t cp;
    size_t plain = 0; /* start of what has not been written yet */
    MF_TRY(put(w, "\""));
    for (size_t i = 0, k; i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        const char *escape = short_escape(cp);
        if (!escape && cp >= 0x20 && !(w->how->ascii && cp > 0x7E)) continue;
        MF_TRY(mf_tsb_put(w->r, w->out, s->p + plain, i - plain));
        MF_TRY(escape ? put(w, escape) : put_unicode_escape(w, cp));
        plain = i + k;
    }
    MF_TRY(mf_tsb_put(w->r, w->out, s->p + plain, s->n - plain));
    return put(w, "\"");
}

static minfer_status put_float(writer *w, double f)
{
    char text[MF_NUMBER_REPR];
    if (isnan(f)) return put(w, "NaN");
    if (isinf(f)) return put(w, f < 0 ? "-Infinity" : "Infinity");
    return mf_tsb_put(w->r, w->out, text, mf_tnumber_repr(f, text));
}

static minfer_status put_newline(writer *w)
{
    if (!w->how->indent) return MINFER_OK;
    MF_TRY(put(w, "\n"));
    return mf_tsb_fill(w->r, w->out, w->how->indent->p, w->how->indent->n, w->level);
}

static minfer_status put_separator(writer *w, size_t i)
{
    if (i) MF_TRY(mf_tsb_put(w->r, w->out, w->how->item->p, w->how->item->n));
    return put_newline(w);
}

static minfer_status put_items(writer *w, mf_tval v)
{
    if (v.list->n == 0) return put(w, "[]");
    MF_TRY(put(w, "["));
    w->level++;
    for (size_t i = 0; i < v.list->n; i++) {
        MF_TRY(put_separator(w, i));
        MF_TRY(put_value(w, v.list->v[i]));
    }
    w->level--;
    MF_TRY(put_newline(w));
    return put(w, "]");
}

/* Keys that are not strings are written as the text of their value. */
static minfer_status put_key(writer *w, mf_tval key)
{
    if (mf_tis(key, MF_T_STR)) return put_string(w, key.s);
    if (!mf_tis_number(key) && !mf_tis(key, MF_T_NONE))
        return mf_trender_raise(w->r, MF_TE_TYPE, "keys must be str, int, float, bool or None, not %s",
                                mf_tval_type_name(key));
    MF_TRY(put(w, "\""));
    MF_TRY(put_value(w, key));
    return put(w, "\"");
}

static minfer_status put_entry(writer *w, size_t i, mf_tval key, mf_tval value)
{
    MF_TRY(put_separator(w, i));
    MF_TRY(put_key(w, key));
    MF_TRY(mf_tsb_put(w->r, w->out, w->how->pair->p, w->how->pair->n));
    return put_value(w, value);
}

static minfer_status put_sorted(writer *w, const mf_tdict *d)
{
    mf_tlist *pairs;
    MF_TRY(mf_tsort_entries(w->r, d, &pairs));
    for (size_t i = 0; i < pairs->n; i++)
        MF_TRY(put_entry(w, i, pairs->v[i].list->v[0], pairs->v[i].list->v[1]));
    return MINFER_OK;
}

static minfer_status put_entries(writer *w, mf_tval v)
{
    if (v.dict->live == 0) return put(w, "{}");
    MF_TRY(put(w, "{"));
    w->level++;
    size_t at = 0, i = 0;
    if (w->how->sort_keys)
        MF_TRY(put_sorted(w, v.dict));
    else
        for (const mf_tentry *e; (e = mf_tdict_next(v.dict, &at));)
            MF_TRY(put_entry(w, i++, e->key, e->value));
    w->level--;
    MF_TRY(put_newline(w));
    return put(w, "}");
}

static minfer_status put_nested(writer *w, mf_tval v, bool *busy, minfer_status (*body)(writer *, mf_tval))
{
    if (*busy) return mf_trender_raise(w->r, MF_TE_VALUE, "Circular reference detected");
    *busy = true;
    minfer_status st = mf_trender_enter(w->r);
    if (st == MINFER_OK) st = body(w, v);
    mf_trender_leave(w->r);
    *busy = false;
    return st;
}

static minfer_status put_value(writer *w, mf_tval v)
{
    char text[MF_PRINT_INT];
    MF_TRY(mf_trender_step(w->r));
    switch (v.type) {
    case MF_T_NONE: return put(w, "null");
    case MF_T_BOOL: return put(w, v.b ? "true" : "false");
    case MF_T_INT: return mf_tsb_put(w->r, w->out, text, mf_tprint_int(v.i, text));
    case MF_T_FLOAT: return put_float(w, v.f);
    case MF_T_STR: return put_string(w, v.s);
    case MF_T_LIST:
    case MF_T_TUPLE: return put_nested(w, v, &v.list->busy, put_items);
    case MF_T_DICT: return put_nested(w, v, &v.dict->busy, put_entries);
    default:
        return mf_trender_raise(w->r, MF_TE_TYPE, "Object of type %s is not JSON serializable",
                                mf_tval_type_name(v));
    }
}

minfer_status mf_tval_json(mf_trender *r, mf_tsb *out, mf_tval v, const mf_tjson *how)
{
    return put_value(&(writer){.r = r, .out = out, .how = how}, v);
}
