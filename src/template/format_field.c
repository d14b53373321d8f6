/* Fields: alignment, sign, grouping and the format specification of format(). */
#include "template/format.h"
#include "template/number.h"
#include "template/ops.h"
#include "template/print.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* head (sign and prefix) and body, filled up to the width. */
static minfer_status put_aligned(mf_trender *r, mf_tsb *out, const mf_tfield *f, char align, mf_tsb head,
                                 mf_tsb body)
{
    size_t have = mf_tstr_count(head.p, head.n) + mf_tstr_count(body.p, body.n);
    size_t pad = f->width > 0 && (uint64_t)f->width > have ? (size_t)f->width - have : 0;
    size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0, inner = align == '=' ? pad : 0;
    MF_TRY(mf_tsb_fill(r, out, f->fill, f->fill_n, left));
    MF_TRY(mf_tsb_put(r, out, head.p, head.n));
    MF_TRY(mf_tsb_fill(r, out, f->fill, f->fill_n, inner));
    MF_TRY(mf_tsb_put(r, out, body.p, body.n));
    return mf_tsb_fill(r, out, f->fill, f->fill_n, pad - left - inner);
}

minfer_status mf_tfield_text(mf_trender *r, mf_tsb *out, const mf_tfield *f, const mf_tstr *s)
{
    size_t n = s->n;
    if (f->precision >= 0 && (uint64_t)f->precision < s->chars) n = mf_tstr_offset(s, (size_t)f->precision);
    mf_tsb body = {0};
    MF_TRY(mf_tsb_put(r, &body, s->p, n));
    return put_aligned(r, out, f, f->align ? f->align : '<', (mf_tsb){0}, body);
}

/* Digits with a separator every `every` of them, counted from the right; zeros in front while the whole is
 * shorter than least. */
static minfer_status put_grouped(mf_trender *r, mf_tsb *out, char sep, size_t every, const char *digits,
                                 size_t n, size_t least)
{
    size_t zeros = 0;
    while (n + zeros + (n + zeros ? (n + zeros - 1) / every : 0) < least) zeros++;
    for (size_t i = 0, all = n + zeros; i < all; i++) {
        if (i && (all - i) % every == 0) MF_TRY(mf_tsb_char(r, out, sep));
        MF_TRY(mf_tsb_char(r, out, i < zeros ? '0' : digits[i - zeros]));
    }
    return MINFER_OK;
}

/* Joins sign, prefix and digits; rest is what follows the integer part of a float. */
static minfer_status put_number(mf_trender *r, mf_tsb *out, const mf_tfield *f, mf_tsb head,
                                const char *digits, size_t n, const char *rest, size_t rest_n)
{
    mf_tsb body = {0};
    bool zeros = f->align == '=' && f->fill_n == 1 && f->fill[0] == '0';
    if (f->width > MF_FIELD_MAX && f->group && zeros)
        return mf_trender_raise(r, MF_TE_VALUE, "field width %lld is too big", (long long)f->width);
    if (f->group) {
        size_t others = head.n + rest_n, width = zeros && f->width > 0 ? (size_t)f->width : 0;
        MF_TRY(put_grouped(r, &body, f->group, strchr("bxXo", f->type) && f->type ? 4 : 3, digits, n,
                           width > others ? width - others : 0));
    } else {
        MF_TRY(mf_tsb_put(r, &body, digits, n));
    }
    MF_TRY(mf_tsb_put(r, &body, rest, rest_n));
    return put_aligned(r, out, f, f->align ? f->align : '>', head, body);
}

static minfer_status put_sign(mf_trender *r, mf_tsb *head, const mf_tfield *f, bool negative)
{
    if (negative) return mf_tsb_char(r, head, '-');
    return f->sign == '+' || f->sign == ' ' ? mf_tsb_char(r, head, f->sign) : MINFER_OK;
}

static unsigned radix_of(char type)
{
    return type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
}

minfer_status mf_tfield_int(mf_trender *r, mf_tsb *out, const mf_tfield *f, int64_t v)
{
    char digits[64], *p = digits + sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    unsigned radix = radix_of(f->type);
    do *--p = (f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[u % radix];
    while ((u /= radix) != 0);
    size_t n = (size_t)(digits + sizeof digits - p);
    mf_tsb head = {0}, all = {0};
    MF_TRY(put_sign(r, &head, f, v < 0));
    if (f->alternate && radix != 10) {
        MF_TRY(mf_tsb_char(r, &head, '0'));
        MF_TRY(mf_tsb_char(r, &head, f->type));
    }
    if (f->precision > (int64_t)n) MF_TRY(mf_tsb_fill(r, &all, "0", 1, (size_t)f->precision - n));
    MF_TRY(mf_tsb_put(r, &all, p, n));
    return put_number(r, out, f, head, all.p, all.n, NULL, 0);
}

/* format(f, ".3"): like g, but 12 is "12.0" and an exponent comes one digit earlier. */
static minfer_status put_general(mf_trender *r, mf_tsb *out, double v, int precision)
{
    mf_tsb e = {0};
    if (precision == 0) precision = 1;
    MF_TRY(mf_tnumber_format(r, &e, v, 'e', precision - 1, false));
    MF_TRY(mf_tsb_char(r, &e, 0));
    long exponent = strtol(strchr(e.p, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < precision - 1) {
        MF_TRY(mf_tnumber_format(r, out, v, 'g', precision, false));
        return memchr(out->p, '.', out->n) ? MINFER_OK : mf_tsb_text(r, out, ".0");
    }
    return mf_tnumber_format(r, out, v, exponent == precision - 1 ? 'e' : 'g',
                             precision - (exponent == precision - 1), false);
}

/* Drops the zeros that %e leaves at the end of its digits. */
static void trim_zeros(mf_tsb *s)
{
    char *e = s->n ? memchr(s->p, 'e', s->n) : NULL, *point = s->n ? memchr(s->p, '.', s->n) : NULL;
    if (!e || !point) return;
    char *t = e;
    while (t[-1] == '0') t--;
    if (t[-1] == '.') t--;
    memmove(t, e, (size_t)(s->p + s->n - e));
    s->n -= (size_t)(e - t);
}

static minfer_status float_digits(mf_trender *r, mf_tsb *out, const mf_tfield *f, double v)
{
    char text[MF_NUMBER_REPR], type = f->type == 'n' ? 'g' : f->type;
    int precision = f->precision < 0 ? 6 : (int)f->precision;
    if (type == '%') {
        MF_TRY(mf_tnumber_format(r, out, v * 100, 'f', precision, f->alternate));
        return mf_tsb_char(r, out, '%');
    }
    if (type) return mf_tnumber_format(r, out, v, type, precision, f->alternate);
    if (f->precision < 0) return mf_tsb_put(r, out, text, mf_tnumber_repr(v, text));
    MF_TRY(put_general(r, out, v, precision));
    trim_zeros(out);
    return MINFER_OK;
}

minfer_status mf_tfield_float(mf_trender *r, mf_tsb *out, const mf_tfield *f, double v)
{
    mf_tsb head = {0}, text = {0};
    bool finite = isfinite(v), percent = f->type == '%';
    MF_TRY(put_sign(r, &head, f, !isnan(v) && signbit(v)));
    if (!finite) {
        bool upper = f->type && isupper((unsigned char)f->type);
        MF_TRY(mf_tsb_text(r, &text, isnan(v) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf"));
        if (percent) MF_TRY(mf_tsb_char(r, &text, '%'));
        return put_number(r, out, f, head, text.p, 0, text.p, text.n);
    }
    MF_TRY(float_digits(r, &text, f, fabs(v)));
    size_t whole = 0;
    while (whole < text.n && isdigit((unsigned char)text.p[whole])) whole++;
    return put_number(r, out, f, head, text.p, whole, text.p + whole, text.n - whole);
}

/* -- format(value, spec) -- */

static minfer_status bad_spec(mf_trender *r, const char *spec, size_t n)
{
    return mf_trender_raise(r, MF_TE_VALUE, "Invalid format specifier '%.*s'", n > 100 ? 100 : (int)n, spec);
}

static bool take_number(const char **p, const char *end, int64_t *v)
{
    const char *start = *p;
    for (*v = 0; *p < end && isdigit((unsigned char)**p); (*p)++)
        if (*v < INT32_MAX) *v = *v * 10 + (**p - '0');
    return *p > start;
}

static bool take_one(const char **p, const char *end, const char *set, char *out)
{
    if (*p >= end || !**p || !strchr(set, **p)) return false;
    *out = *(*p)++;
    return true;
}

static void take_alignment(const char **p, const char *end, mf_tfield *f)
{
    size_t n = *p < end ? mf_tchar_len(*p) : 0;
    if (n && end - *p > (ptrdiff_t)n && strchr("<>^=", (*p)[n]) && (*p)[n]) {
        memcpy(f->fill, *p, n);
        f->fill_n = n;
        f->align = (*p)[n];
        *p += n + 1;
    } else {
        take_one(p, end, "<>^=", &f->align);
    }
}

static bool parse_spec(const char *p, const char *end, mf_tfield *f)
{
    char ch;
    *f = (mf_tfield){.fill = " ", .fill_n = 1, .sign = '-', .precision = -1};
    take_alignment(&p, end, f);
    take_one(&p, end, "+- ", &f->sign);
    f->alternate = take_one(&p, end, "#", &ch);
    if (take_one(&p, end, "0", &ch) && !f->align) {
        f->fill[0] = '0';
        f->align = 'z'; /* '=' for numbers, nothing for text */
    }
    take_number(&p, end, &f->width);
    take_one(&p, end, ",_", &f->group);
    if (take_one(&p, end, ".", &ch) && !take_number(&p, end, &f->precision)) return false;
    if (p < end) f->type = *p++;
    return p == end && f->precision <= MF_FIELD_MAX;
}

static minfer_status bad_type(mf_trender *r, const mf_tfield *f, mf_tval v)
{
    return mf_trender_raise(r, MF_TE_VALUE, "Unknown format code '%c' for object of type '%s'",
                            isprint((unsigned char)f->type) ? f->type : '?', mf_tval_type_name(v));
}

static minfer_status format_text(mf_trender *r, mf_tsb *out, mf_tfield *f, mf_tval v)
{
    if (f->type && f->type != 's') return bad_type(r, f, v);
    if (f->align == 'z') f->align = 0;
    if (f->align == '=' || f->sign != '-' || f->alternate || f->group)
        return mf_trender_raise(r, MF_TE_VALUE,
                                "a sign, '=', '#' or ',' is not allowed in a string format specifier");
    return mf_tfield_text(r, out, f, v.s);
}

static minfer_status format_char(mf_trender *r, mf_tsb *out, mf_tfield *f, int64_t v)
{
    mf_tsb text = {0};
    if (v < 0 || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000))
        return mf_trender_raise(r, MF_TE_OVERFLOW, "%%c arg not in range(0x110000)");
    MF_TRY(mf_tsb_codepoint(r, &text, (uint32_t)v));
    mf_tstr s = {text.p, text.n, 1};
    return mf_tfield_text(r, out, f, &s);
}

static minfer_status format_number(mf_trender *r, mf_tsb *out, mf_tfield *f, mf_tval v)
{
    if (f->align == 'z') f->align = '=';
    bool integer = mf_tis_int(v);
    if (integer && (!f->type || strchr("bdoxXnc", f->type))) {
        if (f->precision >= 0)
            return mf_trender_raise(r, MF_TE_VALUE, "Precision not allowed in integer format specifier");
        if (f->type == 'c') return format_char(r, out, f, mf_tas_int(v));
        return mf_tfield_int(r, out, f, mf_tas_int(v));
    }
    if (f->type && !strchr("eEfFgGn%", f->type)) return bad_type(r, f, v);
    return mf_tfield_float(r, out, f, mf_tas_double(v));
}

minfer_status mf_tformat_value(mf_trender *r, mf_tsb *out, mf_tval v, const char *spec, size_t n)
{
    mf_tfield f;
    if (n == 0) return mf_tval_str(r, out, v);
    if (!mf_tis(v, MF_T_STR) && !mf_tis_number(v))
        return mf_trender_raise(r, MF_TE_TYPE, "unsupported format string passed to %s.__format__",
                                mf_tval_type_name(v));
    if (!parse_spec(spec, spec + n, &f)) return bad_spec(r, spec, n);
    return mf_tis(v, MF_T_STR) ? format_text(r, out, &f, v) : format_number(r, out, &f, v);
}
