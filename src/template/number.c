/* Numbers as text. Decimal points of the locale never come in: what is read is rewritten without a point
 * ("1.25" as "125e-2"), what is written has its point put back. */
#include "template/number.h"
#include "template/unicode.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_DIGITS = 800, MAX_EXPONENT = 100000 };

typedef struct cursor {
    const char *p, *end;
} cursor;

/* White space around is dropped, then a sign is taken. */
static cursor begin(const char *p, size_t n, bool *negative)
{
    cursor c = {p, p + n};
    uint32_t cp;
    for (size_t k; c.p < c.end && (k = mf_tuc_at(c.p, &cp), mf_tuc_is_space(cp));) c.p += k;
    for (size_t k; c.p < c.end && (k = mf_tuc_before(c.p, c.end, &cp), mf_tuc_is_space(cp));) c.end -= k;
    *negative = c.p < c.end && *c.p == '-';
    if (c.p < c.end && (*c.p == '-' || *c.p == '+')) c.p++;
    return c;
}

static int digit_value(char ch)
{
    if (ch >= '0' && ch <= '9') return ch - '0';
    int low = tolower((unsigned char)ch);
    return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

/* Takes 0x, 0o or 0b. */
static bool take_prefix(cursor *c, int64_t base, int64_t *found)
{
    static const char letters[] = "xob", bases[] = {16, 8, 2};
    if (c->end - c->p < 2 || c->p[0] != '0') return false;
    const char *l = strchr(letters, tolower((unsigned char)c->p[1]));
    if (!l || !*l || (base != 0 && base != bases[l - letters])) return false;
    *found = bases[l - letters];
    c->p += 2;
    return true;
}

mf_tparse mf_tnumber_parse_int(const char *p, size_t n, int64_t base, int64_t *out)
{
    bool negative, big = false, after_digit, zero = true;
    cursor c = begin(p, n, &negative);
    int64_t radix = base ? base : 10, v = 0;
    after_digit = take_prefix(&c, base, &radix); /* an underscore may follow the prefix */
    bool prefixed = after_digit;
    const char *first = c.p;
    for (; c.p < c.end; c.p++) {
        if (*c.p == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        int d = digit_value(*c.p);
        if (d >= radix) return MF_PARSE_BAD;
        big |= __builtin_mul_overflow(v, radix, &v) || __builtin_sub_overflow(v, d, &v);
        zero &= d == 0;
        after_digit = true;
    }
    if (c.p == first || !after_digit) return MF_PARSE_BAD;
    if (base == 0 && !prefixed && *first == '0' && !zero) return MF_PARSE_BAD;
    if (big || (!negative && v == INT64_MIN)) return MF_PARSE_BIG;
    *out = negative ? v : -v;
    return MF_PARSE_OK;
}

/* The digits of a number: 0.digits * 10^exponent, cut after MAX_DIGITS with a last digit that keeps the
 * rounding. */
typedef struct decimal {
    char digits[MAX_DIGITS + 2];
    int n;
    long exponent;
    bool any; /* a digit was seen */
} decimal;

static void add_digit(decimal *d, char ch, bool fraction)
{
    d->any = true;
    if (d->n == 0 && ch == '0') {
        d->exponent -= fraction;
        return;
    }
    d->exponent += !fraction;
    if (d->n < MAX_DIGITS)
        d->digits[d->n++] = ch;
    else if (ch != '0')
        d->digits[MAX_DIGITS] = '1';
}

/* Digits with single underscores between them; false when an underscore stands elsewhere. */
static bool take_digits(cursor *c, decimal *d, bool fraction)
{
    bool after_digit = false;
    for (; c->p < c->end; c->p++) {
        if (isdigit((unsigned char)*c->p)) {
            add_digit(d, *c->p, fraction);
            after_digit = true;
        } else if (*c->p == '_' && after_digit && c->end - c->p > 1 && isdigit((unsigned char)c->p[1]))
            after_digit = false;
        else
            return true;
    }
    return true;
}

static bool take_exponent(cursor *c, long *exponent)
{
    bool negative = false, any = false;
    long e = 0;
    if (c->p < c->end && (*c->p == '-' || *c->p == '+')) negative = *c->p++ == '-';
    for (; c->p < c->end; c->p++) {
        if (*c->p == '_' && any && c->end - c->p > 1 && isdigit((unsigned char)c->p[1])) continue;
        if (!isdigit((unsigned char)*c->p)) return false;
        if (e < MAX_EXPONENT) e = e * 10 + (*c->p - '0');
        any = true;
    }
    *exponent += negative ? -e : e;
    return any;
}

static bool is_word(cursor c, const char *word)
{
    return (size_t)(c.end - c.p) == strlen(word) && strncasecmp(c.p, word, strlen(word)) == 0;
}

static double value_of(decimal *d)
{
    char text[MAX_DIGITS + 32];
    if (d->n == 0) return 0;
    int n = d->digits[MAX_DIGITS] ? MAX_DIGITS + 1 : d->n;
    snprintf(text, sizeof text, "%.*se%ld", n, d->digits, d->exponent - n);
    return strtod(text, NULL);
}

mf_tparse mf_tnumber_parse_float(const char *p, size_t n, double *out)
{
    bool negative;
    cursor c = begin(p, n, &negative);
    decimal d = {.n = 0};
    if (is_word(c, "inf") || is_word(c, "infinity"))
        *out = HUGE_VAL;
    else if (is_word(c, "nan"))
        *out = NAN;
    else {
        take_digits(&c, &d, false);
        if (c.p < c.end && *c.p == '.') {
            c.p++;
            take_digits(&c, &d, true);
        }
        if (!d.any) return MF_PARSE_BAD;
        if (c.p < c.end && (*c.p == 'e' || *c.p == 'E')) {
            c.p++;
            if (!take_exponent(&c, &d.exponent)) return MF_PARSE_BAD;
        }
        if (c.p < c.end) return MF_PARSE_BAD;
        *out = value_of(&d);
    }
    if (negative) *out = -*out;
    return MF_PARSE_OK;
}

/* |f| as p digits and the exponent of the first; f is finite. */
static int digits_of(double f, int p, char *digits)
{
    char text[64];
    int n = 0;
    snprintf(text, sizeof text, "%.*e", p - 1, f);
    char *e = strchr(text, 'e');
    for (const char *t = text; t < e; t++)
        if (isdigit((unsigned char)*t)) digits[n++] = *t;
    digits[n] = 0;
    return (int)strtol(e + 1, NULL, 10);
}

static int shortest(double f, char *digits)
{
    for (int p = 1;; p++) {
        char text[64];
        int e = digits_of(f, p, digits);
        snprintf(text, sizeof text, "%se%d", digits, e - p + 1);
        if (p == 17 || strtod(text, NULL) == f) return e;
    }
}

size_t mf_tnumber_repr(double f, char out[MF_NUMBER_REPR])
{
    char digits[32];
    if (isnan(f)) return (size_t)snprintf(out, MF_NUMBER_REPR, "nan");
    const char *sign = signbit(f) ? "-" : "";
    if (isinf(f)) return (size_t)snprintf(out, MF_NUMBER_REPR, "%sinf", sign);
    int e = shortest(fabs(f), digits), n = (int)strlen(digits);
    if (e < -4 || e >= 16)
        return (size_t)snprintf(out, MF_NUMBER_REPR, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "",
                                digits + 1, e < 0 ? '-' : '+', abs(e));
    if (e < 0) return (size_t)snprintf(out, MF_NUMBER_REPR, "%s0.%.*s%s", sign, -e - 1, "0000", digits);
    if (n <= e + 1)
        return (size_t)snprintf(out, MF_NUMBER_REPR, "%s%s%.*s.0", sign, digits, e + 1 - n,
                                "0000000000000000");
    return (size_t)snprintf(out, MF_NUMBER_REPR, "%s%.*s.%s", sign, e + 1, digits, digits + e + 1);
}

/* Puts '.' where the locale's decimal point stands; returns the new length. */
static size_t plain_point(char *s)
{
    char *t = s + strspn(s, "+-0123456789");
    size_t k = strcspn(t, "0123456789eE");
    if (k == 0 || isalpha((unsigned char)*t)) return strlen(s); /* no point, inf or nan */
    *t = '.';
    memmove(t + 1, t + k, strlen(t + k) + 1);
    return strlen(s);
}

minfer_status mf_tnumber_format(mf_trender *r, mf_tsb *out, double f, char format, int precision,
                                bool alternate)
{
    char spec[8];
    snprintf(spec, sizeof spec, "%%%s.*%c", alternate ? "#" : "", format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = snprintf(NULL, 0, spec, precision, f);
    char *text = n < 0 ? NULL : mf_trender_alloc(r, (size_t)n + 1, 1);
    if (!text) return n < 0 ? mf_trender_raise(r, MF_TE_VALUE, "precision too big") : mf_trender_failed(r);
    snprintf(text, (size_t)n + 1, spec, precision, f);
#pragma GCC diagnostic pop
    return mf_tsb_put(r, out, text, plain_point(text));
}
