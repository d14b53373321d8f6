/* The parser of GBNF: recursive descent, one function for each level of the syntax. */
#include "grammar/gbnf.h"

#include "base/utf8.h"
#include "grammar/ranges.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 1 << 26, MAX_DEPTH = 200, MAX_COUNT = 1 << 30 };

typedef struct parser {
    const char *s;
    size_t n, at;
    mf_grules *g;
    uint32_t rule; /* the named rule that is being read */
    int depth;
    minfer_error *err;
} parser;

/* ---- refusals and small things */

minfer_status mf_gbnf_prefix(minfer_status st, const char *text, size_t at, minfer_error *err)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    return mf_fail_prefix(err, st, "line %zu, column %zu", line, mf_utf8_count(text + start, at - start) + 1);
}

static minfer_status fail_at(const parser *p, size_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static minfer_status fail_at(const parser *p, size_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    minfer_status st = mf_vfail(p->err, MINFER_ERR_ARG, fmt, ap);
    va_end(ap);
    return mf_gbnf_prefix(st, p->s, at, p->err);
}

static int peek(const parser *p)
{
    return p->at < p->n ? (unsigned char)p->s[p->at] : -1;
}

static bool starts(const parser *p, const char *word)
{
    size_t n = strlen(word);
    return p->n - p->at >= n && memcmp(p->s + p->at, word, n) == 0;
}

/* What stands there, for messages: a character, or the end. */
typedef struct shown {
    char text[16];
} shown;

static shown here(const parser *p)
{
    shown w = {"the end"};
    uint32_t c;
    if (p->at == p->n) return w;
    size_t n = mf_utf8_decode(p->s + p->at, p->n - p->at, &c);
    if (c == '\n' || c == '\r')
        strcpy(w.text, "the line's end");
    else
        snprintf(w.text, sizeof w.text, "'%.*s'", (int)n, p->s + p->at);
    return w;
}

static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Blanks and comments; over ends of lines, too, where lines is true. */
static void skip(parser *p, bool lines)
{
    for (;; p->at++) {
        int c = peek(p);
        if (c == '#')
            while (p->at < p->n && peek(p) != '\n' && peek(p) != '\r') p->at++;
        c = peek(p);
        if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) return;
    }
}

/* ---- characters */

static minfer_status hex(parser *p, size_t at, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++, p->at++) {
        int c = peek(p), low = c | 32;
        if (!is_digit(c) && !(low >= 'a' && low <= 'f'))
            return fail_at(p, at, "an escape of %d hexadecimal digits is cut short", digits);
        *out = *out << 4 | (uint32_t)(is_digit(c) ? c - '0' : low - 'a' + 10);
    }
    if (*out > 0x10FFFF || (*out >= 0xD800 && *out < 0xE000))
        return fail_at(p, at, "U+%04X is not a character", *out);
    return MINFER_OK;
}

static minfer_status escape(parser *p, uint32_t *out)
{
    static const char from[] = "nrt\\\"[]-^.", to[] = "\n\r\t\\\"[]-^.";
    size_t at = p->at++;
    int c = peek(p);
    const char *known = c > 0 ? strchr(from, c) : NULL;
    if (c == 'x' || c == 'u' || c == 'U') {
        p->at++;
        return hex(p, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
    }
    if (!known)
        return fail_at(p, at,
                       "unknown escape \\%s; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH "
                       "\\UHHHHHHHH",
                       here(p).text);
    p->at++;
    *out = (unsigned char)to[known - from];
    return MINFER_OK;
}

static minfer_status character(parser *p, uint32_t *out)
{
    if (peek(p) == '\\') return escape(p, out);
    size_t n = mf_utf8_decode(p->s + p->at, p->n - p->at, out);
    if (*out == MF_UTF8_BAD) return fail_at(p, p->at, "the text is not UTF-8");
    p->at += n;
    return MINFER_OK;
}

/* ---- elements */

typedef struct sequence {
    mf_gelem *v;
    size_t n, cap;
    size_t last; /* where the symbol begins that a repetition would repeat */
    bool any;    /* there is one */
} sequence;

static minfer_status push(parser *p, sequence *q, mf_gelem e)
{
    if (!mf_grow((void **)&q->v, &q->cap, q->n + 1, sizeof *q->v)) return MF_NOMEM(p->err);
    q->v[q->n++] = e;
    return MINFER_OK;
}

static void begin_symbol(sequence *q)
{
    q->last = q->n;
    q->any = true;
}

static minfer_status literal(parser *p, sequence *q)
{
    size_t at = p->at++;
    begin_symbol(q);
    while (peek(p) != '"') {
        uint32_t c;
        char bytes[4];
        if (p->at == p->n || peek(p) == '\n') return fail_at(p, at, "a literal without its closing \"");
        MF_TRY(character(p, &c));
        size_t n = mf_utf8_encode(c, bytes);
        for (size_t i = 0; i < n; i++) {
            mf_gelem e;
            MF_TRY(mf_grules_byte(p->g, (uint8_t)bytes[i], &e, p->err));
            MF_TRY(push(p, q, e));
        }
    }
    p->at++;
    return MINFER_OK;
}

static minfer_status class_ranges(parser *p, size_t at, mf_granges *r)
{
    while (peek(p) != ']') {
        uint32_t lo, hi;
        size_t start = p->at;
        if (p->at == p->n) return fail_at(p, at, "a character class without its closing ]");
        MF_TRY(character(p, &lo));
        hi = lo;
        if (peek(p) == '-' && p->at + 1 < p->n && p->s[p->at + 1] != ']') {
            p->at++;
            MF_TRY(character(p, &hi));
        }
        if (lo > hi) return fail_at(p, start, "a range that runs backwards: U+%04X to U+%04X", lo, hi);
        if (!mf_granges_add(r, lo, hi)) return MF_NOMEM(p->err);
    }
    p->at++;
    mf_granges_normalize(r);
    return MINFER_OK;
}

static minfer_status push_class(parser *p, size_t at, const mf_granges *r, sequence *q)
{
    mf_gelem e;
    if (r->n == 0) return fail_at(p, at, "a character class that no character is in");
    MF_TRY(mf_grules_class(p->g, r->v, r->n, &e, p->err));
    begin_symbol(q);
    return push(p, q, e);
}

static minfer_status class(parser *p, sequence *q)
{
    mf_granges in = {0}, out = {0};
    size_t at = p->at++;
    bool negated = peek(p) == '^';
    if (negated) p->at++;
    minfer_status st = class_ranges(p, at, &in);
    if (st == MINFER_OK && negated && !mf_granges_invert(&in, &out)) st = MF_NOMEM(p->err);
    if (st == MINFER_OK) st = push_class(p, at, negated ? &out : &in, q);
    mf_granges_free(&in);
    mf_granges_free(&out);
    return st;
}

static minfer_status any_character(parser *p, sequence *q)
{
    static mf_grange all[] = {{0, 0xD7FF}, {0xE000, 0x10FFFF}};
    p->at++;
    return push_class(p, p->at, &(mf_granges){all, 2, 2}, q);
}

static mf_str take_name(parser *p)
{
    size_t at = p->at;
    while (is_name(peek(p))) p->at++;
    return (mf_str){p->s + at, p->at - at};
}

static minfer_status reference(parser *p, sequence *q)
{
    size_t at = p->at;
    mf_gelem e = {.op = MF_G_CALL};
    MF_TRY(mf_grules_named(p->g, take_name(p), at, &e.arg, p->err));
    begin_symbol(q);
    return push(p, q, e);
}

static minfer_status choices(parser *p, uint32_t rule, bool nested);

static minfer_status group(parser *p, sequence *q)
{
    size_t at = p->at++;
    mf_gelem e = {.op = MF_G_CALL};
    if (++p->depth > MAX_DEPTH) return fail_at(p, at, "groups deeper than %d", MAX_DEPTH);
    MF_TRY(mf_grules_group(p->g, p->rule, &e.arg, p->err));
    skip(p, true);
    MF_TRY(choices(p, e.arg, true));
    if (peek(p) != ')') return fail_at(p, at, "a group without its closing )");
    p->at++;
    p->depth--;
    begin_symbol(q);
    return push(p, q, e);
}

/* ---- repetitions */

static minfer_status number(parser *p, uint32_t *out)
{
    size_t at = p->at;
    uint64_t v = 0;
    if (!is_digit(peek(p))) return fail_at(p, at, "%s where a number is wanted", here(p).text);
    for (; is_digit(peek(p)); p->at++)
        if (v <= MAX_COUNT) v = v * 10 + (uint64_t)(peek(p) - '0');
    if (v > MAX_COUNT) return fail_at(p, at, "a count beyond %d", MAX_COUNT);
    *out = (uint32_t)v;
    return MINFER_OK;
}

static minfer_status braces(parser *p, uint32_t *min, uint32_t *max)
{
    size_t at = p->at++;
    skip(p, false);
    MF_TRY(number(p, min));
    *max = *min;
    skip(p, false);
    if (peek(p) == ',') {
        p->at++;
        skip(p, false);
        *max = MF_G_MANY;
        if (is_digit(peek(p))) MF_TRY(number(p, max));
        skip(p, false);
    }
    if (peek(p) != '}') return fail_at(p, p->at, "%s where } is wanted", here(p).text);
    p->at++;
    if (*min > *max) return fail_at(p, at, "a repetition of at least %u and at most %u", *min, *max);
    return MINFER_OK;
}

/* Replaces the last symbol by its repetition. */
static minfer_status repeat(parser *p, sequence *q, uint32_t min, uint32_t max)
{
    mf_gelem e = {MF_G_REPEAT, 0, min, max};
    size_t n = q->n - q->last;
    if (n == 0 || (min == 1 && max == 1)) return MINFER_OK;
    if (n == 1 && q->v[q->last].op == MF_G_CALL) {
        e.arg = q->v[q->last].arg;
    } else if (max > 0) {
        MF_TRY(mf_grules_group(p->g, p->rule, &e.arg, p->err));
        MF_TRY(mf_grules_choice(p->g, e.arg, q->v + q->last, n, p->err));
    }
    q->n = q->last;
    return max > 0 ? push(p, q, e) : MINFER_OK;
}

static minfer_status repetition(parser *p, sequence *q)
{
    int c = peek(p);
    uint32_t min = c == '+', max = c == '?' ? 1 : MF_G_MANY;
    if (!q->any) return fail_at(p, p->at, "%s with nothing before it to repeat", here(p).text);
    if (c == '{')
        MF_TRY(braces(p, &min, &max));
    else
        p->at++;
    return repeat(p, q, min, max);
}

/* ---- sequences, choices, rules */

static minfer_status symbol(parser *p, sequence *q)
{
    int c = peek(p);
    if (c == '"') return literal(p, q);
    if (c == '[') return class(p, q);
    if (c == '.') return any_character(p, q);
    if (c == '(') return group(p, q);
    if (is_name(c)) return reference(p, q);
    if (c == '*' || c == '+' || c == '?' || c == '{') return repetition(p, q);
    if (c == '<' || c == '!') return fail_at(p, p->at, "tokens (<...>) in grammars are not supported");
    return fail_at(p, p->at, "%s where a literal, a class, a group or a rule is wanted", here(p).text);
}

/* The end of a rule is the end of its line, unless the next one goes on with |. */
static bool ends_rule(parser *p)
{
    size_t at = p->at;
    if (p->at < p->n && peek(p) != '\n' && peek(p) != '\r') return false;
    skip(p, true);
    if (peek(p) == '|') return false;
    p->at = at;
    return true;
}

static minfer_status sequence_of(parser *p, sequence *q, bool nested)
{
    for (;;) {
        skip(p, nested);
        int c = peek(p);
        if (c == '|' || c == -1 || (nested && c == ')')) return MINFER_OK;
        if (!nested && (c == '\n' || c == '\r')) return MINFER_OK;
        MF_TRY(symbol(p, q));
    }
}

static minfer_status choice(parser *p, uint32_t rule, bool nested)
{
    sequence q = {0};
    minfer_status st = sequence_of(p, &q, nested);
    if (st == MINFER_OK) st = mf_grules_choice(p->g, rule, q.v, q.n, p->err);
    mf_free(q.v);
    return st;
}

static minfer_status choices(parser *p, uint32_t rule, bool nested)
{
    for (;;) {
        MF_TRY(choice(p, rule, nested));
        if (nested ? peek(p) != '|' : ends_rule(p)) return MINFER_OK;
        p->at++;
        skip(p, true);
    }
}

static minfer_status definition(parser *p)
{
    size_t at = p->at;
    if (!is_name(peek(p))) return fail_at(p, at, "%s where the name of a rule is wanted", here(p).text);
    mf_str name = take_name(p);
    MF_TRY(mf_grules_named(p->g, name, at, &p->rule, p->err));
    skip(p, false);
    if (!starts(p, "::=")) return fail_at(p, p->at, "%s where ::= is wanted", here(p).text);
    p->at += 3;
    if (p->g->v[p->rule].defined)
        return fail_at(p, at, "rule '%.*s' is defined a second time", (int)name.n, name.s);
    p->g->v[p->rule].defined = true;
    skip(p, true);
    return choices(p, p->rule, false);
}

static minfer_status check_defined(parser *p)
{
    for (size_t i = 0; i < p->g->n; i++) {
        const mf_grule *r = &p->g->v[i];
        if (!r->defined) return fail_at(p, r->at, "rule '%.*s' is not defined", (int)r->name.n, r->name.s);
    }
    return MINFER_OK;
}

minfer_status mf_gbnf_read(const char *text, size_t n, mf_grules *g, uint32_t *root, minfer_error *err)
{
    parser p = {.s = text, .n = n, .g = g, .err = err};
    if (n > MAX_TEXT)
        return mf_fail(err, MINFER_ERR_LIMIT, "a grammar of %zu bytes, at most %d", n, MAX_TEXT);
    for (skip(&p, true); p.at < p.n; skip(&p, true)) MF_TRY(definition(&p));
    MF_TRY(check_defined(&p));
    *root = mf_strmap_get(&g->names, "root", 4);
    if (*root == MF_STRMAP_NONE) return fail_at(&p, 0, "no rule 'root' to begin with");
    return MINFER_OK;
}
