/* Filters for HTML and URLs. Escaping is never automatic here; these only run when a template asks. */
#include "template/filters.h"
#include "template/iter.h"
#include "template/print.h"
#include "template/strings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

minfer_status mf_thtml_escape(mf_trender *r, mf_tsb *out, const mf_tstr *s)
{
    static const char special[] = "&<>'\"";
    static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < s->n; i++) {
        const char *hit = s->p[i] ? strchr(special, s->p[i]) : NULL;
        MF_TRY(hit ? mf_tsb_text(r, out, entity[hit - special]) : mf_tsb_char(r, out, s->p[i]));
    }
    return mf_trender_charge(r, s->n);
}

static minfer_status forceescape(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tsb text = {0};
    mf_tval s;
    MF_TRY(mf_tval_to_str(r, a->v[0], &s));
    MF_TRY(mf_thtml_escape(r, &text, s.s));
    MF_TRY(mf_tstr_wrap(r, text.p, text.n, out));
    out->safe = true;
    return MINFER_OK;
}

static minfer_status escape(mf_trender *r, mf_targs *a, mf_tval *out)
{
    if (!a->v[0].safe) return forceescape(r, a, out);
    *out = a->v[0];
    return MINFER_OK;
}

/* -- xmlattr -- */

static minfer_status check_key(mf_trender *r, mf_tval key)
{
    char text[200];
    if (!mf_tis(key, MF_T_STR))
        return mf_trender_raise(r, MF_TE_TYPE, "expected string or bytes-like object");
    for (size_t i = 0; i < key.s->n; i++) {
        unsigned char c = (unsigned char)key.s->p[i];
        if (c >= 0x80 || (!isspace(c) && c != '/' && c != '>' && c != '=')) continue;
        MF_TRY(mf_tval_brief(r, key, text, sizeof text));
        return mf_trender_raise(r, MF_TE_VALUE, "Invalid character in attribute name: %s", text);
    }
    return MINFER_OK;
}

static minfer_status put_escaped(mf_trender *r, mf_tsb *out, mf_tval v)
{
    mf_tval s;
    MF_TRY(mf_tval_to_str(r, v, &s));
    return s.safe ? mf_tsb_put(r, out, s.s->p, s.s->n) : mf_thtml_escape(r, out, s.s);
}

static minfer_status xmlattr(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tsb text = {0};
    size_t i = 0;
    if (mf_tis(a->v[0], MF_T_UNDEFINED)) return mf_tundefined_raise(r, a->v[0]);
    if (!mf_tis(a->v[0], MF_T_DICT))
        return mf_trender_raise(r, MF_TE_ATTRIBUTE, "'%s' object has no attribute 'items'",
                                mf_tval_type_name(a->v[0]));
    for (const mf_tentry *e; (e = mf_tdict_next(a->v[0].dict, &i));) {
        if (mf_tis(e->value, MF_T_NONE) || mf_tis(e->value, MF_T_UNDEFINED)) continue;
        MF_TRY(check_key(r, e->key));
        if (text.n || mf_targ_truth(a, 1, true)) MF_TRY(mf_tsb_char(r, &text, ' '));
        MF_TRY(put_escaped(r, &text, e->key));
        MF_TRY(mf_tsb_text(r, &text, "=\""));
        MF_TRY(put_escaped(r, &text, e->value));
        MF_TRY(mf_tsb_char(r, &text, '"'));
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* -- striptags -- */

/* Everything from open to the close after it goes, as often as there is one. */
static minfer_status drop_between(mf_trender *r, const mf_tstr *s, const char *open, const char *close,
                                  mf_tval *out)
{
    mf_tstr o = {open, strlen(open), 1}, c = {close, strlen(close), 1};
    mf_tsb text = {0};
    size_t from = 0, start, end;
    for (;;) {
        MF_TRY(mf_ttext_find(r, s, &o, from, s->n, &start));
        if (start == MF_NOT_FOUND) break;
        MF_TRY(mf_ttext_find(r, s, &c, start, s->n, &end));
        if (end == MF_NOT_FOUND) break;
        MF_TRY(mf_tsb_put(r, &text, s->p + from, start - from));
        from = end + c.n;
    }
    MF_TRY(mf_tsb_put(r, &text, s->p + from, s->n - from));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

/* The character of an entity without & and ;, or 0: numbers, and the names in daily use. */
static uint32_t entity_char(const char *p, size_t n)
{
    static const struct {
        const char *name;
        uint32_t cp;
    } names[] = {{"amp", '&'},      {"lt", '<'},        {"gt", '>'},       {"quot", '"'},
                 {"apos", '\''},    {"nbsp", 0xA0},     {"copy", 0xA9},    {"laquo", 0xAB},
                 {"reg", 0xAE},     {"raquo", 0xBB},    {"ndash", 0x2013}, {"mdash", 0x2014},
                 {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"ldquo", 0x201C}, {"rdquo", 0x201D},
                 {"bull", 0x2022},  {"hellip", 0x2026}, {"euro", 0x20AC},  {"trade", 0x2122}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == n && memcmp(p, names[i].name, n) == 0) return names[i].cp;
    if (n < 2 || n > 9 || *p != '#') return 0;
    char digits[16] = {0}, *end;
    bool hex = p[1] == 'x' || p[1] == 'X';
    memcpy(digits, p + 1 + hex, n - 1 - hex);
    if (!isalnum((unsigned char)digits[0])) return 0;
    unsigned long cp = strtoul(digits, &end, hex ? 16 : 10);
    return *end || cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000) ? 0 : (uint32_t)cp;
}

static minfer_status unescape(mf_trender *r, const mf_tstr *s, mf_tval *out)
{
    mf_tsb text = {0};
    for (size_t i = 0; i < s->n;) {
        size_t n = 0;
        uint32_t cp = 0;
        if (s->p[i] == '&') {
            while (n < 12 && i + 1 + n < s->n && s->p[i + 1 + n] != ';') n++;
            if (i + 1 + n < s->n && s->p[i + 1 + n] == ';') cp = entity_char(s->p + i + 1, n);
        }
        MF_TRY(cp ? mf_tsb_codepoint(r, &text, cp) : mf_tsb_char(r, &text, s->p[i]));
        i += cp ? n + 2 : 1;
    }
    return mf_tstr_wrap(r, text.p, text.n, out);
}

static minfer_status striptags(mf_trender *r, mf_targs *a, mf_tval *out)
{
    static const mf_tstr blank = {" ", 1, 1};
    mf_tlist *words;
    MF_TRY(mf_tval_to_str(r, a->v[0], out));
    MF_TRY(drop_between(r, out->s, "<!--", "-->", out));
    MF_TRY(drop_between(r, out->s, "<", ">", out));
    MF_TRY(mf_tlist_new(r, 0, &words));
    MF_TRY(mf_ttext_split(r, out->s, NULL, -1, words));
    MF_TRY(mf_ttext_join(r, &blank, mf_tlistval(words), false, out));
    return unescape(r, out->s, out);
}

/* -- urlencode -- */

static minfer_status quote(mf_trender *r, mf_tsb *out, mf_tval v, bool query)
{
    mf_tval text;
    MF_TRY(mf_tval_to_str(r, v, &text));
    for (size_t i = 0; i < text.s->n; i++) {
        unsigned char c = (unsigned char)text.s->p[i];
        if ((c < 0x80 && isalnum(c)) || (c && strchr("_.-~", c)) || (c == '/' && !query))
            MF_TRY(mf_tsb_char(r, out, (char)c));
        else if (c == ' ' && query)
            MF_TRY(mf_tsb_char(r, out, '+'));
        else
            MF_TRY(mf_tsb_printf(r, out, "%%%02X", c));
    }
    return mf_trender_charge(r, text.s->n);
}

static minfer_status quote_pair(mf_trender *r, mf_tsb *out, mf_tval item)
{
    mf_tlist *pair;
    MF_TRY(mf_titer_list(r, item, &pair));
    if (pair->n != 2)
        return mf_trender_raise(r, MF_TE_VALUE, "expected pairs of key and value, got %zu items", pair->n);
    MF_TRY(quote(r, out, pair->v[0], true));
    MF_TRY(mf_tsb_char(r, out, '='));
    return quote(r, out, pair->v[1], true);
}

static minfer_status urlencode(mf_trender *r, mf_targs *a, mf_tval *out)
{
    mf_tsb text = {0};
    mf_tval v = a->v[0], item;
    mf_titer *it;
    if (mf_tis(v, MF_T_STR) || !mf_titer_possible(v)) {
        MF_TRY(quote(r, &text, v, false));
        return mf_tstr_wrap(r, text.p, text.n, out);
    }
    mf_tview view = {v.dict, MF_VIEW_ITEMS};
    if (mf_tis(v, MF_T_DICT)) v = (mf_tval){.type = MF_T_VIEW, .view = &view};
    MF_TRY(mf_titer_open(r, v, &it));
    for (bool first = true;; first = false) {
        MF_TRY(mf_titer_next(r, it, &item));
        if (mf_tis(item, MF_T_MISSING)) return mf_tstr_wrap(r, text.p, text.n, out);
        if (!first) MF_TRY(mf_tsb_char(r, &text, '&'));
        MF_TRY(quote_pair(r, &text, item));
    }
}

static const mf_tfndef defs[] = {
    {"e", escape, "", 0, 0},
    {"escape", escape, "", 0, 0},
    {"forceescape", forceescape, "", 0, 0},
    {"striptags", striptags, "", 0, 0},
    {"urlencode", urlencode, "", 0, 0},
    {"xmlattr", xmlattr, "autospace", 0, 0},
};

const mf_tfndef *mf_tfilter_web_find(const mf_tstr *name)
{
    return MF_FIND(defs, name);
}
