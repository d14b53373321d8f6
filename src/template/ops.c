/* Truth, identity, equality, order, hashes, membership and length. */
#include "template/ops.h"
#include "base/strmap.h"
#include "template/iter.h"
#include "template/loop.h"

#include <math.h>
#include <string.h>

bool mf_tval_truth(mf_tval v)
{
    switch (v.type) {
    case MF_T_MISSING:
    case MF_T_UNDEFINED:
    case MF_T_NONE: return false;
    case MF_T_BOOL: return v.b;
    case MF_T_INT: return v.i != 0;
    case MF_T_FLOAT: return v.f != 0;
    case MF_T_STR: return v.s->n > 0;
    case MF_T_LIST:
    case MF_T_TUPLE: return v.list->n > 0;
    case MF_T_DICT: return v.dict->live > 0;
    case MF_T_RANGE: return v.range->n > 0;
    case MF_T_VIEW: return v.view->dict->live > 0;
    default: return true;
    }
}

static bool same_number(mf_tval a, mf_tval b)
{
    return a.type == b.type && (mf_tis(a, MF_T_FLOAT) ? a.f == b.f : mf_tas_int(a) == mf_tas_int(b));
}

bool mf_tval_same(mf_tval a, mf_tval b)
{
    if (a.type != b.type) return false;
    if (mf_tis(a, MF_T_NONE)) return true;
    if (mf_tis_number(a)) return same_number(a, b);
    if (mf_tis(a, MF_T_STR)) return mf_tstr_same(a.s, b.s);
    return a.ptr == b.ptr;
}

/* -- equality -- */

/* Sign of i - f, exactly; f is not NaN. */
static int cmp_int_double(int64_t i, double f)
{
    if (f >= 0x1p63) return -1;
    if (f < -0x1p63) return 1;
    int64_t whole = (int64_t)f;
    double rest = f - (double)whole;
    if (i != whole) return i < whole ? -1 : 1;
    return rest > 0 ? -1 : rest < 0;
}

static int sign_of(bool less, bool more)
{
    return (int)more - (int)less;
}

/* Sign of a - b; *ordered is false when one is NaN. */
static int cmp_numbers(mf_tval a, mf_tval b, bool *ordered)
{
    *ordered = true;
    if (mf_tis_int(a) && mf_tis_int(b))
        return sign_of(mf_tas_int(a) < mf_tas_int(b), mf_tas_int(a) > mf_tas_int(b));
    double x = mf_tas_double(a), y = mf_tas_double(b);
    *ordered = !isnan(x) && !isnan(y);
    if (!*ordered) return 0;
    if (mf_tis_int(a)) return cmp_int_double(mf_tas_int(a), y);
    if (mf_tis_int(b)) return -cmp_int_double(mf_tas_int(b), x);
    return sign_of(x<y, x> y);
}

static minfer_status eq_lists(mf_trender *r, const mf_tlist *a, const mf_tlist *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n && i < b->n; i++) MF_TRY(mf_tval_eq(r, a->v[i], b->v[i], out));
    return MINFER_OK;
}

static minfer_status eq_dicts(mf_trender *r, const mf_tdict *a, const mf_tdict *b, bool *out)
{
    *out = a->live == b->live;
    size_t i = 0;
    for (mf_tentry *e, *other; *out && (e = mf_tdict_next(a, &i));) {
        MF_TRY(mf_tdict_find(r, b, e->key, &other));
        *out = other != NULL;
        if (other) MF_TRY(mf_tval_eq(r, e->value, other->value, out));
    }
    return MINFER_OK;
}

static bool eq_ranges(const mf_trange *a, const mf_trange *b)
{
    return a->n == b->n && (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static minfer_status eq_nested(mf_trender *r, mf_tval a, mf_tval b, bool *out)
{
    MF_TRY(mf_trender_step(r));
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK)
        st = mf_tis(a, MF_T_DICT) ? eq_dicts(r, a.dict, b.dict, out) : eq_lists(r, a.list, b.list, out);
    mf_trender_leave(r);
    return st;
}

minfer_status mf_tval_eq(mf_trender *r, mf_tval a, mf_tval b, bool *out)
{
    bool ordered;
    if (mf_tis_number(a) && mf_tis_number(b)) {
        *out = cmp_numbers(a, b, &ordered) == 0 && ordered;
        return MINFER_OK;
    }
    *out = a.type == b.type;
    if (!*out || mf_tis(a, MF_T_UNDEFINED) || mf_tis(a, MF_T_NONE)) return MINFER_OK;
    if (mf_tis(a, MF_T_STR)) {
        *out = mf_tstr_same(a.s, b.s);
        return *out ? mf_trender_charge(r, a.s->n) : MINFER_OK;
    }
    if (a.ptr == b.ptr) return MINFER_OK;
    if (mf_tis_seq(a) || mf_tis(a, MF_T_DICT)) return eq_nested(r, a, b, out);
    *out = mf_tis(a, MF_T_RANGE) && eq_ranges(a.range, b.range);
    return MINFER_OK;
}

/* -- order -- */

static bool holds(mf_torder op, int sign)
{
    switch (op) {
    case MF_LT: return sign < 0;
    case MF_GT: return sign > 0;
    case MF_LE: return sign <= 0;
    case MF_GE: return sign >= 0;
    }
    return false;
}

static int cmp_strings(const mf_tstr *a, const mf_tstr *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int c = n ? memcmp(a->p, b->p, n) : 0; /* UTF-8 sorts as its code points do */
    return c ? c : sign_of(a->n<b->n, a->n> b->n);
}

/* The first items that differ decide, then the lengths. */
static minfer_status order_lists(mf_trender *r, mf_torder op, const mf_tlist *a, const mf_tlist *b, bool *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        MF_TRY(mf_tval_eq(r, a->v[i], b->v[i], &same));
        if (!same) return mf_tval_order(r, op, a->v[i], b->v[i], out);
    }
    *out = holds(op, sign_of(a->n<b->n, a->n> b->n));
    return MINFER_OK;
}

static minfer_status order_nested(mf_trender *r, mf_torder op, mf_tval a, mf_tval b, bool *out)
{
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = order_lists(r, op, a.list, b.list, out);
    mf_trender_leave(r);
    return st;
}

minfer_status mf_tval_order(mf_trender *r, mf_torder op, mf_tval a, mf_tval b, bool *out)
{
    static const char *const signs[] = {"<", ">", "<=", ">="};
    MF_TRY(mf_trender_step(r));
    if (mf_tis(a, MF_T_UNDEFINED)) return mf_tundefined_raise(r, a);
    if (mf_tis(b, MF_T_UNDEFINED)) return mf_tundefined_raise(r, b);
    if (mf_tis_number(a) && mf_tis_number(b)) {
        bool ordered;
        int sign = cmp_numbers(a, b, &ordered);
        *out = ordered && holds(op, sign);
        return MINFER_OK;
    }
    if (a.type == b.type && mf_tis(a, MF_T_STR)) {
        *out = holds(op, cmp_strings(a.s, b.s));
        return mf_trender_charge(r, a.s->n < b.s->n ? a.s->n : b.s->n);
    }
    if (a.type == b.type && mf_tis_seq(a)) return order_nested(r, op, a, b, out);
    return mf_trender_raise(r, MF_TE_TYPE, "'%s' not supported between instances of '%s' and '%s'", signs[op],
                            mf_tval_type_name(a), mf_tval_type_name(b));
}

/* -- hash -- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    return mf_hash_bytes(&v, sizeof v, h);
}

static uint64_t hash_number(mf_tval v)
{
    if (mf_tis_int(v)) return mix(1, (uint64_t)mf_tas_int(v));
    if (v.f >= -0x1p63 && v.f < 0x1p63 && v.f == floor(v.f)) return mix(1, (uint64_t)(int64_t)v.f);
    uint64_t bits;
    memcpy(&bits, &v.f, sizeof bits);
    return mix(2, bits);
}

static minfer_status hash_items(mf_trender *r, const mf_tlist *l, uint64_t *out)
{
    *out = l->n;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t h;
        MF_TRY(mf_tval_hash(r, l->v[i], &h));
        *out = mix(*out, h);
    }
    return MINFER_OK;
}

static minfer_status hash_tuple(mf_trender *r, mf_tval v, uint64_t *out)
{
    MF_TRY(mf_trender_step(r));
    minfer_status st = mf_trender_enter(r);
    if (st == MINFER_OK) st = hash_items(r, v.list, out);
    mf_trender_leave(r);
    return st;
}

static bool unhashable(mf_tval v)
{
    return mf_tis(v, MF_T_LIST) || mf_tis(v, MF_T_DICT) || mf_tis(v, MF_T_VIEW);
}

bool mf_tval_hashable(mf_tval v)
{
    if (unhashable(v)) return false;
    for (size_t i = 0; mf_tis(v, MF_T_TUPLE) && i < v.list->n; i++)
        if (!mf_tval_hashable(v.list->v[i])) return false;
    return true;
}

minfer_status mf_tval_hash(mf_trender *r, mf_tval v, uint64_t *out)
{
    *out = v.type;
    if (mf_tis_number(v))
        *out = hash_number(v);
    else if (mf_tis(v, MF_T_STR)) {
        *out = mf_hash_bytes(v.s->p, v.s->n, 0);
        return mf_trender_charge(r, v.s->n);
    } else if (mf_tis(v, MF_T_TUPLE))
        return hash_tuple(r, v, out);
    else if (mf_tis(v, MF_T_RANGE))
        *out = mix(3, (uint64_t)v.range->n);
    else if (unhashable(v))
        return mf_trender_raise(r, MF_TE_TYPE, "unhashable type: '%s'", mf_tval_type_name(v));
    else if (!mf_tis(v, MF_T_UNDEFINED) && !mf_tis(v, MF_T_NONE))
        *out = mix(4, (uint64_t)(uintptr_t)v.ptr);
    return MINFER_OK;
}

/* -- membership and length -- */

static minfer_status contains_text(mf_trender *r, const mf_tstr *box, mf_tval item, bool *out)
{
    if (mf_tis(item, MF_T_STR)) {
        *out = item.s->n == 0 || (box->n > 0 && memmem(box->p, box->n, item.s->p, item.s->n));
        return mf_trender_charge(r, box->n);
    }
    return mf_trender_raise(r, MF_TE_TYPE, "'in <string>' requires string as left operand, not %s",
                            mf_tval_type_name(item));
}

static minfer_status contains_item(mf_trender *r, mf_tval box, mf_tval item, bool *out)
{
    mf_titer *it;
    mf_tval v;
    *out = false;
    MF_TRY(mf_titer_open(r, box, &it));
    while (!*out) {
        MF_TRY(mf_titer_next(r, it, &v));
        if (mf_tis(v, MF_T_MISSING)) break;
        MF_TRY(mf_tval_eq(r, v, item, out));
    }
    return MINFER_OK;
}

minfer_status mf_tval_contains(mf_trender *r, mf_tval box, mf_tval item, bool *out)
{
    mf_tentry *e;
    if (mf_tis(box, MF_T_STR)) return contains_text(r, box.s, item, out);
    if (mf_tis(box, MF_T_DICT)) {
        MF_TRY(mf_tdict_find(r, box.dict, item, &e));
        *out = e != NULL;
        return MINFER_OK;
    }
    if (!mf_titer_possible(box) || mf_tis(box, MF_T_LOOP))
        return mf_trender_raise(r, MF_TE_TYPE, "argument of type '%s' is not iterable",
                                mf_tval_type_name(box));
    return contains_item(r, box, item, out);
}

minfer_status mf_tval_len(mf_trender *r, mf_tval v, int64_t *n, bool *has)
{
    *has = true;
    switch (v.type) {
    case MF_T_UNDEFINED: *n = 0; break;
    case MF_T_STR: *n = (int64_t)v.s->chars; break;
    case MF_T_LIST:
    case MF_T_TUPLE: *n = (int64_t)v.list->n; break;
    case MF_T_DICT: *n = (int64_t)v.dict->live; break;
    case MF_T_VIEW: *n = (int64_t)v.view->dict->live; break;
    case MF_T_RANGE: *n = v.range->n; break;
    case MF_T_LOOP: return mf_tloop_length(r, v.loop, n);
    default: *has = false;
    }
    return MINFER_OK;
}

minfer_status mf_tval_need_len(mf_trender *r, mf_tval v, int64_t *n)
{
    bool has;
    MF_TRY(mf_tval_len(r, v, n, &has));
    if (has) return MINFER_OK;
    return mf_trender_raise(r, MF_TE_TYPE, "object of type '%s' has no len()", mf_tval_type_name(v));
}

minfer_status mf_tval_need_int(mf_trender *r, mf_tval v, int64_t *out)
{
    if (!mf_tis_int(v))
        return mf_trender_raise(r, MF_TE_TYPE, "'%s' object cannot be interpreted as an integer",
                                mf_tval_type_name(v));
    *out = mf_tas_int(v);
    return MINFER_OK;
}

minfer_status mf_tval_need_str(mf_trender *r, mf_tval v, const mf_tstr **out)
{
    if (!mf_tis(v, MF_T_STR))
        return mf_trender_raise(r, MF_TE_TYPE, "expected a str, got '%s'", mf_tval_type_name(v));
    *out = v.s;
    return MINFER_OK;
}
