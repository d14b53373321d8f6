/* The tests of `is` and of |select. */
#include "template/iter.h"
#include "template/methods.h"
#include "template/ops.h"
#include "template/print.h"

static minfer_status yes(mf_tval *out, bool b)
{
    *out = mf_tbool(b);
    return MINFER_OK;
}

/* -- types -- */

typedef enum kind {
    DEFINED,
    UNDEFINED,
    NONE,
    BOOLEAN,
    TRUE_,
    FALSE_,
    INTEGER,
    FLOAT,
    NUMBER,
    STRING,
    MAPPING,
    SEQUENCE,
    ITERABLE,
    CALLABLE,
    ESCAPED
} kind;

static bool is_sequence(mf_tval v)
{
    return mf_tis_seq(v) || mf_tis(v, MF_T_STR) || mf_tis(v, MF_T_DICT) || mf_tis(v, MF_T_RANGE) ||
           mf_tis(v, MF_T_UNDEFINED);
}

static bool is_kind(mf_tval v, kind k)
{
    switch (k) {
    case DEFINED: return !mf_tis(v, MF_T_UNDEFINED);
    case UNDEFINED: return mf_tis(v, MF_T_UNDEFINED);
    case NONE: return mf_tis(v, MF_T_NONE);
    case BOOLEAN: return mf_tis(v, MF_T_BOOL);
    case TRUE_: return mf_tis(v, MF_T_BOOL) && v.b;
    case FALSE_: return mf_tis(v, MF_T_BOOL) && !v.b;
    case INTEGER: return mf_tis(v, MF_T_INT);
    case FLOAT: return mf_tis(v, MF_T_FLOAT);
    case NUMBER: return mf_tis_number(v);
    case STRING: return mf_tis(v, MF_T_STR);
    case MAPPING: return mf_tis(v, MF_T_DICT);
    case SEQUENCE: return is_sequence(v);
    case ITERABLE: return mf_titer_possible(v);
    case CALLABLE: return mf_tval_callable(v);
    case ESCAPED: return mf_tis(v, MF_T_STR) && v.safe;
    }
    return false;
}

static minfer_status of_kind(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    return yes(out, is_kind(a->v[0], (kind)a->which));
}

/* -- numbers -- */

static minfer_status remainder_is(mf_trender *r, mf_tval v, mf_tval by, int64_t wanted, mf_tval *out)
{
    bool same;
    MF_TRY(mf_tval_binary(r, MF_OP_MOD, v, by, out));
    MF_TRY(mf_tval_eq(r, *out, mf_tint(wanted), &same));
    return yes(out, same);
}

static minfer_status is_odd(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], mf_tint(2), 1, out);
}
static minfer_status is_even(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], mf_tint(2), 0, out);
}
static minfer_status is_divisibleby(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return remainder_is(r, a->v[0], a->v[1], 0, out);
}

static minfer_status in_case(mf_trender *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(mf_tval_to_str(r, a->v[0], out));
    return mf_tmethod_in_case(r, out->s, a->which, out);
}

/* -- comparisons -- */

/* which: whether they should be equal. */
static minfer_status is_equal(mf_trender *r, mf_targs *a, mf_tval *out)
{
    bool same;
    MF_TRY(mf_tval_eq(r, a->v[0], a->v[1], &same));
    return yes(out, same == a->which);
}

static minfer_status is_ordered(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tbool(false);
    return mf_tval_order(r, (mf_torder)a->which, a->v[0], a->v[1], &out->b);
}

static minfer_status is_sameas(mf_trender *r, mf_targs *a, mf_tval *out)
{
    (void)r;
    return yes(out, mf_tval_same(a->v[0], a->v[1]));
}

static minfer_status is_in(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tbool(false);
    return mf_tval_contains(r, a->v[1], a->v[0], &out->b);
}

/* -- names of filters and tests -- */

static minfer_status is_name(mf_trender *r, mf_tval v, const mf_tfndef *(*find)(const mf_tstr *),
                             mf_tval *out)
{
    if (!mf_tval_hashable(v))
        return mf_trender_raise(r, MF_TE_TYPE, "unhashable type: '%s'", mf_tval_type_name(v));
    return yes(out, mf_tis(v, MF_T_STR) && find(v.s));
}

static minfer_status is_filter(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return is_name(r, a->v[0], mf_tfilter_find, out);
}
static minfer_status is_test(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return is_name(r, a->v[0], mf_ttest_find, out);
}

static const mf_tfndef defs[] = {
    {"defined", of_kind, "", 0, DEFINED},
    {"undefined", of_kind, "", 0, UNDEFINED},
    {"none", of_kind, "", 0, NONE},
    {"boolean", of_kind, "", 0, BOOLEAN},
    {"true", of_kind, "", 0, TRUE_},
    {"false", of_kind, "", 0, FALSE_},
    {"integer", of_kind, "", 0, INTEGER},
    {"float", of_kind, "", 0, FLOAT},
    {"number", of_kind, "", 0, NUMBER},
    {"string", of_kind, "", 0, STRING},
    {"mapping", of_kind, "", 0, MAPPING},
    {"sequence", of_kind, "", 0, SEQUENCE},
    {"iterable", of_kind, "", 0, ITERABLE},
    {"callable", of_kind, "", 0, CALLABLE},
    {"escaped", of_kind, "", 0, ESCAPED},
    {"odd", is_odd, "", 0, 0},
    {"even", is_even, "", 0, 0},
    {"divisibleby", is_divisibleby, "num", 1, 0},
    {"upper", in_case, "", 0, true},
    {"lower", in_case, "", 0, false},
    {"sameas", is_sameas, "other", 1, 0},
    {"in", is_in, "seq", 1, 0},
    {"filter", is_filter, "", 0, 0},
    {"test", is_test, "", 0, 0},
    {"==", is_equal, "/other", 1, true},
    {"eq", is_equal, "/other", 1, true},
    {"equalto", is_equal, "/other", 1, true},
    {"!=", is_equal, "/other", 1, false},
    {"ne", is_equal, "/other", 1, false},
    {"<", is_ordered, "/other", 1, MF_LT},
    {"lt", is_ordered, "/other", 1, MF_LT},
    {"lessthan", is_ordered, "/other", 1, MF_LT},
    {">", is_ordered, "/other", 1, MF_GT},
    {"gt", is_ordered, "/other", 1, MF_GT},
    {"greaterthan", is_ordered, "/other", 1, MF_GT},
    {"<=", is_ordered, "/other", 1, MF_LE},
    {"le", is_ordered, "/other", 1, MF_LE},
    {">=", is_ordered, "/other", 1, MF_GE},
    {"ge", is_ordered, "/other", 1, MF_GE},
};

const mf_tfndef *mf_ttest_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
