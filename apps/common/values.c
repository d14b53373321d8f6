/* Values of options: from text to fields and back, and what is possible. */
#include "common/options.h"

#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *field_of(const app_option *row, app_options *o)
{
    return (char *)o + row->field;
}

/* "a number from 0 to 1", "a whole number of at least -1" */
static bool describe_range(const app_option *row, mf_buf *out)
{
    bool low = row->lo > INT32_MIN, high = row->hi < INT32_MAX;
    bool ok = mf_buf_str(out, row->kind == APP_FLOAT ? "a number" : "a whole number");
    if (low && high) ok = ok && mf_buf_printf(out, " from %.10g to %.10g", row->lo, row->hi);
    if (low && !high) ok = ok && mf_buf_printf(out, " of at least %.10g", row->lo);
    return ok && (!row->word || mf_buf_printf(out, ", or %s", row->word));
}

static bool describe_choices(const app_option *row, mf_buf *out)
{
    bool ok = true;
    for (size_t i = 0; row->choices[i] && ok; i++)
        ok = mf_buf_printf(out, "%s%s", i ? ", " : "one of ", row->choices[i]);
    return ok;
}

bool app_value_possible(const app_option *row, mf_buf *out)
{
    switch (row->kind) {
    case APP_FLAG: return mf_buf_str(out, "0 or 1");
    case APP_INT:
    case APP_FLOAT: return describe_range(row, out);
    case APP_ABOVE: return mf_buf_printf(out, "a number above %g", row->lo);
    case APP_SEED: return mf_buf_str(out, "a whole number from 0 to 2^64-1, or -1");
    case APP_INTS:
        return mf_buf_printf(out, "a list of whole numbers from %.0f to %.0f, separated by commas", row->lo,
                             row->hi);
    case APP_TEXTS: return mf_buf_str(out, "a text of at least one character");
    case APP_BIASES: return mf_buf_str(out, "ID=B with a token id and a number or -inf");
    case APP_TEXT:
    case APP_CHOICE: return row->choices ? describe_choices(row, out) : mf_buf_str(out, "a text");
    }
    return true;
}

static minfer_status refuse(const app_option *row, const char *label, const char *text, minfer_error *err)
{
    mf_buf possible = {0};
    size_t n = strnlen(text, 80);
    n -= mf_utf8_incomplete_tail(text, n);
    bool ok = app_value_possible(row, &possible);
    minfer_status st = ok ? mf_fail(err, MINFER_ERR_ARG, "%s: '%.*s%s' is not %s", label, (int)n, text,
                                    text[n] ? "..." : "", possible.data)
                          : MF_NOMEM(err);
    mf_buf_free(&possible);
    return st;
}

/* Decimal, all of it (up to `end`, where one is given). */
static bool read_int(const char *s, const char **end, double lo, double hi, int32_t *out)
{
    char *stop;
    if (*s != '-' && *s != '+' && (*s < '0' || *s > '9')) return false;
    errno = 0;
    long long v = strtoll(s, &stop, 10);
    if (errno || stop == s || (!end && *stop) || (double)v < lo || (double)v > hi) return false;
    if (end) *end = stop;
    *out = (int32_t)v;
    return true;
}

static bool read_float(const char *s, float *out)
{
    char *stop;
    if (s[strspn(s, "0123456789+-.eE")]) return false;
    *out = strtof(s, &stop);
    return stop != s && !*stop && isfinite(*out);
}

static bool set_int(const app_option *row, const char *text, int32_t *out)
{
    if (row->word && strcmp(text, row->word) == 0) {
        *out = -1;
        return true;
    }
    return read_int(text, NULL, row->lo, row->hi, out);
}

static bool set_float(const app_option *row, const char *text, float *out)
{
    float v;
    if (!read_float(text, &v)) return false;
    if (row->kind == APP_ABOVE ? !((double)v > row->lo) : (double)v < row->lo || (double)v > row->hi)
        return false;
    *out = v;
    return true;
}

static bool set_seed(const char *text, app_seed *out)
{
    char *stop;
    *out = (app_seed){0};
    if (strcmp(text, "-1") == 0) return true;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long v = strtoull(text, &stop, 10);
    if (errno || *stop) return false;
    *out = (app_seed){true, v};
    return true;
}

static size_t choice_of(const app_option *row, const char *text)
{
    size_t i = 0;
    while (row->choices[i] && strcmp(row->choices[i], text) != 0) i++;
    return i;
}

/* Token ids may come as a JSON array, as --ids prints them. *ok: the text is a list. */
static minfer_status set_ints(const app_option *row, const char *s, app_ints *out, bool *ok,
                              minfer_error *err)
{
    bool bracket = *s == '[';
    s += bracket;
    out->n = 0;
    *ok = false;
    for (;; s++) {
        s += strspn(s, " ");
        if (!mf_grow((void **)&out->v, &out->cap, out->n + 1, sizeof *out->v)) return MF_NOMEM(err);
        if (!read_int(s, &s, row->lo, row->hi, &out->v[out->n])) return MINFER_OK;
        out->n++;
        s += strspn(s, " ");
        if (*s != ',') break;
    }
    *ok = bracket ? strcmp(s, "]") == 0 : *s == 0;
    return MINFER_OK;
}

static minfer_status add_text(const char *text, app_texts *out, bool *ok, minfer_error *err)
{
    *ok = *text != 0;
    if (!*ok) return MINFER_OK;
    if (!mf_grow((void **)&out->v, &out->cap, out->n + 1, sizeof *out->v)) return MF_NOMEM(err);
    out->v[out->n++] = text;
    return MINFER_OK;
}

static minfer_status add_bias(const char *text, app_biases *out, bool *ok, minfer_error *err)
{
    minfer_logit_bias b;
    const char *s = text;
    *ok = read_int(text, &s, 0, INT32_MAX, &b.id) && *s == '=';
    if (*ok && strcmp(s, "=-inf") == 0)
        b.bias = -INFINITY;
    else
        *ok = *ok && read_float(s + 1, &b.bias);
    if (!*ok) return MINFER_OK;
    if (!mf_grow((void **)&out->v, &out->cap, out->n + 1, sizeof *out->v)) return MF_NOMEM(err);
    out->v[out->n++] = b;
    return MINFER_OK;
}

minfer_status app_value_set(const app_option *row, const char *label, const char *text, app_options *o,
                            minfer_error *err)
{
    void *field = field_of(row, o);
    bool ok = false;
    switch (row->kind) {
    case APP_FLAG:
        ok = strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
        *(bool *)field = *text == '1';
        break;
    case APP_INT: ok = set_int(row, text, field); break;
    case APP_FLOAT:
    case APP_ABOVE: ok = set_float(row, text, field); break;
    case APP_SEED: ok = set_seed(text, field); break;
    case APP_TEXT:
        ok = !row->choices || row->choices[choice_of(row, text)];
        *(const char **)field = text;
        break;
    case APP_CHOICE:
        ok = row->choices[choice_of(row, text)] != NULL;
        *(int32_t *)field = (int32_t)row->lo + (int32_t)choice_of(row, text);
        break;
    case APP_INTS: MF_TRY(set_ints(row, text, field, &ok, err)); break;
    case APP_TEXTS: MF_TRY(add_text(text, field, &ok, err)); break;
    case APP_BIASES: MF_TRY(add_bias(text, field, &ok, err)); break;
    }
    if (!ok) return refuse(row, label, text, err);
    o->sampling_given |= row->sampling;
    return MINFER_OK;
}

bool app_value_show(const app_option *row, const app_options *o, mf_buf *out)
{
    const void *field = (const char *)o + row->field;
    switch (row->kind) {
    case APP_FLAG: return mf_buf_str(out, *(const bool *)field ? "1" : "0");
    case APP_INT: {
        int32_t v = *(const int32_t *)field;
        return v == -1 && row->word ? mf_buf_str(out, row->word) : mf_buf_printf(out, "%d", v);
    }
    case APP_FLOAT:
    case APP_ABOVE: return mf_buf_printf(out, "%g", (double)*(const float *)field);
    case APP_CHOICE: {
        int32_t i = *(const int32_t *)field - (int32_t)row->lo;
        return i < 0 || mf_buf_str(out, row->choices[i]);
    }
    case APP_TEXT: {
        const char *text = *(const char *const *)field;
        return mf_buf_str(out, text ? text : "");
    }
    case APP_SEED:
    case APP_INTS:
    case APP_TEXTS:
    case APP_BIASES: return true; /* nothing by default */
    }
    return true;
}
