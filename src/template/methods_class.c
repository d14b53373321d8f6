/* Methods of str that ask what kind of characters it has. */
#include "template/methods.h"
#include "template/unicode.h"

typedef bool class_fn(uint32_t cp);

/* Every character is in the class, and there is one. */
static minfer_status all_in(mf_render *r, const mf_targs *a, class_fn *is, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    *out = mf_tbool(s->n > 0);
    for (size_t i = 0; out->b && i < s->n;) {
        i += mf_uc_at(s->p + i, &cp);
        out->b = is(cp);
    }
    return mf_render_charge(r, s->n);
}

static bool alnum(uint32_t cp)
{
    return mf_uc_is_alpha(cp) || mf_uc_is_numeric(cp) || mf_uc_is_digit(cp);
}
static bool ascii(uint32_t cp)
{
    return cp < 0x80;
}

static minfer_status isalnum_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, alnum, out);
}
static minfer_status isalpha_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, mf_uc_is_alpha, out);
}
static minfer_status isdecimal(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, mf_uc_is_decimal, out);
}
static minfer_status isdigit_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, mf_uc_is_digit, out);
}
static minfer_status isnumeric(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, mf_uc_is_numeric, out);
}
static minfer_status isspace_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return all_in(r, a, mf_uc_is_space, out);
}

/* These two are true of the empty string. */
static minfer_status isascii_(mf_render *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(all_in(r, a, ascii, out));
    out->b |= a->v[0].s->n == 0;
    return MINFER_OK;
}
static minfer_status isprintable(mf_render *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(all_in(r, a, mf_uc_is_printable, out));
    out->b |= a->v[0].s->n == 0;
    return MINFER_OK;
}

static minfer_status isidentifier(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    *out = mf_tbool(s->n > 0);
    for (size_t i = 0, k; out->b && i < s->n; i += k) {
        k = mf_uc_at(s->p + i, &cp);
        out->b = mf_uc_is_ident(cp, i == 0);
    }
    return mf_render_charge(r, s->n);
}

static minfer_status in_case(mf_render *r, const mf_targs *a, const char *test, mf_tval *out)
{
    mf_tstr name = {test, 5, 5};
    return mf_tcall_def(r, mf_test_find(&name), a->v[0], &(mf_tcall){0}, out);
}

static minfer_status isupper_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return in_case(r, a, "upper", out);
}
static minfer_status islower_(mf_render *r, mf_targs *a, mf_tval *out)
{
    return in_case(r, a, "lower", out);
}

/* Upper or title case after what has no case, lower case after what has. */
static minfer_status istitle(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    bool cased = false, any = false, right = true;
    for (size_t i = 0; right && i < s->n;) {
        i += mf_uc_at(s->p + i, &cp);
        bool up = mf_uc_is_upper(cp) || mf_uc_is_title(cp), low = mf_uc_is_lower(cp);
        right = up ? !cased : !low || cased;
        cased = up || low;
        any |= cased;
    }
    *out = mf_tbool(right && any);
    return mf_render_charge(r, s->n);
}

static const mf_tfndef defs[] = {
    {"isalnum", isalnum_, "", 0},    {"isalpha", isalpha_, "", 0},    {"isascii", isascii_, "", 0},
    {"isdecimal", isdecimal, "", 0}, {"isdigit", isdigit_, "", 0},    {"isidentifier", isidentifier, "", 0},
    {"islower", islower_, "", 0},    {"isnumeric", isnumeric, "", 0}, {"isprintable", isprintable, "", 0},
    {"isspace", isspace_, "", 0},    {"istitle", istitle, "", 0},     {"isupper", isupper_, "", 0},
};

const mf_tfndef *mf_method_class_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
