/* Methods of str. Places count characters; the work is done on bytes. */
#include "template/format.h"
#include "template/iter.h"
#include "template/methods.h"
#include "template/ops.h"
#include "template/strings.h"
#include "template/unicode.h"

#include <string.h>

static minfer_status optional_str(mf_trender *r, const mf_targs *a, size_t i, const mf_tstr **out)
{
    *out = NULL;
    if (!mf_targ_given(a, i) || mf_tis(a->v[i], MF_T_NONE)) return MINFER_OK;
    return mf_tval_need_str(r, a->v[i], out);
}

/* -- case -- */

static minfer_status to_case(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_tuc_convert_all(r, (mf_tcase)a->which, a->v[0].s, out);
}

static minfer_status capitalize(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_tuc_capitalize(r, a->v[0].s, out);
}

static minfer_status title(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    mf_tsb text = {0};
    uint32_t cp;
    bool inside = false;
    for (size_t i = 0, k; i < s->n; i += k) {
        mf_tuc_at(s->p + i, &cp);
        MF_TRY(mf_tuc_convert(r, &text, inside ? MF_CASE_LOWER : MF_CASE_TITLE, s, i, &k));
        inside = mf_tuc_is_upper(cp) || mf_tuc_is_lower(cp) || mf_tuc_is_title(cp);
    }
    MF_TRY(mf_trender_charge(r, s->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status swapcase(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    mf_tsb text = {0};
    uint32_t cp;
    for (size_t i = 0, k; i < s->n; i += k) {
        k = mf_tuc_at(s->p + i, &cp);
        bool up = mf_tuc_is_upper(cp);
        if (up || mf_tuc_is_lower(cp))
            MF_TRY(mf_tuc_convert(r, &text, up ? MF_CASE_LOWER : MF_CASE_UPPER, s, i, &k));
        else
            MF_TRY(mf_tsb_put(r, &text, s->p + i, k));
    }
    MF_TRY(mf_trender_charge(r, s->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- ends -- */

static minfer_status strip(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *set;
    MF_TRY(optional_str(r, a, 1, &set));
    return mf_ttext_strip(r, a->v[0].s, set, (mf_tends)a->which, out);
}

static bool begins(const mf_tstr *s, const mf_tstr *part, size_t from, size_t to)
{
    return to - from >= part->n && (part->n == 0 || memcmp(s->p + from, part->p, part->n) == 0);
}

static bool ends(const mf_tstr *s, const mf_tstr *part, size_t from, size_t to)
{
    return to - from >= part->n && (part->n == 0 || memcmp(s->p + to - part->n, part->p, part->n) == 0);
}

/* Parameters i and i + 1 as the bytes [from, to) of the string; *any is false when they leave nothing to look
 * at. */
static minfer_status byte_span(mf_trender *r, const mf_targs *a, size_t i, size_t *from, size_t *to,
                               bool *any)
{
    const mf_tstr *s = a->v[0].s;
    int64_t first, last;
    MF_TRY(mf_tval_span(r, a->v[i], a->v[i + 1], (int64_t)s->chars, &first, &last));
    *any = first <= last;
    if (!*any) return MINFER_OK;
    if (s->n != s->chars) MF_TRY(mf_trender_charge(r, s->n));
    *from = mf_tstr_offset(s, (size_t)first);
    *to = mf_tstr_offset(s, (size_t)last);
    return MINFER_OK;
}

/* startswith (MF_LEFT) and endswith: one string, or a tuple of some. */
static minfer_status has_end(mf_trender *r, mf_targs *a, mf_tval *out)
{
    bool left = a->which == MF_LEFT;
    mf_tval one = a->v[1];
    mf_tlist single = {.v = &one, .n = 1}, *parts = mf_tis(one, MF_T_TUPLE) ? one.list : &single;
    size_t from = 0, to = 0;
    bool any;
    *out = mf_tbool(false);
    MF_TRY(byte_span(r, a, 2, &from, &to, &any));
    for (size_t i = 0; i < parts->n; i++) {
        if (!mf_tis(parts->v[i], MF_T_STR))
            return mf_trender_raise(r, MF_TE_TYPE, "%s first arg must be str or a tuple of str, not %s",
                                    left ? "startswith" : "endswith", mf_tval_type_name(parts->v[i]));
        out->b |= any && (left ? begins : ends)(a->v[0].s, parts->v[i].s, from, to);
        MF_TRY(mf_trender_charge(r, parts->v[i].s->n));
    }
    return MINFER_OK;
}

static minfer_status removeprefix(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    size_t cut = begins(s, part, 0, s->n) ? part->n : 0;
    return mf_tstr_view(r, s, cut, s->n - cut, out);
}
static minfer_status removesuffix(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    return mf_tstr_view(r, s, 0, s->n - (ends(s, part, 0, s->n) ? part->n : 0), out);
}

/* -- places -- */

typedef enum place { FIND, INDEX, RFIND, RINDEX } place;

/* The place in characters; where there is none, -1 or an error. */
static minfer_status find(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    size_t from = 0, to = 0, hit = MF_NOT_FOUND;
    bool any, right = a->which >= RFIND;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    MF_TRY(byte_span(r, a, 2, &from, &to, &any));
    if (any) MF_TRY((right ? mf_ttext_rfind : mf_ttext_find)(r, s, part, from, to, &hit));
    *out = mf_tint(hit == MF_NOT_FOUND ? -1 : (int64_t)mf_tstr_count(s->p, hit));
    bool must = a->which == INDEX || a->which == RINDEX;
    return must && out->i < 0 ? mf_trender_raise(r, MF_TE_VALUE, "substring not found") : MINFER_OK;
}

static minfer_status count(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    size_t from, to, hit;
    bool any;
    *out = mf_tint(0);
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    MF_TRY(byte_span(r, a, 2, &from, &to, &any));
    if (!any) return MINFER_OK;
    if (part->n == 0) {
        out->i = (int64_t)mf_tstr_count(s->p + from, to - from) + 1;
        return MINFER_OK;
    }
    for (;; from = hit + part->n, out->i++) {
        MF_TRY(mf_ttext_find(r, s, part, from, to, &hit));
        if (hit == MF_NOT_FOUND) return MINFER_OK;
    }
}

/* -- parts -- */

static minfer_status split(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *sep;
    int64_t max;
    *out = mf_tlistval(NULL);
    MF_TRY(optional_str(r, a, 1, &sep));
    MF_TRY(mf_targ_int(r, a, 2, -1, &max));
    MF_TRY(mf_tlist_new(r, 0, &out->list));
    return (a->which == MF_RIGHT ? mf_ttext_rsplit : mf_ttext_split)(r, a->v[0].s, sep, max, out->list);
}

static minfer_status splitlines(mf_trender *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tlistval(NULL);
    MF_TRY(mf_tlist_new(r, 0, &out->list));
    return mf_ttext_splitlines(r, a->v[0].s, mf_targ_truth(a, 1, false), out->list);
}

/* (before, separator, after); what is not found leaves the whole at one end. */
static minfer_status partition(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *sep;
    size_t hit;
    mf_tlist *parts;
    mf_tval part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &sep));
    if (sep->n == 0) return mf_trender_raise(r, MF_TE_VALUE, "empty separator");
    bool right = a->which == MF_RIGHT;
    MF_TRY((right ? mf_ttext_rfind : mf_ttext_find)(r, s, sep, 0, s->n, &hit));
    bool found = hit != MF_NOT_FOUND;
    size_t a_end = found ? hit : right ? 0 : s->n, b_end = found ? hit + sep->n : a_end;
    size_t cuts[] = {0, a_end, b_end, s->n};
    MF_TRY(mf_tlist_new(r, 3, &parts));
    for (size_t i = 0; i < 3; i++) {
        MF_TRY(mf_tstr_view(r, s, cuts[i], cuts[i + 1] - cuts[i], &part));
        MF_TRY(mf_tlist_push(r, parts, part));
    }
    *out = mf_ttupleval(parts);
    return MINFER_OK;
}

static minfer_status join(mf_trender *r, mf_targs *a, mf_tval *out)
{
    if (!mf_titer_possible(a->v[1])) return mf_trender_raise(r, MF_TE_TYPE, "can only join an iterable");
    return mf_ttext_join(r, a->v[0].s, a->v[1], false, out);
}

static minfer_status replace(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *old, *with;
    int64_t n;
    MF_TRY(mf_tval_need_str(r, a->v[1], &old));
    MF_TRY(mf_tval_need_str(r, a->v[2], &with));
    MF_TRY(mf_targ_int(r, a, 3, -1, &n));
    return mf_ttext_replace(r, a->v[0].s, old, with, n, out);
}

/* -- padding -- */

static minfer_status pad(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *fill = NULL;
    int64_t width;
    MF_TRY(mf_targ_int(r, a, 1, 0, &width));
    if (mf_targ_given(a, 2)) MF_TRY(mf_tval_need_str(r, a->v[2], &fill));
    return mf_ttext_pad(r, a->v[0].s, width, (char)a->which, fill, out);
}

static minfer_status zfill(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    int64_t width;
    mf_tsb text = {0};
    MF_TRY(mf_targ_int(r, a, 1, 0, &width));
    size_t sign = s->n && (s->p[0] == '-' || s->p[0] == '+');
    MF_TRY(mf_tsb_put(r, &text, s->p, sign));
    if (width > (int64_t)s->chars) MF_TRY(mf_tsb_fill(r, &text, "0", 1, (size_t)width - s->chars));
    MF_TRY(mf_tsb_put(r, &text, s->p + sign, s->n - sign));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status expandtabs(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    int64_t size, column = 0;
    mf_tsb text = {0};
    MF_TRY(mf_targ_int(r, a, 1, 8, &size));
    for (size_t i = 0, k; i < s->n; i += k) {
        k = mf_tchar_len(s->p + i);
        if (s->p[i] == '\t') {
            int64_t blanks = size > 0 ? size - column % size : 0;
            MF_TRY(mf_tsb_fill(r, &text, " ", 1, (size_t)blanks));
            column += blanks;
            continue;
        }
        column = s->p[i] == '\n' || s->p[i] == '\r' ? 0 : column + 1;
        MF_TRY(mf_tsb_put(r, &text, s->p + i, k));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- format -- */

static minfer_status format(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_tformat_braces(r, a->v[0].s, &a->rest, out);
}

static minfer_status format_map(mf_trender *r, mf_targs *a, mf_tval *out)
{
    size_t i = 0, n = 0;
    if (!mf_tis(a->v[1], MF_T_DICT)) return mf_trender_raise(r, MF_TE_TYPE, "format_map() takes a mapping");
    const mf_tdict *d = a->v[1].dict;
    mf_tkw *kw = mf_trender_alloc(r, d->live, sizeof *kw);
    if (!kw) return mf_trender_failed(r);
    for (const mf_tentry *e; (e = mf_tdict_next(d, &i));)
        if (mf_tis(e->key, MF_T_STR)) kw[n++] = (mf_tkw){e->key.s, e->value};
    return mf_tformat_braces(r, a->v[0].s, &(mf_tcall){.kw = kw, .nkw = n}, out);
}

static const mf_tfndef defs[] = {
    {"capitalize", capitalize, "", 0, 0},
    {"casefold", to_case, "", 0, MF_CASE_FOLD},
    {"center", pad, "/width fillchar", 1, '^'},
    {"count", count, "/sub start end", 1, 0},
    {"endswith", has_end, "/suffix start end", 1, MF_RIGHT},
    {"expandtabs", expandtabs, "tabsize", 0, 0},
    {"find", find, "/sub start end", 1, FIND},
    {"format", format, "*", 0, 0},
    {"format_map", format_map, "/mapping", 1, 0},
    {"index", find, "/sub start end", 1, INDEX},
    {"join", join, "/iterable", 1, 0},
    {"ljust", pad, "/width fillchar", 1, '<'},
    {"lower", to_case, "", 0, MF_CASE_LOWER},
    {"lstrip", strip, "/chars", 0, MF_LEFT},
    {"partition", partition, "/sep", 1, MF_LEFT},
    {"removeprefix", removeprefix, "/prefix", 1, 0},
    {"removesuffix", removesuffix, "/suffix", 1, 0},
    {"replace", replace, "/old new count", 2, 0},
    {"rfind", find, "/sub start end", 1, RFIND},
    {"rindex", find, "/sub start end", 1, RINDEX},
    {"rjust", pad, "/width fillchar", 1, '>'},
    {"rpartition", partition, "/sep", 1, MF_RIGHT},
    {"rsplit", split, "sep maxsplit", 0, MF_RIGHT},
    {"rstrip", strip, "/chars", 0, MF_RIGHT},
    {"split", split, "sep maxsplit", 0, MF_LEFT},
    {"splitlines", splitlines, "keepends", 0, 0},
    {"startswith", has_end, "/prefix start end", 1, MF_LEFT},
    {"strip", strip, "/chars", 0, MF_BOTH},
    {"swapcase", swapcase, "", 0, 0},
    {"title", title, "", 0, 0},
    {"upper", to_case, "", 0, MF_CASE_UPPER},
    {"zfill", zfill, "/width", 1, 0},
};

const mf_tfndef *mf_tmethod_text_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
