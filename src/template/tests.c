/* The tests of `is` and of |select. */
#include "template/call.h"
#include "template/iter.h"
#include "template/ops.h"
#include "template/print.h"
#include "template/unicode.h"

static minfer_status yes(mf_tval *out, bool b)
{
    *out = mf_tbool(b);
    return MINFER_OK;
}

/* -- types -- */

#define TYPE_TEST(name, condition)                                     \
    static minfer_status name(mf_render *r, mf_targs *a, mf_tval *out) \
    {                                                                  \
        (void)r;                                                       \
        mf_tval v = a->v[0];                                           \
        return yes(out, (condition));                                  \
    }

TYPE_TEST(is_defined, !mf_tis(v, MF_T_UNDEFINED))
TYPE_TEST(is_undefined, mf_tis(v, MF_T_UNDEFINED))
TYPE_TEST(is_none, mf_tis(v, MF_T_NONE))
TYPE_TEST(is_boolean, mf_tis(v, MF_T_BOOL))
TYPE_TEST(is_true, mf_tis(v, MF_T_BOOL) && v.b)
TYPE_TEST(is_false, mf_tis(v, MF_T_BOOL) && !v.b)
TYPE_TEST(is_integer, mf_tis(v, MF_T_INT))
TYPE_TEST(is_float, mf_tis(v, MF_T_FLOAT))
TYPE_TEST(is_number, mf_tis_number(v))
TYPE_TEST(is_string, mf_tis(v, MF_T_STR))
TYPE_TEST(is_mapping, mf_tis(v, MF_T_DICT))
TYPE_TEST(is_iterable, mf_titer_possible(v))
TYPE_TEST(is_callable, mf_tval_callable(v))
TYPE_TEST(is_escaped, mf_tis(v, MF_T_STR) && v.safe)
TYPE_TEST(is_sequence, mf_tis(v, MF_T_STR) || mf_tis_seq(v) || mf_tis(v, MF_T_DICT) ||
                           mf_tis(v, MF_T_RANGE) || mf_tis(v, MF_T_UNDEFINED))

/* -- numbers -- */

static minfer_status remainder_is(mf_render *r, mf_tval v, mf_tval by, int64_t wanted, mf_tval *out)
{
    bool same;
    MF_TRY(mf_tval_binary(r, MF_OP_MOD, v, by, out));
    MF_TRY(mf_tval_eq(r, *out, mf_tint(wanted), &same));
    return yes(out, same);
}

static minfer_status is_odd(mf_render *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], mf_tint(2), 1, out);
}
static minfer_status is_even(mf_render *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], mf_tint(2), 0, out);
}
static minfer_status is_divisibleby(mf_render *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], a->v[1], 0, out);
}

/* -- case -- */

/* There is a letter with case, and all of them have this one. */
static bool all_in_case(const mf_tstr *s, bool upper)
{
    uint32_t cp;
    bool any = false;
    for (size_t i = 0; i < s->n;) {
        i += mf_uc_at(s->p + i, &cp);
        bool up = mf_uc_is_upper(cp), low = mf_uc_is_lower(cp);
        if ((upper ? low : up) || mf_uc_is_title(cp)) return false;
        any |= upper ? up : low;
    }
    return any;
}

static minfer_status test_case(mf_render *r, const mf_targs *a, bool upper, mf_tval *out)
{
    MF_TRY(mf_tval_to_str(r, a->v[0], out));
    MF_TRY(mf_render_charge(r, out->s->n));
    return yes(out, all_in_case(out->s, upper));
}

static minfer_status is_upper(mf_render *r, mf_targs *a, mf_tval *out)
{
    return test_case(r, a, true, out);
}
static minfer_status is_lower(mf_render *r, mf_targs *a, mf_tval *out)
{
    return test_case(r, a, false, out);
}

/* -- comparisons -- */

static minfer_status is_eq(mf_render *r, mf_targs *a, mf_tval *out)
{
    bool same;
    MF_TRY(mf_tval_eq(r, a->v[0], a->v[1], &same));
    return yes(out, same);
}
static minfer_status is_ne(mf_render *r, mf_targs *a, mf_tval *out)
{
    bool same;
    MF_TRY(mf_tval_eq(r, a->v[0], a->v[1], &same));
    return yes(out, !same);
}

static minfer_status ordered(mf_render *r, const mf_targs *a, mf_torder op, mf_tval *out)
{
    *out = mf_tbool(false);
    return mf_tval_order(r, op, a->v[0], a->v[1], &out->b);
}

static minfer_status is_lt(mf_render *r, mf_targs *a, mf_tval *out)
{
    return ordered(r, a, MF_LT, out);
}
static minfer_status is_gt(mf_render *r, mf_targs *a, mf_tval *out)
{
    return ordered(r, a, MF_GT, out);
}
static minfer_status is_le(mf_render *r, mf_targs *a, mf_tval *out)
{
    return ordered(r, a, MF_LE, out);
}
static minfer_status is_ge(mf_render *r, mf_targs *a, mf_tval *out)
{
    return ordered(r, a, MF_GE, out);
}

static minfer_status is_sameas(mf_render *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    return yes(out, mf_tval_same(a->v[0], a->v[1]));
}

static minfer_status is_in(mf_render *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tbool(false);
    return mf_tval_contains(r, a->v[1], a->v[0], &out->b);
}

/* -- names of filters and tests -- */

static minfer_status is_name(mf_render *r, mf_tval v, const mf_tfndef *(*find)(const mf_tstr *), mf_tval *out)
{
    if (!mf_tval_hashable(v))
        return mf_render_raise(r, MF_TE_TYPE, "unhashable type: '%s'", mf_tval_type_name(v));
    return yes(out, mf_tis(v, MF_T_STR) && find(v.s));
}

static minfer_status is_filter(mf_render *r, mf_targs *a, mf_tval *out)
{
    return is_name(r, a->v[0], mf_filter_find, out);
}
static minfer_status is_test(mf_render *r, mf_targs *a, mf_tval *out)
{
    return is_name(r, a->v[0], mf_test_find, out);
}

static const mf_tfndef defs[] = {
    {"defined", is_defined, "", 0},
    {"undefined", is_undefined, "", 0},
    {"none", is_none, "", 0},
    {"boolean", is_boolean, "", 0},
    {"true", is_true, "", 0},
    {"false", is_false, "", 0},
    {"integer", is_integer, "", 0},
    {"float", is_float, "", 0},
    {"number", is_number, "", 0},
    {"string", is_string, "", 0},
    {"mapping", is_mapping, "", 0},
    {"iterable", is_iterable, "", 0},
    {"callable", is_callable, "", 0},
    {"escaped", is_escaped, "", 0},
    {"sequence", is_sequence, "", 0},
    {"odd", is_odd, "", 0},
    {"even", is_even, "", 0},
    {"divisibleby", is_divisibleby, "num", 1},
    {"upper", is_upper, "", 0},
    {"lower", is_lower, "", 0},
    {"sameas", is_sameas, "other", 1},
    {"in", is_in, "seq", 1},
    {"filter", is_filter, "", 0},
    {"test", is_test, "", 0},
    {"==", is_eq, "/other", 1},
    {"eq", is_eq, "/other", 1},
    {"equalto", is_eq, "/other", 1},
    {"!=", is_ne, "/other", 1},
    {"ne", is_ne, "/other", 1},
    {"<", is_lt, "/other", 1},
    {"lt", is_lt, "/other", 1},
    {"lessthan", is_lt, "/other", 1},
    {">", is_gt, "/other", 1},
    {"gt", is_gt, "/other", 1},
    {"greaterthan", is_gt, "/other", 1},
    {"<=", is_le, "/other", 1},
    {"le", is_le, "/other", 1},
    {">=", is_ge, "/other", 1},
    {"ge", is_ge, "/other", 1},
};

const mf_tfndef *mf_test_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
