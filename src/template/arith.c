/* Arithmetic: integers of 64 bits (what does not fit is refused), IEEE doubles, and + and * of sequences.
 * Signs of
 * // and % follow the divisor, as in Python. */
#include "template/format.h"
#include "template/ops.h"

#include <math.h>

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

minfer_status mf_tval_too_big(mf_trender *r)
{
    return mf_fail(r->err, MINFER_ERR_LIMIT, "an integer does not fit in 64 bits");
}

static minfer_status by_zero(mf_trender *r, const char *what)
{
    return mf_trender_raise(r, MF_TE_ZERO, "%s", what);
}

/* -- integers -- */

static minfer_status int_floordiv(mf_trender *r, int64_t a, int64_t b, int64_t *q)
{
    if (b == 0) return by_zero(r, "integer division or modulo by zero");
    if (a == INT64_MIN && b == -1) return mf_tval_too_big(r);
    *q = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return MINFER_OK;
}

static minfer_status int_mod(mf_trender *r, int64_t a, int64_t b, int64_t *m)
{
    if (b == 0) return by_zero(r, "integer modulo by zero");
    *m = b == -1 ? 0 : a % b;
    if (*m != 0 && (*m < 0) != (b < 0)) *m += b;
    return MINFER_OK;
}

static minfer_status float_pow(mf_trender *r, double a, double b, double *out)
{
    if (a == 0 && b < 0) return by_zero(r, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return mf_fail(r->err, MINFER_ERR_UNSUPPORTED, "complex numbers are not supported: %g ** %g", a, b);
    *out = pow(a, b);
    if (isinf(*out) && isfinite(a) && isfinite(b))
        return mf_trender_raise(r, MF_TE_OVERFLOW, "(34, 'Numerical result out of range')");
    return MINFER_OK;
}

static minfer_status int_pow(mf_trender *r, int64_t a, int64_t b, int64_t *out)
{
    int64_t result = 1;
    for (; b > 0; b >>= 1) {
        if ((b & 1) && __builtin_mul_overflow(result, a, &result)) return mf_tval_too_big(r);
        if (b > 1 && __builtin_mul_overflow(a, a, &a)) return mf_tval_too_big(r);
    }
    *out = result;
    return MINFER_OK;
}

static minfer_status int_op(mf_trender *r, mf_top op, int64_t a, int64_t b, int64_t *out)
{
    bool over = false;
    switch (op) {
    case MF_OP_ADD: over = __builtin_add_overflow(a, b, out); break;
    case MF_OP_SUB: over = __builtin_sub_overflow(a, b, out); break;
    case MF_OP_MUL: over = __builtin_mul_overflow(a, b, out); break;
    case MF_OP_FLOORDIV: return int_floordiv(r, a, b, out);
    case MF_OP_MOD: return int_mod(r, a, b, out);
    case MF_OP_POW: return int_pow(r, a, b, out);
    case MF_OP_DIV: break;
    }
    return over ? mf_tval_too_big(r) : MINFER_OK;
}

/* -- floats -- */

static double float_mod(double a, double b)
{
    double m = fmod(a, b);
    if (m == 0) return copysign(0.0, b);
    return (m < 0) != (b < 0) ? m + b : m;
}

/* The quotient is computed from the remainder, so that a == (a // b) * b + a % b as closely as it can. */
static double float_floordiv(double a, double b)
{
    double m = fmod(a, b), q = (a - m) / b;
    if (m != 0 && (m < 0) != (b < 0)) q -= 1;
    if (q == 0) return copysign(0.0, a / b);
    double f = floor(q);
    return q - f > 0.5 ? f + 1 : f;
}

static minfer_status float_op(mf_trender *r, mf_top op, double a, double b, double *out)
{
    switch (op) {
    case MF_OP_ADD: *out = a + b; return MINFER_OK;
    case MF_OP_SUB: *out = a - b; return MINFER_OK;
    case MF_OP_MUL: *out = a * b; return MINFER_OK;
    case MF_OP_POW: return float_pow(r, a, b, out);
    default: break;
    }
    if (b == 0) {
        static const char *const texts[] = {"float division by zero", "float floor division by zero",
                                            "float modulo"};
        return by_zero(r, texts[op - MF_OP_DIV]);
    }
    *out = op == MF_OP_DIV ? a / b : op == MF_OP_MOD ? float_mod(a, b) : float_floordiv(a, b);
    return MINFER_OK;
}

static minfer_status number_op(mf_trender *r, mf_top op, mf_tval a, mf_tval b, mf_tval *out)
{
    bool ints = mf_tis_int(a) && mf_tis_int(b);
    if (ints && op != MF_OP_DIV && !(op == MF_OP_POW && mf_tas_int(b) < 0)) {
        *out = mf_tint(0);
        return int_op(r, op, mf_tas_int(a), mf_tas_int(b), &out->i);
    }
    if (ints && op == MF_OP_DIV && mf_tas_int(b) == 0) return by_zero(r, "division by zero");
    *out = mf_tfloat(0);
    return float_op(r, op, mf_tas_double(a), mf_tas_double(b), &out->f);
}

/* -- sequences -- */

static minfer_status join_texts(mf_trender *r, const mf_tstr *a, const mf_tstr *b, mf_tval *out)
{
    mf_tsb text = {0};
    MF_TRY(mf_tsb_put(r, &text, a->p, a->n));
    MF_TRY(mf_tsb_put(r, &text, b->p, b->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status join_lists(mf_trender *r, const mf_tlist *a, const mf_tlist *b, mf_tlist **out)
{
    MF_TRY(mf_trender_charge(r, (a->n + b->n) * sizeof *a->v));
    MF_TRY(mf_tlist_new(r, a->n + b->n, out));
    for (size_t i = 0; i < a->n; i++) (*out)->v[(*out)->n++] = a->v[i];
    for (size_t i = 0; i < b->n; i++) (*out)->v[(*out)->n++] = b->v[i];
    return MINFER_OK;
}

static minfer_status repeat_text(mf_trender *r, const mf_tstr *s, int64_t times, mf_tval *out)
{
    mf_tsb text = {0};
    MF_TRY(mf_tsb_fill(r, &text, s->p, s->n, (size_t)times));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status repeat_list(mf_trender *r, const mf_tlist *l, int64_t times, mf_tlist **out)
{
    size_t n;
    if (!mf_mul_ok(l->n, (size_t)times, &n) || n > SIZE_MAX / 2 / sizeof *l->v)
        n = SIZE_MAX / 2 / sizeof *l->v;
    MF_TRY(mf_trender_charge(r, n * sizeof *l->v));
    MF_TRY(mf_tlist_new(r, n, out));
    for (size_t i = 0; i < n; i++) (*out)->v[i] = l->v[i % l->n];
    (*out)->n = n;
    return MINFER_OK;
}

static bool repeatable(mf_tval v)
{
    return mf_tis(v, MF_T_STR) || mf_tis_seq(v);
}

static minfer_status repeat(mf_trender *r, mf_tval seq, mf_tval times, mf_tval *out)
{
    int64_t n = mf_tas_int(times) < 0 ? 0 : mf_tas_int(times);
    if (mf_tis(seq, MF_T_STR)) return repeat_text(r, seq.s, n, out);
    out->type = seq.type;
    out->safe = false;
    return repeat_list(r, seq.list, n, &out->list);
}

static minfer_status no_operator(mf_trender *r, mf_top op, mf_tval a, mf_tval b)
{
    if (op == MF_OP_ADD && repeatable(a))
        return mf_trender_raise(r, MF_TE_TYPE, "can only concatenate %s (not \"%s\") to %s",
                                mf_tval_type_name(a), mf_tval_type_name(b), mf_tval_type_name(a));
    if (op == MF_OP_MUL && (repeatable(a) || repeatable(b)))
        return mf_trender_raise(r, MF_TE_TYPE, "can't multiply sequence by non-int of type '%s'",
                                mf_tval_type_name(repeatable(a) ? b : a));
    return mf_trender_raise(r, MF_TE_TYPE, "unsupported operand type(s) for %s: '%s' and '%s'", signs[op],
                            mf_tval_type_name(a), mf_tval_type_name(b));
}

minfer_status mf_tval_binary(mf_trender *r, mf_top op, mf_tval a, mf_tval b, mf_tval *out)
{
    if (mf_tis_number(a) && mf_tis_number(b)) return number_op(r, op, a, b, out);
    if (op == MF_OP_MOD && mf_tis(a, MF_T_STR)) return mf_tformat_percent(r, a.s, b, out);
    if (mf_tis(a, MF_T_UNDEFINED)) return mf_tundefined_raise(r, a);
    if (mf_tis(b, MF_T_UNDEFINED)) return mf_tundefined_raise(r, b);
    if (op == MF_OP_MUL && repeatable(a) && mf_tis_int(b)) return repeat(r, a, b, out);
    if (op == MF_OP_MUL && repeatable(b) && mf_tis_int(a)) return repeat(r, b, a, out);
    if (op != MF_OP_ADD || a.type != b.type || !repeatable(a)) return no_operator(r, op, a, b);
    if (mf_tis(a, MF_T_STR)) return join_texts(r, a.s, b.s, out);
    out->type = a.type;
    out->safe = false;
    return join_lists(r, a.list, b.list, &out->list);
}

static minfer_status bad_unary(mf_trender *r, const char *sign, mf_tval a)
{
    if (mf_tis(a, MF_T_UNDEFINED)) return mf_tundefined_raise(r, a);
    return mf_trender_raise(r, MF_TE_TYPE, "bad operand type for unary %s: '%s'", sign, mf_tval_type_name(a));
}

minfer_status mf_tval_neg(mf_trender *r, mf_tval a, mf_tval *out)
{
    if (!mf_tis_number(a)) return bad_unary(r, "-", a);
    if (mf_tis(a, MF_T_FLOAT)) {
        *out = mf_tfloat(-a.f);
        return MINFER_OK;
    }
    *out = mf_tint(0);
    return int_op(r, MF_OP_SUB, 0, mf_tas_int(a), &out->i);
}

minfer_status mf_tval_pos(mf_trender *r, mf_tval a, mf_tval *out)
{
    if (!mf_tis_number(a)) return bad_unary(r, "+", a);
    *out = mf_tis(a, MF_T_FLOAT) ? a : mf_tint(mf_tas_int(a));
    return MINFER_OK;
}
