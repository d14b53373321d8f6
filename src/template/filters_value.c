/* Filters on single values: numbers, defaults, JSON. */
#include "template/attr.h"
#include "template/filters.h"
#include "template/fromjson.h"
#include "template/iter.h"
#include "template/number.h"
#include "template/ops.h"
#include "template/print.h"

#include <math.h>
#include <string.h>

static minfer_status absolute(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval v = a->v[0];
    if (!mf_tis_number(v))
        return mf_trender_raise(r, MF_TE_TYPE, "bad operand type for abs(): '%s'", mf_tval_type_name(v));
    *out = mf_tis(v, MF_T_FLOAT) ? mf_tfloat(fabs(v.f)) : mf_tint(mf_tas_int(v));
    return mf_tis(*out, MF_T_INT) && out->i < 0 ? mf_tval_neg(r, *out, out) : MINFER_OK;
}

static minfer_status otherwise(mf_trender *r, mf_targs *a, mf_tval *out)
{
    bool use = mf_tis(a->v[0], MF_T_UNDEFINED) || (mf_targ_truth(a, 2, false) && !mf_tval_truth(a->v[0]));
    *out = use ? a->v[1] : a->v[0];
    return mf_tis(*out, MF_T_MISSING) ? mf_tstr_lit(r, "", out) : MINFER_OK;
}

static minfer_status attr(mf_trender *r, mf_targs *a, mf_tval *out)
{
    if (!mf_tis(a->v[1], MF_T_STR)) return mf_trender_raise(r, MF_TE_TYPE, "attribute name must be string");
    MF_TRY(mf_tattr_only(r, a->v[0], a->v[1], out));
    return mf_tis(*out, MF_T_MISSING) ? mf_tundefined(r, a->v[0], a->v[1], out) : MINFER_OK;
}

/* -- conversions -- */

/* int() of a float; *ok is false for NaN, and infinities too when quiet. */
static minfer_status int_of_float(mf_trender *r, double f, bool quiet, int64_t *out, bool *ok)
{
    *ok = !isnan(f) && !(quiet && isinf(f));
    if (!*ok) return MINFER_OK;
    if (isinf(f)) return mf_trender_raise(r, MF_TE_OVERFLOW, "cannot convert float infinity to integer");
    if (f < -0x1p63 || f >= 0x1p63) return mf_tval_too_big(r);
    *out = (int64_t)f;
    return MINFER_OK;
}

static minfer_status int_of_text(mf_trender *r, const mf_tstr *s, mf_tval base, int64_t *out, bool *ok)
{
    double f;
    int64_t radix = mf_tis_int(base) ? mf_tas_int(base) : mf_tis(base, MF_T_MISSING) ? 10 : -1;
    MF_TRY(mf_trender_charge(r, s->n));
    *ok = false;
    if (radix == 0 || (radix >= 2 && radix <= 36)) {
        mf_tparse p = mf_tnumber_parse_int(s->p, s->n, radix, out);
        if (p == MF_PARSE_BIG) return mf_tval_too_big(r);
        *ok = p == MF_PARSE_OK;
    }
    if (*ok || mf_tnumber_parse_float(s->p, s->n, &f) != MF_PARSE_OK) return MINFER_OK;
    return int_of_float(r, f, true, out, ok);
}

static minfer_status to_int(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval v = a->v[0];
    bool ok = false;
    mf_tval result = mf_tint(0);
    if (mf_tis(v, MF_T_UNDEFINED)) return mf_tundefined_raise(r, v);
    if (mf_tis_int(v))
        result.i = mf_tas_int(v), ok = true;
    else if (mf_tis(v, MF_T_FLOAT))
        MF_TRY(int_of_float(r, v.f, false, &result.i, &ok));
    else if (mf_tis(v, MF_T_STR))
        MF_TRY(int_of_text(r, v.s, a->v[2], &result.i, &ok));
    *out = ok ? result : mf_targ_or(a, 1, mf_tint(0));
    return MINFER_OK;
}

static minfer_status to_float(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval v = a->v[0];
    double f;
    if (mf_tis(v, MF_T_UNDEFINED)) return mf_tundefined_raise(r, v);
    *out = mf_targ_or(a, 1, mf_tfloat(0));
    if (mf_tis_number(v))
        *out = mf_tfloat(mf_tas_double(v));
    else if (mf_tis(v, MF_T_STR) && mf_tnumber_parse_float(v.s->p, v.s->n, &f) == MF_PARSE_OK)
        *out = mf_tfloat(f);
    return MINFER_OK;
}

/* -- round -- */

enum { MAX_PLACES = 400 }; /* no double has digits beyond */

/* Halves go to the even neighbour; done on the decimal digits, as Python does. */
static minfer_status round_float(mf_trender *r, double f, int64_t places, double *out)
{
    mf_tsb text = {0};
    *out = f;
    if (!isfinite(f) || places > MAX_PLACES) return MINFER_OK;
    if (places >= 0) {
        MF_TRY(mf_tnumber_format(r, &text, f, 'f', (int)places, false));
        mf_tnumber_parse_float(text.p, text.n, out);
        return MINFER_OK;
    }
    double unit = pow(10, places < -MAX_PLACES ? MAX_PLACES : (double)-places);
    *out = isinf(unit) ? copysign(0, f) : nearbyint(f / unit) * unit;
    return MINFER_OK;
}

static minfer_status round_int(mf_trender *r, int64_t i, int64_t places, int64_t *out)
{
    int64_t unit = 1;
    *out = i;
    if (places >= 0) return MINFER_OK;
    for (int64_t k = places; k < 0; k++)
        if (__builtin_mul_overflow(unit, 10, &unit)) return *out = 0, MINFER_OK;
    int64_t rest = i % unit, down = i - rest, far = rest < 0 ? -rest : rest;
    bool up = far > unit - far || (far == unit - far && (down / unit) % 2 != 0);
    if (up && __builtin_add_overflow(down, i < 0 ? -unit : unit, &down)) return mf_tval_too_big(r);
    *out = down;
    return MINFER_OK;
}

static minfer_status round_to_side(mf_trender *r, double f, int64_t places, bool up, mf_tval *out)
{
    double unit = pow(10, (double)places), scaled = f * unit;
    if (isinf(scaled)) return mf_trender_raise(r, MF_TE_OVERFLOW, "cannot convert float infinity to integer");
    if (isnan(scaled)) return mf_trender_raise(r, MF_TE_VALUE, "cannot convert float NaN to integer");
    *out = mf_tfloat((up ? ceil(scaled) : floor(scaled)) / unit + 0.0);
    return MINFER_OK;
}

static minfer_status round_number(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tval v = a->v[0], method = a->v[2];
    int64_t places;
    bool common = mf_tis(method, MF_T_MISSING), up = false, down = false;
    if (mf_tis(method, MF_T_STR)) {
        common = mf_tstr_is(method.s, "common");
        up = mf_tstr_is(method.s, "ceil");
        down = mf_tstr_is(method.s, "floor");
    }
    if (!common && !up && !down)
        return mf_trender_raise(r, MF_TE_FILTER, "method must be common, ceil or floor");
    if (!mf_tis_number(v)) {
        if (!common && mf_tis(v, MF_T_UNDEFINED)) return mf_tundefined_raise(r, v);
        return mf_trender_raise(r, MF_TE_TYPE, "type %s doesn't define __round__ method",
                                mf_tval_type_name(v));
    }
    MF_TRY(mf_targ_int(r, a, 1, 0, &places));
    if (!common) return round_to_side(r, mf_tas_double(v), places, up, out);
    *out = mf_tis(v, MF_T_FLOAT) ? mf_tfloat(0) : mf_tint(0);
    return mf_tis(v, MF_T_FLOAT) ? round_float(r, v.f, places, &out->f)
                                 : round_int(r, mf_tas_int(v), places, &out->i);
}

/* -- file sizes -- */

static minfer_status filesizeformat(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static const char prefixes[] = "kMGTPEZY";
    mf_tval v = a->v[0];
    mf_tsb text = {0};
    double bytes = 0;
    bool binary = mf_targ_truth(a, 1, false);
    if (mf_tis(v, MF_T_UNDEFINED)) return mf_tundefined_raise(r, v);
    if (mf_tis_number(v))
        bytes = mf_tas_double(v);
    else if (!mf_tis(v, MF_T_STR))
        return mf_trender_raise(r, MF_TE_TYPE, "float() argument must be a string or a real number, not '%s'",
                                mf_tval_type_name(v));
    else if (mf_tnumber_parse_float(v.s->p, v.s->n, &bytes) != MF_PARSE_OK)
        return mf_trender_raise(r, MF_TE_VALUE, "could not convert string to float");
    double base = binary ? 1024 : 1000, unit = base;
    if (bytes == 1) return mf_tstr_lit(r, "1 Byte", out);
    if (bytes < base)
        MF_TRY(mf_tsb_printf(r, &text, "%lld Bytes", (long long)bytes));
    else {
        size_t i = 0;
        for (unit *= base; i < 7 && !(bytes < unit); i++) unit *= base;
        MF_TRY(mf_tnumber_format(r, &text, base * bytes / unit, 'f', 1, false));
        char prefix = binary && i == 0 ? 'K' : prefixes[i];
        MF_TRY(mf_tsb_printf(r, &text, " %c%sB", prefix, binary ? "i" : ""));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- JSON -- */

static minfer_status json_indent(mf_trender *r, mf_tval v, mf_tval *level)
{
    int64_t n;
    *level = v;
    if (mf_tis(v, MF_T_STR)) return MINFER_OK;
    MF_TRY(mf_tval_need_int(r, v, &n));
    mf_tsb text = {0};
    MF_TRY(mf_tsb_fill(r, &text, " ", 1, n > 0 ? (size_t)n : 0));
    return mf_tstr_wrap(r, text.p, text.n, level);
}

static minfer_status json_separators(mf_trender *r, mf_tval v, mf_tjson *how)
{
    mf_tlist *pair;
    MF_TRY(mf_titer_list(r, v, &pair));
    if (pair->n != 2)
        return mf_trender_raise(r, MF_TE_VALUE, "separators must be a pair, got %zu items", pair->n);
    MF_TRY(mf_tval_need_str(r, pair->v[0], &how->item));
    return mf_tval_need_str(r, pair->v[1], &how->pair);
}

static bool given(const mf_targs *a, size_t i)
{
    return mf_targ_given(a, i) && !mf_tis(a->v[i], MF_T_NONE);
}

static minfer_status tojson(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static const mf_tstr comma = {",", 1, 1}, comma_blank = {", ", 2, 2}, colon = {": ", 2, 2};
    mf_tjson how = {
        .ascii = mf_targ_truth(a, 1, false), .sort_keys = mf_targ_truth(a, 4, false), .pair = &colon};
    mf_tval level;
    mf_tsb text = {0};
    if (given(a, 2)) {
        MF_TRY(json_indent(r, a->v[2], &level));
        how.indent = level.s;
    }
    how.item = how.indent ? &comma : &comma_blank;
    if (given(a, 3)) MF_TRY(json_separators(r, a->v[3], &how));
    MF_TRY(mf_tval_json(r, &text, a->v[0], &how));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* Not in Jinja; some public templates expect it. */
static minfer_status from_json(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    const char *why;
    MF_TRY(mf_tval_need_str(r, a->v[0], &s));
    MF_TRY(mf_trender_charge(r, s->n));
    MF_TRY(mf_tval_from_json(r, s->p, s->n, out, &why));
    return why ? mf_trender_raise(r, MF_TE_VALUE, "from_json: %s", why) : MINFER_OK;
}

static minfer_status pprint(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tsb text = {0};
    MF_TRY(mf_tval_pprint(r, &text, a->v[0]));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status no_random(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)a, (void)out;
    return mf_fail(r->err, MINFER_ERR_UNSUPPORTED,
                   "the filter 'random' is not available: a rendering is repeatable");
}

static const mf_tfndef defs[] = {
    {"abs", absolute, "", 0, 0},
    {"attr", attr, "name", 1, 0},
    {"d", otherwise, "default_value boolean", 0, 0},
    {"default", otherwise, "default_value boolean", 0, 0},
    {"filesizeformat", filesizeformat, "binary", 0, 0},
    {"float", to_float, "default", 0, 0},
    {"from_json", from_json, "", 0, 0},
    {"int", to_int, "default base", 0, 0},
    {"pprint", pprint, "", 0, 0},
    {"random", no_random, "", 0, 0},
    {"round", round_number, "precision method", 0, 0},
    {"tojson", tojson, "ensure_ascii indent separators sort_keys", 0, 0},
};

const mf_tfndef *mf_tfilter_value_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
