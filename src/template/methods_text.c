/* Methods of str. Places count characters; the work is done on bytes. */
#include "template/format.h"
#include "template/iter.h"
#include "template/methods.h"
#include "template/ops.h"
#include "template/strings.h"
#include "template/unicode.h"

#include <string.h>

static minfer_status optional_str(mf_render *r, const mf_targs *a, size_t i, const mf_tstr **out)
{
    *out = NULL;
    if (!mf_targ_given(a, i) || mf_tis(a->v[i], MF_T_NONE)) return MINFER_OK;
    return mf_tval_need_str(r, a->v[i], out);
}

/* -- case -- */

static minfer_status upper(mf_render *r, mf_targs *a, mf_tval *out)
{
    return mf_uc_convert_all(r, MF_CASE_UPPER, a->v[0].s, out);
}
static minfer_status lower(mf_render *r, mf_targs *a, mf_tval *out)
{
    return mf_uc_convert_all(r, MF_CASE_LOWER, a->v[0].s, out);
}
static minfer_status casefold(mf_render *r, mf_targs *a, mf_tval *out)
{
    return mf_uc_convert_all(r, MF_CASE_FOLD, a->v[0].s, out);
}
static minfer_status capitalize(mf_render *r, mf_targs *a, mf_tval *out)
{
    return mf_uc_capitalize(r, a->v[0].s, out);
}

static minfer_status title(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    mf_tsb text = {0};
    uint32_t cp;
    bool inside = false;
    for (size_t i = 0, k; i < s->n; i += k) {
        mf_uc_at(s->p + i, &cp);
        MF_TRY(mf_uc_convert(r, &text, inside ? MF_CASE_LOWER : MF_CASE_TITLE, s, i, &k));
        inside = mf_uc_is_upper(cp) || mf_uc_is_lower(cp) || mf_uc_is_title(cp);
    }
    MF_TRY(mf_render_charge(r, s->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status swapcase(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s;
    mf_tsb text = {0};
    uint32_t cp;
    for (size_t i = 0, k; i < s->n; i += k) {
        mf_uc_at(s->p + i, &cp);
        MF_TRY(mf_uc_convert(r, &text, mf_uc_is_upper(cp) ? MF_CASE_LOWER : MF_CASE_UPPER, s, i, &k));
    }
    MF_TRY(mf_render_charge(r, s->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- ends -- */

static minfer_status strip_ends(mf_render *r, const mf_targs *a, mf_tends ends, mf_tval *out)
{
    const mf_tstr *set;
    MF_TRY(optional_str(r, a, 1, &set));
    return mf_text_strip(r, a->v[0].s, set, ends, out);
}

static minfer_status strip(mf_render *r, mf_targs *a, mf_tval *out)
{
    return strip_ends(r, a, MF_BOTH, out);
}
static minfer_status lstrip(mf_render *r, mf_targs *a, mf_tval *out)
{
    return strip_ends(r, a, MF_LEFT, out);
}
static minfer_status rstrip(mf_render *r, mf_targs *a, mf_tval *out)
{
    return strip_ends(r, a, MF_RIGHT, out);
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
static minfer_status byte_span(mf_render *r, const mf_targs *a, size_t i, size_t *from, size_t *to, bool *any)
{
    const mf_tstr *s = a->v[0].s;
    int64_t first, last;
    MF_TRY(mf_tval_span(r, a->v[i], a->v[i + 1], (int64_t)s->chars, &first, &last));
    *any = first <= last;
    if (!*any) return MINFER_OK;
    if (s->n != s->chars) MF_TRY(mf_render_charge(r, s->n));
    *from = mf_tstr_offset(s, (size_t)first);
    *to = mf_tstr_offset(s, (size_t)last);
    return MINFER_OK;
}

/* startswith and endswith: one string, or a tuple of some. */
static minfer_status has_end(mf_render *r, const mf_targs *a, const char *name,
                             bool (*has)(const mf_tstr *, const mf_tstr *, size_t, size_t), mf_tval *out)
{
    mf_tval one = a->v[1];
    mf_tlist single = {.v = &one, .n = 1}, *parts = mf_tis(one, MF_T_TUPLE) ? one.list : &single;
    size_t from, to;
    bool any;
    *out = mf_tbool(false);
    MF_TRY(byte_span(r, a, 2, &from, &to, &any));
    for (size_t i = 0; i < parts->n; i++) {
        if (!mf_tis(parts->v[i], MF_T_STR))
            return mf_render_raise(r, MF_TE_TYPE, "%s first arg must be str or a tuple of str, not %s", name,
                                   mf_tval_type_name(parts->v[i]));
        out->b |= any && has(a->v[0].s, parts->v[i].s, from, to);
        MF_TRY(mf_render_charge(r, parts->v[i].s->n));
    }
    return MINFER_OK;
}

static minfer_status startswith(mf_render *r, mf_targs *a, mf_tval *out)
{
    return has_end(r, a, "startswith", begins, out);
}
static minfer_status endswith(mf_render *r, mf_targs *a, mf_tval *out)
{
    return has_end(r, a, "endswith", ends, out);
}

static minfer_status removeprefix(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    size_t cut = begins(s, part, 0, s->n) ? part->n : 0;
    return mf_tstr_view(r, s, cut, s->n - cut, out);
}
static minfer_status removesuffix(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    return mf_tstr_view(r, s, 0, s->n - (ends(s, part, 0, s->n) ? part->n : 0), out);
}

/* -- places -- */

typedef minfer_status find_fn(mf_render *, const mf_tstr *, const mf_tstr *, size_t, size_t, size_t *);

/* The place in characters, or -1. */
static minfer_status find_place(mf_render *r, const mf_targs *a, find_fn *how, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *part;
    size_t from, to, hit = MF_NOT_FOUND;
    bool any;
    MF_TRY(mf_tval_need_str(r, a->v[1], &part));
    MF_TRY(byte_span(r, a, 2, &from, &to, &any));
    if (any) MF_TRY(how(r, s, part, from, to, &hit));
    *out = mf_tint(hit == MF_NOT_FOUND ? -1 : (int64_t)mf_tstr_count(s->p, hit));
    return MINFER_OK;
}

static minfer_status find(mf_render *r, mf_targs *a, mf_tval *out)
{
    return find_place(r, a, mf_text_find, out);
}
static minfer_status rfind(mf_render *r, mf_targs *a, mf_tval *out)
{
    return find_place(r, a, mf_text_rfind, out);
}

static minfer_status must_be_there(mf_render *r, const mf_tval *place)
{
    return place->i < 0 ? mf_render_raise(r, MF_TE_VALUE, "substring not found") : MINFER_OK;
}

static minfer_status text_index(mf_render *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(find_place(r, a, mf_text_find, out));
    return must_be_there(r, out);
}
static minfer_status rindex_(mf_render *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(find_place(r, a, mf_text_rfind, out));
    return must_be_there(r, out);
}

static minfer_status count(mf_render *r, mf_targs *a, mf_tval *out)
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
        MF_TRY(mf_text_find(r, s, part, from, to, &hit));
        if (hit == MF_NOT_FOUND) return MINFER_OK;
    }
}

/* -- parts -- */

typedef minfer_status split_fn(mf_render *, const mf_tstr *, const mf_tstr *, int64_t, mf_tlist *);

static minfer_status split_by(mf_render *r, const mf_targs *a, split_fn *how, mf_tval *out)
{
    const mf_tstr *sep;
    int64_t max;
    *out = mf_tlistval(NULL);
    MF_TRY(optional_str(r, a, 1, &sep));
    MF_TRY(mf_targ_int(r, a, 2, -1, &max));
    MF_TRY(mf_tlist_new(r, 0, &out->list));
    return how(r, a->v[0].s, sep, max, out->list);
}

static minfer_status split(mf_render *r, mf_targs *a, mf_tval *out)
{
    return split_by(r, a, mf_text_split, out);
}
static minfer_status rsplit(mf_render *r, mf_targs *a, mf_tval *out)
{
    return split_by(r, a, mf_text_rsplit, out);
}

static minfer_status splitlines(mf_render *r, mf_targs *a, mf_tval *out)
{
    *out = mf_tlistval(NULL);
    MF_TRY(mf_tlist_new(r, 0, &out->list));
    return mf_text_splitlines(r, a->v[0].s, mf_targ_truth(a, 1, false), out->list);
}

/* (before, separator, after); what is not found leaves the whole at one end. */
static minfer_status part_at(mf_render *r, const mf_targs *a, find_fn *how, bool right, mf_tval *out)
{
    const mf_tstr *s = a->v[0].s, *sep;
    size_t hit;
    mf_tlist *parts;
    mf_tval part;
    MF_TRY(mf_tval_need_str(r, a->v[1], &sep));
    if (sep->n == 0) return mf_render_raise(r, MF_TE_VALUE, "empty separator");
    MF_TRY(how(r, s, sep, 0, s->n, &hit));
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

static minfer_status partition(mf_render *r, mf_targs *a, mf_tval *out)
{
    return part_at(r, a, mf_text_find, false, out);
}
static minfer_status rpartition(mf_render *r, mf_targs *a, mf_tval *out)
{
    return part_at(r, a, mf_text_rfind, true, out);
}

static minfer_status join(mf_render *r, mf_targs *a, mf_tval *out)
{
    if (!mf_titer_possible(a->v[1])) return mf_render_raise(r, MF_TE_TYPE, "can only join an iterable");
    return mf_text_join(r, a->v[0].s, a->v[1], false, out);
}

static minfer_status replace(mf_render *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *old, *with;
    int64_t n;
    MF_TRY(mf_tval_need_str(r, a->v[1], &old));
    MF_TRY(mf_tval_need_str(r, a->v[2], &with));
    MF_TRY(mf_targ_int(r, a, 3, -1, &n));
    return mf_text_replace(r, a->v[0].s, old, with, n, out);
}

/* -- padding -- */

static minfer_status pad(mf_render *r, const mf_targs *a, char align, mf_tval *out)
{
    const mf_tstr *fill = NULL;
    int64_t width;
    MF_TRY(mf_targ_int(r, a, 1, 0, &width));
    if (mf_targ_given(a, 2)) MF_TRY(mf_tval_need_str(r, a->v[2], &fill));
    return mf_text_pad(r, a->v[0].s, width, align, fill, out);
}

static minfer_status ljust(mf_render *r, mf_targs *a, mf_tval *out)
{
    return pad(r, a, '<', out);
}
static minfer_status rjust(mf_render *r, mf_targs *a, mf_tval *out)
{
    return pad(r, a, '>', out);
}
static minfer_status center(mf_render *r, mf_targs *a, mf_tval *out)
{
    return pad(r, a, '^', out);
}

static minfer_status zfill(mf_render *r, mf_targs *a, mf_tval *out)
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

static minfer_status expandtabs(mf_render *r, mf_targs *a, mf_tval *out)
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

static minfer_status format(mf_render *r, mf_targs *a, mf_tval *out)
{
    return mf_format_braces(r, a->v[0].s, &a->rest, out);
}

static minfer_status format_map(mf_render *r, mf_targs *a, mf_tval *out)
{
    size_t i = 0, n = 0;
    if (!mf_tis(a->v[1], MF_T_DICT)) return mf_render_raise(r, MF_TE_TYPE, "format_map() takes a mapping");
    const mf_tdict *d = a->v[1].dict;
    mf_tkw *kw = mf_render_alloc(r, d->live, sizeof *kw);
    if (!kw) return mf_render_failed(r);
    for (const mf_tentry *e; (e = mf_tdict_next(d, &i));)
        if (mf_tis(e->key, MF_T_STR)) kw[n++] = (mf_tkw){e->key.s, e->value};
    return mf_format_braces(r, a->v[0].s, &(mf_tcall){.kw = kw, .nkw = n}, out);
}

static const mf_tfndef defs[] = {
    {"capitalize", capitalize, "", 0},
    {"casefold", casefold, "", 0},
    {"center", center, "/width fillchar", 1},
    {"count", count, "/sub start end", 1},
    {"endswith", endswith, "/suffix start end", 1},
    {"expandtabs", expandtabs, "tabsize", 0},
    {"find", find, "/sub start end", 1},
    {"format", format, "*", 0},
    {"format_map", format_map, "/mapping", 1},
    {"index", text_index, "/sub start end", 1},
    {"join", join, "/iterable", 1},
    {"ljust", ljust, "/width fillchar", 1},
    {"lower", lower, "", 0},
    {"lstrip", lstrip, "/chars", 0},
    {"partition", partition, "/sep", 1},
    {"removeprefix", removeprefix, "/prefix", 1},
    {"removesuffix", removesuffix, "/suffix", 1},
    {"replace", replace, "/old new count", 2},
    {"rfind", rfind, "/sub start end", 1},
    {"rindex", rindex_, "/sub start end", 1},
    {"rjust", rjust, "/width fillchar", 1},
    {"rpartition", rpartition, "/sep", 1},
    {"rsplit", rsplit, "sep maxsplit", 0},
    {"rstrip", rstrip, "/chars", 0},
    {"split", split, "sep maxsplit", 0},
    {"splitlines", splitlines, "keepends", 0},
    {"startswith", startswith, "/prefix start end", 1},
    {"strip", strip, "/chars", 0},
    {"swapcase", swapcase, "", 0},
    {"title", title, "", 0},
    {"upper", upper, "", 0},
    {"zfill", zfill, "/width", 1},
};

const mf_tfndef *mf_method_text_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
