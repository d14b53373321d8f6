/* Numbers: within bounds as decimal digits. */
#include "grammar/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bounds are whole numbers. Without one, numbers have up to 16 digits, with one up to 18. */
#define FREE_END  9999999999999999
#define BOUND_END 999999999999999999

typedef struct bounds {
    int64_t lo, hi;         /* what whole numbers may be */
    int64_t floor, ceiling; /* between which fractions may be */
} bounds;

/* ---- digits */

/* Digits from d to e, then n of any kind. */
static bool put_digit(mf_buf *b, char d, char e, int n)
{
    bool ok = d == e ? mf_buf_printf(b, "\"%c\"", d) : mf_buf_printf(b, "[%c-%c]", d, e);
    return ok && (n == 0 || mf_buf_printf(b, n == 1 ? " [0-9]" : " [0-9]{%d}", n));
}

static bool all(const char *s, char digit)
{
    for (; *s; s++)
        if (*s != digit) return false;
    return true;
}

/* A group of the numbers with the digits of lo at least, and of hi at most; lo and hi have n >= 1 digits
 * each. */
static bool put_between(mf_buf *b, const char *lo, const char *hi, int n)
{
    if (n == 0) return true;
    if (*lo == *hi) {
        bool ok = mf_buf_printf(b, "\"%c\"", *lo);
        return ok && (n == 1 || (mf_buf_char(b, ' ') && put_between(b, lo + 1, hi + 1, n - 1)));
    }
    bool low_free = all(lo + 1, '0'), high_free = all(hi + 1, '9');
    char first = low_free ? *lo : (char)(*lo + 1), last = high_free ? *hi : (char)(*hi - 1);
    bool ok = mf_buf_char(b, '(');
    if (!low_free)
        ok = ok && mf_buf_printf(b, "\"%c\" ", *lo) && put_between(b, lo + 1, "999999999999999999", n - 1);
    if (first <= last) ok = ok && mf_buf_str(b, low_free ? "" : " | ") && put_digit(b, first, last, n - 1);
    if (!high_free)
        ok = ok && mf_buf_str(b, low_free && first > last ? "" : " | ") && mf_buf_printf(b, "\"%c\" ", *hi) &&
             put_between(b, "000000000000000000", hi + 1, n - 1);
    return ok && mf_buf_char(b, ')');
}

/* A group of the numbers from lo to hi, 0 <= lo <= hi <= BOUND_END: of each length those that are between. */
static bool put_range(mf_buf *b, int64_t lo, int64_t hi)
{
    bool ok = mf_buf_char(b, '('), first = true;
    int64_t least = 0, most = 9; /* of n digits */
    for (int n = 1; n <= 18 && ok; n++) {
        char x[24], y[24];
        if (n > 1) {
            least = most + 1;
            most = most * 10 + 9;
        }
        if (lo > most || hi < least) continue;
        snprintf(x, sizeof x, "%lld", (long long)(lo > least ? lo : least));
        snprintf(y, sizeof y, "%lld", (long long)(hi < most ? hi : most));
        ok = (first || mf_buf_str(b, " | ")) && put_between(b, x, y, n);
        first = false;
    }
    return ok && mf_buf_char(b, ')');
}

/* ---- whole numbers and fractions between bounds */

typedef struct choice {
    mf_buf *b;
    bool any, ok;
} choice;

/* One of the choices: sign, a number from lo to hi, and what comes after. Nothing when there is no such
 * number. */
static void add(choice *c, const char *sign, int64_t lo, int64_t hi, const char *after)
{
    if (lo > hi) return;
    c->ok = c->ok && (!c->any || mf_buf_str(c->b, " | ")) && mf_buf_str(c->b, sign) &&
            put_range(c->b, lo, hi) && mf_buf_str(c->b, after);
    c->any = true;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static minfer_status put_bounded(mf_schema *s, mf_splace p, bounds r, bool integer, mf_buf *b)
{
    const char *zeros = integer ? "" : " (\".\" \"0\"{1,16})?", *part = " \".\" [0-9]{0,15} [1-9]";
    choice c = {b, false, true};
    add(&c, "\"-\" ", max(1, -r.hi), -r.lo, zeros);
    add(&c, "", max(0, r.lo), r.hi, zeros);
    if (!integer) { /* n.f is between n and n + 1 */
        add(&c, "\"-\" ", max(0, -r.ceiling), -r.floor - 1, part);
        add(&c, "", max(0, r.floor), r.ceiling - 1, part);
    }
    if (!c.any) return mf_schema_impossible(s, p.at, "no number is within minimum and maximum");
    return c.ok ? MINFER_OK : MF_NOMEM(s->err);
}

/* ---- keywords */

/* Narrows r by one keyword; sign 1: a lower bound. */
static minfer_status narrow(mf_schema *s, mf_splace p, const char *key, json_t *j, int sign, bool open,
                            bool integer, bounds *r)
{
    double x = json_number_value(j), whole = sign > 0 ? ceil(x) : floor(x);
    if (!json_is_number(j)) return mf_schema_fail(s, MINFER_ERR_ARG, p.at, "%s is not a number", key);
    if (whole != x && !integer)
        return mf_schema_fail(
            s, MINFER_ERR_UNSUPPORTED, p.at,
            "%s %.15g: only whole numbers are supported as bounds of numbers with fractions", key, x);
    if (whole * sign > (double)BOUND_END)
        return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at, "%s %.15g is beyond 18 digits", key, x);
    int64_t v = whole * sign < -(double)BOUND_END ? -sign * BOUND_END
                : json_is_integer(j)              ? json_integer_value(j)
                                                  : (int64_t)whole;
    int64_t closed = open && whole == x ? v + sign : v;
    if (sign > 0) {
        r->lo = max(r->lo, closed);
        r->floor = max(r->floor, v);
        if (r->hi == FREE_END && r->lo > FREE_END) r->hi = r->ceiling = BOUND_END;
    } else {
        r->hi = -max(-r->hi, -closed);
        r->ceiling = -max(-r->ceiling, -v);
        if (r->lo == -FREE_END && r->hi < -FREE_END) r->lo = r->floor = -BOUND_END;
    }
    return MINFER_OK;
}

static minfer_status read_bounds(mf_schema *s, mf_splace p, bool integer, bounds *r, bool *any)
{
    static const struct {
        const char *key, *exclusive;
        int sign;
    } keys[] = {{"minimum", "exclusiveMinimum", 1}, {"maximum", "exclusiveMaximum", -1}};
    for (int i = 0; i < 2; i++) {
        json_t *limit = json_object_get(p.j, keys[i].key), *other = json_object_get(p.j, keys[i].exclusive);
        bool open = json_is_true(other); /* as older drafts have it */
        *any |= limit || (other && !json_is_boolean(other));
        if (limit) MF_TRY(narrow(s, p, keys[i].key, limit, keys[i].sign, open, integer, r));
        if (other && !json_is_boolean(other))
            MF_TRY(narrow(s, p, keys[i].exclusive, other, keys[i].sign, true, integer, r));
    }
    return MINFER_OK;
}

minfer_status mf_schema_number(mf_schema *s, mf_splace p, bool integer, mf_buf *b)
{
    bounds r = {-FREE_END, FREE_END, -FREE_END, FREE_END};
    json_t *step = json_object_get(p.j, "multipleOf");
    bool any = false;
    if (step && !(json_is_number(step) && json_number_value(step) == 1))
        return mf_schema_fail(s, MINFER_ERR_UNSUPPORTED, p.at, "the keyword 'multipleOf' is not supported");
    if (step) integer = true;
    MF_TRY(read_bounds(s, p, integer, &r, &any));
    if (any) return put_bounded(s, p, r, integer, b);
    return mf_buf_str(b, integer ? "integer" : "number") ? MINFER_OK : MF_NOMEM(s->err);
}
