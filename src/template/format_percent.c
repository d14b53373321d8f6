/* printf-style formatting: "..." % args. */
#include "template/format.h"
#include "template/ops.h"
#include "template/print.h"
#include "template/unicode.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

typedef struct state {
    mf_trender *r;
    const mf_tstr *fmt;
    size_t i; /* byte of fmt */
    mf_tval args;
    size_t used;  /* arguments taken so far */
    bool mapping; /* args may be asked by name, and need not be used up */
    mf_tsb out;
} state;

static minfer_status incomplete(state *s)
{
    return mf_trender_raise(s->r, MF_TE_VALUE, "incomplete format");
}

static minfer_status next_arg(state *s, mf_tval *v)
{
    size_t n = mf_tis(s->args, MF_T_TUPLE) ? s->args.list->n : 1;
    if (s->used >= n) return mf_trender_raise(s->r, MF_TE_TYPE, "not enough arguments for format string");
    *v = mf_tis(s->args, MF_T_TUPLE) ? s->args.list->v[s->used] : s->args;
    s->used++;
    return MINFER_OK;
}

/* %(name): the key is everything up to the parenthesis that matches. */
static minfer_status named_arg(state *s, mf_tval *v)
{
    size_t start = ++s->i, depth = 1;
    for (; s->i < s->fmt->n; s->i++) {
        if (s->fmt->p[s->i] == '(') depth++;
        if (s->fmt->p[s->i] == ')' && --depth == 0) break;
    }
    if (s->i >= s->fmt->n) return mf_trender_raise(s->r, MF_TE_VALUE, "incomplete format key");
    mf_tval key;
    mf_tentry *e;
    MF_TRY(mf_tstr_view(s->r, s->fmt, start, s->i - start, &key));
    s->i++;
    if (!mf_tis(s->args, MF_T_DICT)) return mf_trender_raise(s->r, MF_TE_TYPE, "format requires a mapping");
    MF_TRY(mf_tdict_find(s->r, s->args.dict, key, &e));
    if (!e)
        return mf_trender_raise(s->r, MF_TE_KEY, "'%.*s'", key.s->n > 200 ? 200 : (int)key.s->n, key.s->p);
    *v = e->value;
    return MINFER_OK;
}

/* A number in the text, or * for one from the arguments. */
static minfer_status size_of(state *s, int64_t *out)
{
    mf_tval v;
    if (s->i < s->fmt->n && s->fmt->p[s->i] == '*') {
        s->i++;
        MF_TRY(next_arg(s, &v));
        if (!mf_tis_int(v)) return mf_trender_raise(s->r, MF_TE_TYPE, "* wants int");
        *out = mf_tas_int(v);
        return *out > INT32_MAX ? mf_trender_raise(s->r, MF_TE_OVERFLOW, "a width or precision is too big")
                                : MINFER_OK;
    }
    for (*out = 0; s->i < s->fmt->n && isdigit((unsigned char)s->fmt->p[s->i]); s->i++) {
        if (*out > INT32_MAX / 10) return mf_trender_raise(s->r, MF_TE_VALUE, "width too big");
        *out = *out * 10 + (s->fmt->p[s->i] - '0');
    }
    return MINFER_OK;
}

static void take_flags(state *s, mf_tfield *f)
{
    bool left = false, zero = false;
    for (; s->i < s->fmt->n; s->i++) {
        char ch = s->fmt->p[s->i];
        if (ch == '-')
            left = true;
        else if (ch == '0')
            zero = true;
        else if (ch == '#')
            f->alternate = true;
        else if (ch == '+')
            f->sign = '+';
        else if (ch == ' ')
            f->sign = f->sign == '+' ? '+' : ' ';
        else
            break;
    }
    f->align = left ? '<' : zero ? '=' : '>';
    f->fill[0] = zero && !left ? '0' : ' ';
}

static minfer_status take_sizes(state *s, mf_tfield *f)
{
    MF_TRY(size_of(s, &f->width));
    if (f->width < 0) {
        f->align = '<';
        f->fill[0] = ' ';
        f->width = f->width == INT64_MIN ? INT64_MAX : -f->width;
    }
    if (s->i < s->fmt->n && s->fmt->p[s->i] == '.') {
        s->i++;
        MF_TRY(size_of(s, &f->precision));
        if (f->precision < 0) f->precision = 0;
        if (f->precision > MF_FIELD_MAX) return mf_trender_raise(s->r, MF_TE_VALUE, "precision too big");
    }
    if (s->i < s->fmt->n && strchr("hlL", s->fmt->p[s->i]) && s->fmt->p[s->i]) s->i++;
    return MINFER_OK;
}

static minfer_status put_text(state *s, mf_tfield *f, mf_tval v)
{
    mf_tsb text = {0};
    mf_tval plain;
    if (f->type == 's')
        MF_TRY(mf_tval_str(s->r, &text, v));
    else if (f->type == 'a' && mf_tis(v, MF_T_STR))
        MF_TRY(mf_tprint_quoted(s->r, &text, v.s, true));
    else
        MF_TRY(mf_tval_repr(s->r, &text, v));
    MF_TRY(mf_tstr_wrap(s->r, text.p, text.n, &plain));
    f->fill[0] = ' ';
    if (f->align == '=') f->align = '>';
    return mf_tfield_text(s->r, &s->out, f, plain.s);
}

static minfer_status put_char(state *s, mf_tfield *f, mf_tval v)
{
    mf_tsb text = {0};
    f->precision = -1;
    f->type = 's';
    if (mf_tis(v, MF_T_STR) && v.s->chars == 1) return put_text(s, f, v);
    if (!mf_tis_int(v)) return mf_trender_raise(s->r, MF_TE_TYPE, "%%c requires int or char");
    int64_t cp = mf_tas_int(v);
    if (cp < 0 || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000))
        return mf_trender_raise(s->r, MF_TE_OVERFLOW, "%%c arg not in range(0x110000)");
    MF_TRY(mf_tsb_codepoint(s->r, &text, (uint32_t)cp));
    MF_TRY(mf_tstr_wrap(s->r, text.p, text.n, &v));
    return put_text(s, f, v);
}

static minfer_status put_int(state *s, mf_tfield *f, mf_tval v)
{
    bool decimal = strchr("diu", f->type) != NULL;
    if (mf_tis(v, MF_T_FLOAT) && decimal) {
        if (!(v.f >= -0x1p63 && v.f < 0x1p63)) return mf_tval_too_big(s->r);
        v = mf_tint((int64_t)v.f);
    }
    if (!mf_tis_int(v))
        return mf_trender_raise(s->r, MF_TE_TYPE, "%%%c format: %s is required, not %s", f->type,
                                decimal ? "a real number" : "an integer", mf_tval_type_name(v));
    if (decimal) f->type = 'd';
    return mf_tfield_int(s->r, &s->out, f, mf_tas_int(v));
}

static minfer_status put_field(state *s, mf_tfield *f, mf_tval v)
{
    if (strchr("sra", f->type)) return put_text(s, f, v);
    if (mf_tis(v, MF_T_UNDEFINED) && !strchr("cxXo", f->type)) return mf_tundefined_raise(s->r, v);
    if (f->type == 'c') return put_char(s, f, v);
    if (strchr("diuoxX", f->type)) return put_int(s, f, v);
    if (!mf_tis_number(v))
        return mf_trender_raise(s->r, MF_TE_TYPE, "must be real number, not %s", mf_tval_type_name(v));
    return mf_tfield_float(s->r, &s->out, f, mf_tas_double(v));
}

/* After a '%'. */
static minfer_status conversion(state *s)
{
    mf_tfield f = {.fill = " ", .fill_n = 1, .sign = '-', .precision = -1};
    mf_tval v = mf_tmissing();
    if (s->i < s->fmt->n && s->fmt->p[s->i] == '(') MF_TRY(named_arg(s, &v));
    take_flags(s, &f);
    MF_TRY(take_sizes(s, &f));
    if (s->i >= s->fmt->n) return incomplete(s);
    f.type = s->fmt->p[s->i];
    if (f.type == '%') {
        s->i++;
        return mf_tsb_char(s->r, &s->out, '%');
    }
    if (!f.type || !strchr("sracdiuoxXeEfFgG", f.type))
        return mf_trender_raise(s->r, MF_TE_VALUE, "unsupported format character (0x%x) at index %zu",
                                (unsigned char)f.type, mf_tstr_count(s->fmt->p, s->i));
    s->i++;
    if (mf_tis(v, MF_T_MISSING)) MF_TRY(next_arg(s, &v));
    return put_field(s, &f, v);
}

minfer_status mf_tformat_percent(mf_trender *r, const mf_tstr *fmt, mf_tval args, mf_tval *out)
{
    state s = {.r = r, .fmt = fmt, .args = args};
    s.mapping = mf_tis(args, MF_T_DICT) || mf_tis(args, MF_T_LIST) || mf_tis(args, MF_T_RANGE) ||
                mf_tis(args, MF_T_UNDEFINED);
    while (s.i < fmt->n) {
        const char *p = fmt->p + s.i, *percent = memchr(p, '%', fmt->n - s.i);
        size_t plain = percent ? (size_t)(percent - p) : fmt->n - s.i;
        MF_TRY(mf_tsb_put(r, &s.out, p, plain));
        s.i += plain;
        if (!percent) break;
        s.i++;
        MF_TRY(conversion(&s));
    }
    bool tuple = mf_tis(args, MF_T_TUPLE);
    if (!s.mapping && s.used < (tuple ? args.list->n : 1))
        return mf_trender_raise(r, MF_TE_TYPE, "not all arguments converted during string formatting");
    return mf_tstr_wrap(r, s.out.p, s.out.n, out);
}
