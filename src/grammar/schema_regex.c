/* Regular expressions of `pattern` (ECMA-262) as GBNF over the contents of JSON strings. A character that
 * JSON must escape is written as its escape. */
#include "grammar/schema.h"

#include "base/utf8.h"
#include "grammar/ranges.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 50, FEW = 64 };

typedef struct regex {
    mf_schema *s;
    const char *at; /* the schema */
    const char *p, *end, *start;
    int depth;
    mf_buf *b;
} regex;

static minfer_status unsupported(regex *r, const char *what)
{
    return mf_schema_fail(r->s, MINFER_ERR_UNSUPPORTED, r->at,
                          "pattern: %s at character %zu is not supported", what,
                          mf_utf8_count(r->start, (size_t)(r->p - r->start)) + 1);
}

static minfer_status wrong(regex *r, const char *what)
{
    return mf_schema_fail(r->s, MINFER_ERR_ARG, r->at, "pattern: %s at character %zu", what,
                          mf_utf8_count(r->start, (size_t)(r->p - r->start)) + 1);
}

static minfer_status put(regex *r, const char *text)
{
    return mf_buf_str(r->b, text) ? MINFER_OK : MF_NOMEM(r->s->err);
}

static int peek(const regex *r)
{
    return r->p < r->end ? (unsigned char)*r->p : -1;
}

static bool starts(const regex *r, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(r->end - r->p) >= n && memcmp(r->p, word, n) == 0;
}

/* ---- classes as GBNF */

static bool put_class_char(mf_buf *b, uint32_t c)
{
    return mf_buf_printf(b, c < 0x80 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X", c);
}

/* What stands in JSON strings as it is. */
static bool put_plain(mf_buf *b, const mf_granges *in, bool *any)
{
    static const mf_grange plain[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, 0x10FFFF}};
    size_t before = b->len;
    bool ok = mf_buf_char(b, '[');
    *any = false;
    for (size_t i = 0; i < in->n && ok; i++)
        for (size_t k = 0; k < 4 && ok; k++) {
            uint32_t lo = in->v[i].lo > plain[k].lo ? in->v[i].lo : plain[k].lo;
            uint32_t hi = in->v[i].hi < plain[k].hi ? in->v[i].hi : plain[k].hi;
            if (lo > hi) continue;
            *any = true;
            ok = put_class_char(b, lo) && (lo == hi || (mf_buf_char(b, '-') && put_class_char(b, hi)));
        }
    if (!*any) b->len = before;
    return ok && (!*any || mf_buf_char(b, ']'));
}

static bool has(const mf_granges *in, uint32_t c)
{
    for (size_t i = 0; i < in->n; i++)
        if (c >= in->v[i].lo && c <= in->v[i].hi) return true;
    return false;
}

/* What JSON escapes. Control characters without a short escape only where the class is a small one: [^a] need
 * not give them. */
static bool put_escaped(mf_buf *b, const mf_granges *in, bool *any)
{
    static const char chars[] = "\"\\\b\f\n\r\t", shorts[] = "\"\\bfnrt";
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < in->n; i++) n += in->v[i].hi - in->v[i].lo + 1;
    for (uint32_t c = 0; c <= 0x7F && ok; c++) {
        const char *known = c ? strchr(chars, (int)c) : NULL;
        bool control = (c < 0x20 || c == 0x7F) && n <= FEW;
        if (!has(in, c) || (!known && !control)) continue;
        char text[8];
        if (known)
            snprintf(text, sizeof text, "\\%c", shorts[known - chars]);
        else
            snprintf(text, sizeof text, "\\u%04x", c);
        ok = mf_buf_str(b, *any ? " | " : "") && mf_schema_literal(b, text, strlen(text));
        *any = true;
    }
    return ok;
}

static minfer_status put_class(regex *r, mf_granges *in)
{
    bool any;
    mf_granges_normalize(in);
    bool ok = mf_buf_char(r->b, '(') && put_plain(r->b, in, &any) && put_escaped(r->b, in, &any) &&
              mf_buf_char(r->b, ')');
    if (!ok) return MF_NOMEM(r->s->err);
    return any ? MINFER_OK : wrong(r, "a class that no character of a JSON string is in, before");
}

/* ---- escapes */

static const mf_grange digits[] = {{'0', '9'}}, words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                       spaces[] = {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                   {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                   {0x3000, 0x3000}, {0xFEFF, 0xFEFF}},
                       line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static minfer_status add_known(regex *r, const mf_grange *v, size_t n, bool negated, mf_granges *out)
{
    bool ok = true;
    if (negated)
        ok = mf_granges_invert(&(mf_granges){(mf_grange *)(uintptr_t)v, n, n}, out);
    else
        for (size_t i = 0; i < n && ok; i++) ok = mf_granges_add(out, v[i].lo, v[i].hi);
    return ok ? MINFER_OK : MF_NOMEM(r->s->err);
}

static minfer_status hex(regex *r, int n, uint32_t *c)
{
    *c = 0;
    for (int i = 0; i < n; i++, r->p++) {
        int d = peek(r), low = d | 32;
        bool digit = d >= '0' && d <= '9';
        if (!digit && !(low >= 'a' && low <= 'f')) return wrong(r, "a hexadecimal digit is wanted");
        *c = *c << 4 | (uint32_t)(digit ? d - '0' : low - 'a' + 10);
    }
    return MINFER_OK;
}

/* After \u: four digits, two surrogates of four each, or braces. */
static minfer_status unicode(regex *r, uint32_t *c)
{
    uint32_t low;
    if (peek(r) == '{') {
        int n = 0;
        while (r->p + 1 + n < r->end && r->p[1 + n] != '}') n++;
        r->p++;
        if (n < 1 || n > 6) return wrong(r, "one to six hexadecimal digits are wanted");
        MF_TRY(hex(r, n, c));
        if (peek(r) != '}') return wrong(r, "} is wanted");
        r->p++;
    } else {
        MF_TRY(hex(r, 4, c));
        if (*c >= 0xD800 && *c < 0xDC00 && starts(r, "\\u")) {
            r->p += 2;
            MF_TRY(hex(r, 4, &low));
            if (low >= 0xDC00 && low < 0xE000) *c = 0x10000 + ((*c - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return *c > 0x10FFFF || (*c >= 0xD800 && *c < 0xE000) ? wrong(r, "not a character, before") : MINFER_OK;
}

/* One character after a backslash. */
static minfer_status escaped_char(regex *r, uint32_t *c)
{
    static const char from[] = "nrtfv0", to[] = "\n\r\t\f\v";
    int e = peek(r);
    const char *known = e > 0 ? strchr(from, e) : NULL;
    if (e < 0) return wrong(r, "nothing after a backslash");
    if (e >= '1' && e <= '9') return unsupported(r, "a reference to a group");
    if (e == 'k') return unsupported(r, "a reference to a group");
    if (e == 'p' || e == 'P') return unsupported(r, "a Unicode property");
    if (e == 'b' || e == 'B') return unsupported(r, "a word boundary");
    if (e >= 0x80) return unsupported(r, "an escape of a character beyond ASCII");
    r->p++;
    *c = known ? (unsigned char)to[known - from] : (uint32_t)e;
    if (e == 'x') return hex(r, 2, c);
    if (e == 'u') return unicode(r, c);
    if (!known && ((e | 32) >= 'a' && (e | 32) <= 'z')) {
        r->p--;
        return unsupported(r, "the escape of a letter");
    }
    return MINFER_OK;
}

/* After a backslash: a class or a character, added to out. *single: it is a character, *c. */
static minfer_status escape(regex *r, mf_granges *out, bool *single, uint32_t *c)
{
    int low = peek(r) | 32;
    bool negated = peek(r) >= 0 && peek(r) < 'a';
    *single = !(peek(r) >= 0 && strchr("dws", low) && low >= 'a');
    if (!*single) {
        r->p++;
        if (low == 'd') return add_known(r, digits, 1, negated, out);
        if (low == 'w') return add_known(r, words, 4, negated, out);
        return add_known(r, spaces, sizeof spaces / sizeof *spaces, negated, out);
    }
    MF_TRY(escaped_char(r, c));
    return mf_granges_add(out, *c, *c) ? MINFER_OK : MF_NOMEM(r->s->err);
}

/* ---- atoms */

/* An end of a range in brackets; *single as above. */
static minfer_status class_atom(regex *r, mf_granges *out, bool *single, uint32_t *c)
{
    if (peek(r) == '\\') {
        r->p++;
        if (peek(r) == 'b') { /* a backspace, here */
            r->p++;
            *single = true;
            *c = '\b';
            return mf_granges_add(out, *c, *c) ? MINFER_OK : MF_NOMEM(r->s->err);
        }
        return escape(r, out, single, c);
    }
    *single = true;
    r->p += mf_utf8_decode(r->p, (size_t)(r->end - r->p), c);
    return mf_granges_add(out, *c, *c) ? MINFER_OK : MF_NOMEM(r->s->err);
}

static minfer_status class_items(regex *r, mf_granges *in)
{
    while (peek(r) != ']') {
        bool single, last_single;
        uint32_t lo, hi;
        if (peek(r) < 0) return wrong(r, "a class without its closing ]");
        MF_TRY(class_atom(r, in, &single, &lo));
        if (peek(r) != '-' || r->p + 1 >= r->end || r->p[1] == ']') continue;
        r->p++;
        MF_TRY(class_atom(r, in, &last_single, &hi));
        if (!single || !last_single) return wrong(r, "a range between classes");
        if (lo > hi) return wrong(r, "a range that runs backwards");
        if (!mf_granges_add(in, lo, hi)) return MF_NOMEM(r->s->err);
    }
    r->p++;
    return MINFER_OK;
}

static minfer_status class(regex *r)
{
    mf_granges in = {0}, out = {0};
    r->p++;
    bool negated = peek(r) == '^';
    if (negated) r->p++;
    minfer_status st = class_items(r, &in);
    mf_granges_normalize(&in);
    if (st == MINFER_OK && negated && !mf_granges_invert(&in, &out)) st = MF_NOMEM(r->s->err);
    if (st == MINFER_OK) st = put_class(r, negated ? &out : &in);
    mf_granges_free(&in);
    mf_granges_free(&out);
    return st;
}

static minfer_status one_class(regex *r, minfer_status st, mf_granges *in)
{
    if (st == MINFER_OK) st = put_class(r, in);
    mf_granges_free(in);
    return st;
}

static minfer_status choices(regex *r, bool nested);

static minfer_status group(regex *r)
{
    r->p++;
    if (starts(r, "?:")) {
        r->p += 2;
    } else if (starts(r, "?<") && !starts(r, "?<=") && !starts(r, "?<!")) {
        while (r->p < r->end && *r->p != '>') r->p++;
        r->p += r->p < r->end;
    } else if (peek(r) == '?') {
        return unsupported(r, starts(r, "?=") || starts(r, "?!") || starts(r, "?<") ? "looking around"
                                                                                    : "this kind of group");
    }
    if (++r->depth > MAX_DEPTH) return unsupported(r, "a group this deep");
    MF_TRY(put(r, "("));
    MF_TRY(choices(r, true));
    if (peek(r) != ')') return wrong(r, "a group without its closing )");
    r->p++;
    r->depth--;
    return put(r, ")");
}

static minfer_status atom(regex *r)
{
    mf_granges in = {0};
    bool single;
    uint32_t c;
    int first = peek(r);
    switch (first) {
    case '(': return group(r);
    case '[': return class(r);
    case '.': r->p++; return one_class(r, add_known(r, line_ends, 3, true, &in), &in);
    case '\\': r->p++; return one_class(r, escape(r, &in, &single, &c), &in);
    case '^':
    case '$': return unsupported(r, "an anchor inside of the expression");
    case '*':
    case '+':
    case '?': return wrong(r, "nothing to repeat");
    default: break;
    }
    r->p += mf_utf8_decode(r->p, (size_t)(r->end - r->p), &c);
    return one_class(r, mf_granges_add(&in, c, c) ? MINFER_OK : MF_NOMEM(r->s->err), &in);
}

/* ---- repetitions, sequences, choices */

static bool number(const char **p, const char *end, uint32_t *out)
{
    const char *start = *p;
    uint64_t v = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
        if (v < UINT32_MAX) v = v * 10 + (uint64_t)(**p - '0');
    *out = v < 1 << 30 ? (uint32_t)v : 1 << 30;
    return *p > start;
}

/* {m}, {m,} or {m,n}; anything else that begins with a brace is a character. */
static bool braces(regex *r, uint32_t *min, uint32_t *max)
{
    const char *p = r->p;
    if (p == r->end || *p++ != '{' || !number(&p, r->end, min)) return false;
    *max = *min;
    if (p < r->end && *p == ',') {
        p++;
        if (!number(&p, r->end, max)) *max = MF_G_MANY;
    }
    if (p == r->end || *p++ != '}') return false;
    r->p = p;
    return true;
}

static minfer_status repetition(regex *r)
{
    uint32_t min, max;
    char text[40];
    int c = peek(r);
    if (c == '*' || c == '+' || c == '?') {
        snprintf(text, sizeof text, "%c ", c);
        r->p++;
    } else if (braces(r, &min, &max)) {
        if (min > max) return wrong(r, "a repetition of at least more than at most, before");
        snprintf(text, sizeof text, max == MF_G_MANY ? "{%u,} " : "{%u,%u} ", min, max);
    } else {
        return put(r, " ");
    }
    if (peek(r) == '?') r->p++; /* as few as possible: the same texts */
    if (peek(r) == '+' || peek(r) == '*') return wrong(r, "a repetition of a repetition");
    return put(r, text);
}

/* One of the choices. Outside of groups the text may begin and end with anything where no anchor forbids it.
 */
static minfer_status sequence(regex *r, bool nested)
{
    bool anchored = !nested && peek(r) == '^', ended = false;
    if (anchored) r->p++;
    if (!nested && !anchored) MF_TRY(put(r, "char* "));
    while (peek(r) >= 0 && peek(r) != '|' && !(nested && peek(r) == ')')) {
        if (peek(r) == ')') return wrong(r, "a ) without its (");
        ended = !nested && peek(r) == '$' && (r->p + 1 == r->end || r->p[1] == '|');
        if (ended) {
            r->p++;
            break;
        }
        MF_TRY(atom(r));
        MF_TRY(repetition(r));
    }
    return nested || ended ? put(r, "\"\"") : put(r, "char*");
}

static minfer_status choices(regex *r, bool nested)
{
    for (;;) {
        MF_TRY(sequence(r, nested));
        if (peek(r) != '|') return MINFER_OK;
        r->p++;
        MF_TRY(put(r, " | "));
    }
}

minfer_status mf_schema_pattern(mf_schema *s, const char *at, const char *expression, size_t n, mf_buf *b)
{
    regex r = {.s = s, .at = at, .p = expression, .end = expression + n, .start = expression, .b = b};
    return choices(&r, false);
}
