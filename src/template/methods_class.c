/* Methods of str that ask what kind of characters it has. */
#include "template/methods.h"
#include "template/unicode.h"

static bool is_alnum(uint32_t cp)
{
    return mf_tuc_is_alpha(cp) || mf_tuc_is_numeric(cp) || mf_tuc_is_digit(cp);
}

static bool is_ascii(uint32_t cp)
{
    return cp < 0x80;
}

typedef enum kind { ALNUM, ALPHA, ASCII, DECIMAL, DIGIT, NUMERIC, PRINTABLE, SPACE } kind;

/* Every character is of the kind, and there is one (where that matters). */
static minfer_status all_of_kind(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static bool (*const kinds[])(uint32_t) = {
        [ALNUM] = is_alnum,
        [ALPHA] = mf_tuc_is_alpha,
        [ASCII] = is_ascii,
        [DECIMAL] = mf_tuc_is_decimal,
        [DIGIT] = mf_tuc_is_digit,
        [NUMERIC] = mf_tuc_is_numeric,
        [PRINTABLE] = mf_tuc_is_printable,
        [SPACE] = mf_tuc_is_space,
    };
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    *out = mf_tbool(s->n > 0 || a->which == ASCII || a->which == PRINTABLE);
    for (size_t i = 0; out->b && i < s->n;) {
        i += mf_tuc_at(s->p + i, &cp);
        out->b = kinds[a->which](cp);
    }
    return mf_trender_charge(r, s->n);
}

static minfer_status isidentifier(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    *out = mf_tbool(s->n > 0);
    for (size_t i = 0, k; out->b && i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        out->b = mf_tuc_is_ident(cp, i == 0);
    }
    return mf_trender_charge(r, s->n);
}

/* There is a letter with case, and all of them have the wanted one. */
minfer_status mf_tmethod_in_case(mf_trender *r, const mf_tstr *s, bool upper, mf_tval *out)
{
    uint32_t cp;
    bool any = false, all = true;
    for (size_t i = 0; all && i < s->n;) {
        i += mf_tuc_at(s->p + i, &cp);
        bool up = mf_tuc_is_upper(cp), low = mf_tuc_is_lower(cp);
        all = !(upper ? low : up) && !mf_tuc_is_title(cp);
        any |= upper ? up : low;
    }
    *out = mf_tbool(any && all);
    return mf_trender_charge(r, s->n);
}

static minfer_status in_case(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_tmethod_in_case(r, a->v[0].s, a->which, out);
}

/* Upper or title case after what has no case, lower case after what has. */
static minfer_status istitle(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    uint32_t cp;
    bool cased = false, any = false, right = true;
    for (size_t i = 0; right && i < s->n;) {
        i += mf_tuc_at(s->p + i, &cp);
        bool up = mf_tuc_is_upper(cp) || mf_tuc_is_title(cp), low = mf_tuc_is_lower(cp);
        right = up ? !cased : !low || cased;
        cased = up || low;
        any |= cased;
    }
    *out = mf_tbool(right && any);
    return mf_trender_charge(r, s->n);
}

static const mf_tfndef defs[] = {
    {"isalnum", all_of_kind, "", 0, ALNUM},
    {"isalpha", all_of_kind, "", 0, ALPHA},
    {"isascii", all_of_kind, "", 0, ASCII},
    {"isdecimal", all_of_kind, "", 0, DECIMAL},
    {"isdigit", all_of_kind, "", 0, DIGIT},
    {"isidentifier", isidentifier, "", 0, 0},
    {"islower", in_case, "", 0, false},
    {"isnumeric", all_of_kind, "", 0, NUMERIC},
    {"isprintable", all_of_kind, "", 0, PRINTABLE},
    {"isspace", all_of_kind, "", 0, SPACE},
    {"istitle", istitle, "", 0, 0},
    {"isupper", in_case, "", 0, true},
};

const mf_tfndef *mf_tmethod_class_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
