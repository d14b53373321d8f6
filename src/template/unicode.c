/* Classes and case of characters: utf8proc's categories and simple mappings, a table for mappings to several
 * characters, and ranges for what the categories do not tell. */
#include "template/unicode.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

typedef struct range {
    uint32_t first, last;
} range;

/* Numeric type Digit without being decimal (UnicodeData.txt, field 7). */
static const range digits[] = {
    {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
    {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A},
};

/* Other_Lowercase and Other_Uppercase (PropList.txt). */
static const range lower[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},     {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},   {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},   {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},   {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA},
};
static const range upper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189},
};

#define IN_RANGES(table, cp) in_ranges((table), sizeof(table) / sizeof(table)[0], (cp))

static bool in_ranges(const range *t, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= t[i].first && cp <= t[i].last) return true;
    return false;
}

size_t mf_tuc_at(const char *p, uint32_t *cp)
{
    return mf_utf8_decode(p, mf_tchar_len(p), cp);
}

size_t mf_tuc_before(const char *start, const char *end, uint32_t *cp)
{
    const char *p = end - 1;
    while (p > start && ((unsigned char)*p & 0xC0) == 0x80) p--;
    mf_utf8_decode(p, (size_t)(end - p), cp);
    return (size_t)(end - p);
}

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

static bool in_categories(uint32_t cp, uint32_t set)
{
    return (set >> category(cp) & 1) != 0;
}

#define CAT(name) (1u << UTF8PROC_CATEGORY_##name)
#define LETTERS   (CAT(LU) | CAT(LL) | CAT(LT) | CAT(LM) | CAT(LO))

bool mf_tuc_is_space(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0x2028 || cp == 0x2029 || in_categories(cp, CAT(ZS));
}

bool mf_tuc_is_newline(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

bool mf_tuc_is_printable(uint32_t cp)
{
    if (cp < 0x7F) return cp >= ' ';
    return !in_categories(cp, CAT(CC) | CAT(CF) | CAT(CS) | CAT(CO) | CAT(CN) | CAT(ZL) | CAT(ZP) | CAT(ZS));
}

bool mf_tuc_is_alpha(uint32_t cp)
{
    return in_categories(cp, LETTERS);
}
bool mf_tuc_is_decimal(uint32_t cp)
{
    return in_categories(cp, CAT(ND));
}
bool mf_tuc_is_digit(uint32_t cp)
{
    return mf_tuc_is_decimal(cp) || IN_RANGES(digits, cp);
}
bool mf_tuc_is_numeric(uint32_t cp)
{
    return in_categories(cp, CAT(ND) | CAT(NL) | CAT(NO));
}
bool mf_tuc_is_upper(uint32_t cp)
{
    return in_categories(cp, CAT(LU)) || IN_RANGES(upper, cp);
}
bool mf_tuc_is_lower(uint32_t cp)
{
    return in_categories(cp, CAT(LL)) || IN_RANGES(lower, cp);
}
bool mf_tuc_is_title(uint32_t cp)
{
    return in_categories(cp, CAT(LT));
}
bool mf_tuc_is_word(uint32_t cp)
{
    return cp == '_' || in_categories(cp, LETTERS | CAT(ND) | CAT(NL) | CAT(NO));
}

bool mf_tuc_is_ident(uint32_t cp, bool first)
{
    uint32_t start = LETTERS | CAT(NL), more = start | CAT(MN) | CAT(MC) | CAT(ND) | CAT(PC);
    return cp == '_' || in_categories(cp, first ? start : more);
}

/* -- case -- */

static const struct special {
    uint32_t cp;
    const char *upper, *title;
} specials[] = {
#include "template/casing.inc"
};

static const struct special *find_special(uint32_t cp)
{
    size_t lo = 0, hi = sizeof specials / sizeof specials[0];
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (specials[mid].cp == cp) return &specials[mid];
        if (specials[mid].cp < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static bool is_cased(uint32_t cp)
{
    return mf_tuc_is_upper(cp) || mf_tuc_is_lower(cp) || mf_tuc_is_title(cp);
}

/* Characters that do not end a word for the rule below (roughly Case_Ignorable). */
static bool is_ignorable(uint32_t cp)
{
    static const char marks[] = "'.:^`\xC2\xA8\xC2\xAD\xC2\xAF\xC2\xB4\xC2\xB7\xC2\xB8\xE2\x80\x99";
    char c[5] = {0};
    mf_utf8_encode(cp, c);
    return cp != 0 &&
           (strstr(marks, c) || in_categories(cp, CAT(MN) | CAT(ME) | CAT(CF) | CAT(LM) | CAT(SK)));
}

/* Greek sigma is written otherwise at the end of a word: after a cased letter, before none. */
static bool ends_word(const mf_tstr *s, size_t i)
{
    const char *p = s->p + i, *end = s->p + s->n;
    uint32_t cp = 0;
    while (p > s->p && (p -= mf_tuc_before(s->p, p, &cp), is_ignorable(cp))) cp = 0;
    if (!is_cased(cp)) return false;
    for (p = s->p + i + 2, cp = 0; p < end && (p += mf_tuc_at(p, &cp), is_ignorable(cp)); cp = 0) continue;
    return !is_cased(cp);
}

static minfer_status put_folded(mf_trender *r, mf_tsb *out, uint32_t cp)
{
    utf8proc_int32_t buf[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, buf, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t k = 0; k < n && k < 8; k++) MF_TRY(mf_tsb_codepoint(r, out, (uint32_t)buf[k]));
    return MINFER_OK;
}

static minfer_status put_lower(mf_trender *r, mf_tsb *out, const mf_tstr *s, size_t i, uint32_t cp)
{
    if (cp == 0x130) return mf_tsb_text(r, out, "i\xCC\x87");
    if (cp == 0x3A3 && ends_word(s, i)) return mf_tsb_codepoint(r, out, 0x3C2);
    return mf_tsb_codepoint(r, out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

minfer_status mf_tuc_convert(mf_trender *r, mf_tsb *out, mf_tcase to, const mf_tstr *s, size_t i,
                             size_t *used)
{
    uint32_t cp;
    *used = mf_tuc_at(s->p + i, &cp);
    if (cp < 0x80) {
        bool up = to == MF_CASE_UPPER || to == MF_CASE_TITLE;
        if (up && cp >= 'a' && cp <= 'z') cp -= 32;
        if (!up && cp >= 'A' && cp <= 'Z') cp += 32;
        return mf_tsb_char(r, out, (char)cp);
    }
    MF_TRY(mf_trender_step(r));
    if (to == MF_CASE_LOWER) return put_lower(r, out, s, i, cp);
    if (to == MF_CASE_FOLD) return put_folded(r, out, cp);
    const struct special *special = find_special(cp);
    if (special) return mf_tsb_text(r, out, to == MF_CASE_UPPER ? special->upper : special->title);
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    return mf_tsb_codepoint(r, out,
                            (uint32_t)(to == MF_CASE_UPPER ? utf8proc_toupper(c) : utf8proc_totitle(c)));
}

static minfer_status convert_from(mf_trender *r, mf_tsb *out, mf_tcase to, const mf_tstr *s, size_t i)
{
    MF_TRY(mf_trender_charge(r, s->n));
    for (size_t used; i < s->n; i += used) MF_TRY(mf_tuc_convert(r, out, to, s, i, &used));
    return MINFER_OK;
}

minfer_status mf_tuc_convert_all(mf_trender *r, mf_tcase to, const mf_tstr *s, mf_tval *out)
{
    mf_tsb text = {0};
    MF_TRY(convert_from(r, &text, to, s, 0));
    return mf_tstr_wrap(r, text.p, text.n, out);
}

minfer_status mf_tuc_capitalize(mf_trender *r, const mf_tstr *s, mf_tval *out)
{
    mf_tsb text = {0};
    size_t used = 0;
    if (s->n) MF_TRY(mf_tuc_convert(r, &text, MF_CASE_TITLE, s, 0, &used));
    MF_TRY(convert_from(r, &text, MF_CASE_LOWER, s, used));
    return mf_tstr_wrap(r, text.p, text.n, out);
}
