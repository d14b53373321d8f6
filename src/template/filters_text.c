/* Filters on text. */
#include "template/filters.h"
#include "template/format.h"
#include "template/ops.h"
#include "template/print.h"
#include "template/strings.h"
#include "template/unicode.h"

#include <string.h>

/* The filtered value as text. */
static minfer_status input(mf_trender *r, const mf_targs *a, const mf_tstr **s)
{
    mf_tval text;
    MF_TRY(mf_tval_to_str(r, a->v[0], &text));
    *s = text.s;
    return MINFER_OK;
}

static minfer_status to_case(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    MF_TRY(input(r, a, &s));
    return mf_tuc_convert_all(r, (mf_tcase)a->which, s, out);
}

static minfer_status capitalize(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    MF_TRY(input(r, a, &s));
    return mf_tuc_capitalize(r, s, out);
}

/* Words begin after white space and after - ( { [ <; an apostrophe does not begin one. */
static minfer_status title(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    mf_tsb text = {0};
    uint32_t cp;
    bool start = true;
    MF_TRY(input(r, a, &s));
    MF_TRY(mf_trender_charge(r, s->n));
    for (size_t i = 0, k; i < s->n; i += k) {
        mf_tuc_at(s->p + i, &cp);
        MF_TRY(mf_tuc_convert(r, &text, start ? MF_CASE_UPPER : MF_CASE_LOWER, s, i, &k));
        start = mf_tuc_is_space(cp) || (cp && cp < 0x80 && strchr("-({[<", (int)cp));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status trim(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s, *set = NULL;
    MF_TRY(input(r, a, &s));
    if (mf_targ_given(a, 1) && !mf_tis(a->v[1], MF_T_NONE)) MF_TRY(mf_tval_need_str(r, a->v[1], &set));
    return mf_ttext_strip(r, s, set, MF_BOTH, out);
}

static minfer_status replace(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    mf_tval old, with;
    int64_t count = -1;
    MF_TRY(input(r, a, &s));
    MF_TRY(mf_tval_to_str(r, a->v[1], &old));
    MF_TRY(mf_tval_to_str(r, a->v[2], &with));
    if (!mf_tis(a->v[3], MF_T_NONE)) MF_TRY(mf_targ_int(r, a, 3, -1, &count));
    return mf_ttext_replace(r, s, old.s, with.s, count, out);
}

static minfer_status center(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    int64_t width;
    MF_TRY(input(r, a, &s));
    MF_TRY(mf_targ_int(r, a, 1, 80, &width));
    return mf_ttext_pad(r, s, width, '^', NULL, out);
}

static minfer_status string(mf_trender *r, mf_targs *a, mf_tval *out)
{
    return mf_tval_to_str(r, a->v[0], out);
}

static minfer_status safe(mf_trender *r, mf_targs *a, mf_tval *out)
{
    MF_TRY(mf_tval_to_str(r, a->v[0], out));
    out->safe = true;
    return MINFER_OK;
}

/* -- indent -- */

static minfer_status indentation(mf_trender *r, const mf_targs *a, mf_tsb *out)
{
    int64_t width;
    if (mf_tis(a->v[1], MF_T_STR)) return mf_tsb_put(r, out, a->v[1].s->p, a->v[1].s->n);
    MF_TRY(mf_targ_int(r, a, 1, 4, &width));
    return mf_tsb_fill(r, out, " ", 1, width > 0 ? (size_t)width : 0);
}

static minfer_status indent(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tsb text = {0}, by = {0};
    mf_tlist *lines;
    mf_tval newline;
    bool first = mf_targ_truth(a, 2, false), blank = mf_targ_truth(a, 3, false);
    if (mf_tis(a->v[0], MF_T_LIST))
        return mf_trender_raise(r, MF_TE_ATTRIBUTE, "'list' object has no attribute 'splitlines'");
    MF_TRY(mf_tstr_lit(r, "\n", &newline));
    MF_TRY(mf_tval_binary(r, MF_OP_ADD, a->v[0], newline, out)); /* so that an empty last line counts */
    MF_TRY(indentation(r, a, &by));
    MF_TRY(mf_tlist_new(r, 0, &lines));
    MF_TRY(mf_ttext_splitlines(r, out->s, false, lines));
    for (size_t i = 0; i < lines->n; i++) {
        const mf_tstr *line = lines->v[i].s;
        if (i) MF_TRY(mf_tsb_char(r, &text, '\n'));
        if (i ? blank || line->n : first) MF_TRY(mf_tsb_put(r, &text, by.p, by.n));
        MF_TRY(mf_tsb_put(r, &text, line->p, line->n));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- truncate -- */

static minfer_status assertion(mf_trender *r, const char *what, int64_t least, int64_t got)
{
    return mf_trender_raise(r, MF_TE_ASSERT, "expected %s >= %lld, got %lld", what, (long long)least,
                            (long long)got);
}

static minfer_status cut(mf_trender *r, const mf_tstr *s, int64_t keep, bool killwords, const mf_tstr *end,
                         mf_tval *out)
{
    mf_tsb text = {0};
    size_t n = mf_tstr_offset(s, (size_t)keep);
    if (!killwords) {
        size_t hit;
        MF_TRY(mf_ttext_rfind(r, s, &(mf_tstr){" ", 1, 1}, 0, n, &hit));
        if (hit != MF_NOT_FOUND) n = hit;
    }
    MF_TRY(mf_tsb_put(r, &text, s->p, n));
    MF_TRY(mf_tsb_put(r, &text, end->p, end->n));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status truncate(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static const mf_tstr dots = {"...", 3, 3};
    const mf_tstr *end = &dots, *s;
    int64_t length, leeway = 5, have;
    MF_TRY(mf_targ_int(r, a, 1, 255, &length));
    if (mf_targ_given(a, 3)) MF_TRY(mf_tval_need_str(r, a->v[3], &end));
    if (!mf_tis(a->v[4], MF_T_NONE)) MF_TRY(mf_targ_int(r, a, 4, 5, &leeway));
    if (length < (int64_t)end->chars) return assertion(r, "length", (int64_t)end->chars, length);
    if (leeway < 0) return assertion(r, "leeway", 0, leeway);
    MF_TRY(mf_tval_need_len(r, a->v[0], &have));
    *out = a->v[0];
    if (have <= leeway || have - leeway <= length) return MINFER_OK;
    MF_TRY(mf_tval_need_str(r, a->v[0], &s));
    return cut(r, s, length - (int64_t)end->chars, mf_targ_truth(a, 2, false), end, out);
}

/* -- words -- */

static minfer_status wordcount(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    uint32_t cp;
    bool inside = false;
    MF_TRY(input(r, a, &s));
    MF_TRY(mf_trender_charge(r, s->n));
    *out = mf_tint(0);
    for (size_t i = 0; i < s->n;) {
        i += mf_tuc_at(s->p + i, &cp);
        bool word = mf_tuc_is_word(cp);
        out->i += word && !inside;
        inside = word;
    }
    return MINFER_OK;
}

static minfer_status format(mf_trender *r, mf_targs *a, mf_tval *out)
{
    const mf_tstr *s;
    const mf_tcall *c = &a->rest;
    const mf_tlist given = {.v = (mf_tval *)(uintptr_t)c->pos, .n = c->npos};
    mf_tlist *args;
    mf_tdict *named;
    if (c->npos && c->nkw)
        return mf_trender_raise(r, MF_TE_FILTER,
                                "can't handle positional and keyword arguments at the same time");
    MF_TRY(input(r, a, &s));
    if (c->nkw == 0) {
        MF_TRY(mf_tlist_copy(r, &given, 0, given.n, &args));
        return mf_tformat_percent(r, s, mf_ttupleval(args), out);
    }
    MF_TRY(mf_tdict_new(r, &named));
    for (size_t i = 0; i < c->nkw; i++)
        MF_TRY(mf_tdict_set(r, named, mf_tstring(c->kw[i].name), c->kw[i].value));
    return mf_tformat_percent(r, s, mf_tdictval(named), out);
}

static const mf_tfndef defs[] = {
    {"capitalize", capitalize, "", 0, 0},
    {"center", center, "width", 0, 0},
    {"format", format, "*", 0, 0},
    {"indent", indent, "width first blank", 0, 0},
    {"lower", to_case, "", 0, MF_CASE_LOWER},
    {"replace", replace, "old new count", 2, 0},
    {"safe", safe, "", 0, 0},
    {"string", string, "", 0, 0},
    {"title", title, "", 0, 0},
    {"trim", trim, "chars", 0, 0},
    {"truncate", truncate, "length killwords end leeway", 0, 0},
    {"upper", to_case, "", 0, MF_CASE_UPPER},
    {"wordcount", wordcount, "", 0, 0},
    {"wordwrap", mf_tfilter_wordwrap, "width break_long_words wrapstring break_on_hyphens", 0, 0},
};

const mf_tfndef *mf_tfilter_text_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
