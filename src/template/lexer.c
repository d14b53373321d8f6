/* The lexer. */
#include "template/lexer.h"
#include "template/number.h"
#include "template/unescape.h"
#include "template/unicode.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BRACKETS = 1000 };

typedef struct lexer {
    mf_trender *r;
    const char *s;
    size_t n, i; /* bytes; i is where the next token starts */
    size_t seen; /* line and column are those of this byte */
    uint32_t line, column;
    char closing[MAX_BRACKETS]; /* the brackets that are open, as what closes them */
    size_t depth;
    mf_ttokens *out;
} lexer;

static const struct op {
    const char *text;
    mf_ttok type;
} ops[] = {
    {"//", MF_TOK_FLOORDIV}, {"**", MF_TOK_POW},      {"==", MF_TOK_EQ},    {"!=", MF_TOK_NE},
    {">=", MF_TOK_GE},       {"<=", MF_TOK_LE},       {"+", MF_TOK_ADD},    {"-", MF_TOK_SUB},
    {"/", MF_TOK_DIV},       {"*", MF_TOK_MUL},       {"%", MF_TOK_MOD},    {"~", MF_TOK_TILDE},
    {"[", MF_TOK_LBRACKET},  {"]", MF_TOK_RBRACKET},  {"(", MF_TOK_LPAREN}, {")", MF_TOK_RPAREN},
    {"{", MF_TOK_LBRACE},    {"}", MF_TOK_RBRACE},    {">", MF_TOK_GT},     {"<", MF_TOK_LT},
    {"=", MF_TOK_ASSIGN},    {".", MF_TOK_DOT},       {":", MF_TOK_COLON},  {"|", MF_TOK_PIPE},
    {",", MF_TOK_COMMA},     {";", MF_TOK_SEMICOLON},
};

const char *mf_ttok_name(mf_ttok t)
{
    static const char *const names[] = {
        [MF_TOK_EOF] = "end of template",
        [MF_TOK_DATA] = "template data / text",
        [MF_TOK_PRINT_BEGIN] = "begin of print statement",
        [MF_TOK_PRINT_END] = "end of print statement",
        [MF_TOK_BLOCK_BEGIN] = "begin of statement block",
        [MF_TOK_BLOCK_END] = "end of statement block",
        [MF_TOK_NAME] = "name",
        [MF_TOK_STRING] = "string",
        [MF_TOK_NUMBER] = "number",
    };
    if (t <= MF_TOK_NUMBER) return names[t];
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i].type == t) return ops[i].text;
    return "?";
}

minfer_status mf_tsyntax_error(mf_trender *r, uint32_t line, uint32_t column, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->located = true;
    return mf_fail(r->err, MINFER_ERR_FORMAT, "line %u, column %u: %s", line, column, text);
}

/* Counts lines and columns up to byte `to`. */
static void locate(lexer *l, size_t to)
{
    for (; l->seen < to; l->seen++) {
        unsigned char c = (unsigned char)l->s[l->seen];
        if (c == '\n') {
            l->line++;
            l->column = 1;
        } else if ((c & 0xC0) != 0x80)
            l->column++;
    }
}

static minfer_status fail_here(lexer *l, const char *what)
{
    locate(l, l->i);
    return mf_tsyntax_error(l->r, l->line, l->column, "%s", what);
}

static minfer_status emit(lexer *l, mf_ttok type, mf_tval value)
{
    mf_ttokens *t = l->out;
    locate(l, l->i);
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        mf_ttoken *v = mf_trender_alloc(l->r, cap, sizeof *v);
        if (!v) return mf_trender_failed(l->r);
        if (t->n) memcpy(v, t->v, t->n * sizeof *v);
        t->v = v;
        t->cap = cap;
    }
    t->v[t->n++] = (mf_ttoken){(uint8_t)type, l->line, l->column, value};
    return MINFER_OK;
}

static minfer_status emit_text(lexer *l, mf_ttok type, size_t from, size_t to)
{
    mf_tval v;
    MF_TRY(mf_tstr_wrap(l->r, l->s + from, to - from, &v));
    return emit(l, type, v);
}

static bool at(const lexer *l, size_t i, const char *text)
{
    size_t n = strlen(text);
    return i <= l->n && l->n - i >= n && memcmp(l->s + i, text, n) == 0;
}

static size_t skip_space(const lexer *l, size_t i)
{
    uint32_t cp;
    for (size_t k; i < l->n && (k = mf_tuc_at(l->s + i, &cp), mf_tuc_is_space(cp));) i += k;
    return i;
}

static size_t back_over_space(const lexer *l, size_t from, size_t to)
{
    uint32_t cp;
    for (size_t k; to > from && (k = mf_tuc_before(l->s + from, l->s + to, &cp), mf_tuc_is_space(cp));)
        to -= k;
    return to;
}

/* Where a tag's end that stands at i leaves off, or 0 when none stands there: -%} takes all white space after
 * it,
 * %} one newline (when trim is set), +%} nothing. */
static size_t tag_end(const lexer *l, size_t i, const char *close, bool trim)
{
    if (at(l, i, "-") && at(l, i + 1, close)) return skip_space(l, i + 3);
    if (trim && at(l, i, "+") && at(l, i + 1, close)) return i + 3;
    if (!at(l, i, close)) return 0;
    return i + 2 + (trim && at(l, i + 2, "\n"));
}

/* The text [from, to) in front of a tag with this sign ('-', '+' or 0), as far as it stays. */
static minfer_status emit_data(lexer *l, size_t from, size_t to, char sign, bool block)
{
    if (sign == '-')
        to = back_over_space(l, from, to);
    else if (block && sign != '+') {
        size_t start = to;
        while (start > from && l->s[start - 1] != '\n') start--;
        bool whole_line = start > 0 ? l->s[start - 1] == '\n' : true;
        if (whole_line && skip_space(l, start) >= to) to = start;
    }
    l->i = from;
    return to > from ? emit_text(l, MF_TOK_DATA, from, to) : MINFER_OK;
}

/* -- inside tags -- */

/* Digits with single underscores between, and before the first when lead is set; the end, or i when there are
 * none. */
static size_t scan_digits(const lexer *l, size_t i, int (*is)(int), bool lead)
{
    for (size_t end = i;;) {
        size_t k = end;
        if (k < l->n && l->s[k] == '_' && (lead || end > i)) k++;
        if (k >= l->n || !is((unsigned char)l->s[k])) return end;
        end = k + 1;
    }
}

static int is_binary(int c)
{
    return c == '0' || c == '1';
}
static int is_octal(int c)
{
    return c >= '0' && c <= '7';
}
static int is_zero(int c)
{
    return c == '0';
}

static size_t scan_float(const lexer *l, size_t i)
{
    if (i > 0 && l->s[i - 1] == '.') return i;
    size_t whole = scan_digits(l, i, isdigit, false), end = i;
    if (whole == i) return i;
    size_t exponent = whole;
    if (at(l, whole, ".")) {
        size_t fraction = scan_digits(l, whole + 1, isdigit, false);
        if (fraction > whole + 1) end = exponent = fraction;
    }
    if (at(l, exponent, "e") || at(l, exponent, "E")) {
        size_t digits = exponent + 1 + (at(l, exponent + 1, "+") || at(l, exponent + 1, "-"));
        size_t last = scan_digits(l, digits, isdigit, false);
        if (last > digits) end = last;
    }
    return end;
}

static size_t scan_int(const lexer *l, size_t i)
{
    static const struct {
        char letter;
        int (*is)(int);
    } bases[] = {{'b', is_binary}, {'o', is_octal}, {'x', isxdigit}};
    char letter = i + 1 < l->n ? (char)tolower((unsigned char)l->s[i + 1]) : 0;
    for (size_t k = 0; l->s[i] == '0' && k < 3; k++) {
        if (letter != bases[k].letter) continue;
        size_t end = scan_digits(l, i + 2, bases[k].is, true);
        if (end > i + 2) return end;
    }
    return scan_digits(l, i, l->s[i] == '0' ? is_zero : isdigit, false);
}

static minfer_status lex_number(lexer *l)
{
    mf_tval v = mf_tfloat(0);
    size_t end = scan_float(l, l->i);
    if (end > l->i)
        mf_tnumber_parse_float(l->s + l->i, end - l->i, &v.f);
    else {
        end = scan_int(l, l->i);
        v = mf_tint(0);
        if (mf_tnumber_parse_int(l->s + l->i, end - l->i, 0, &v.i) == MF_PARSE_BIG)
            return fail_here(l, "an integer does not fit in 64 bits");
    }
    MF_TRY(emit(l, MF_TOK_NUMBER, v));
    l->i = end;
    return MINFER_OK;
}

static size_t scan_name(const lexer *l, size_t i)
{
    uint32_t cp;
    for (size_t k;
         i < l->n && (k = mf_tuc_at(l->s + i, &cp), mf_tuc_is_word(cp) || mf_tuc_is_ident(cp, false));)
        i += k;
    return i;
}

static minfer_status lex_name(lexer *l, size_t end)
{
    uint32_t cp;
    for (size_t i = l->i, k; i < end; i += k) {
        k = mf_tuc_at(l->s + i, &cp);
        if (!mf_tuc_is_ident(cp, i == l->i)) return fail_here(l, "Invalid character in identifier");
    }
    MF_TRY(emit_text(l, MF_TOK_NAME, l->i, end));
    l->i = end;
    return MINFER_OK;
}

static minfer_status lex_string(lexer *l)
{
    size_t end = l->i + 1;
    char quote = l->s[l->i];
    while (end < l->n && l->s[end] != quote) end += l->s[end] == '\\' ? 2 : 1;
    if (end >= l->n) return fail_here(l, "a string does not end");
    mf_tval v;
    const char *bad = NULL;
    MF_TRY(mf_tunescape(l->r, l->s + l->i + 1, end - l->i - 1, &v, &bad));
    if (bad) return fail_here(l, bad);
    MF_TRY(emit(l, MF_TOK_STRING, v));
    l->i = end + 1;
    return MINFER_OK;
}

/* Keeps track of brackets: while one is open, %} and }} do not end the tag. */
static minfer_status balance(lexer *l, char c)
{
    static const char open[] = "([{", close[] = ")]}";
    char text[64];
    const char *p = strchr(open, c);
    if (p && l->depth == MAX_BRACKETS) return fail_here(l, "too many open brackets");
    if (p) l->closing[l->depth++] = close[p - open];
    if (p || !strchr(close, c)) return MINFER_OK;
    snprintf(text, sizeof text, "unexpected '%c'", c);
    if (l->depth == 0) return fail_here(l, text);
    char expected = l->closing[--l->depth];
    if (expected == c) return MINFER_OK;
    snprintf(text, sizeof text, "unexpected '%c', expected '%c'", c, expected);
    return fail_here(l, text);
}

static minfer_status lex_operator(lexer *l)
{
    for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
        if (!at(l, l->i, ops[k].text)) continue;
        MF_TRY(balance(l, l->s[l->i]));
        MF_TRY(emit(l, ops[k].type, mf_tmissing()));
        l->i += strlen(ops[k].text);
        return MINFER_OK;
    }
    char text[64];
    snprintf(text, sizeof text, "unexpected char '%.*s'", (int)mf_tchar_len(l->s + l->i), l->s + l->i);
    return fail_here(l, text);
}

static minfer_status lex_code_token(lexer *l)
{
    char c = l->s[l->i];
    if (isdigit((unsigned char)c)) return lex_number(l);
    if (c == '"' || c == '\'') return lex_string(l);
    size_t name = scan_name(l, l->i);
    return name > l->i ? lex_name(l, name) : lex_operator(l);
}

/* Everything up to the end of a tag; the end of the text is the parser's to notice. */
static minfer_status lex_code(lexer *l, mf_ttok end_type)
{
    bool block = end_type == MF_TOK_BLOCK_END;
    l->depth = 0;
    for (;;) {
        size_t end = l->depth == 0 ? tag_end(l, l->i, block ? "%}" : "}}", block) : 0;
        if (end) {
            MF_TRY(emit(l, end_type, mf_tmissing()));
            l->i = end;
            return MINFER_OK;
        }
        l->i = skip_space(l, l->i);
        end = l->depth == 0 ? tag_end(l, l->i, block ? "%}" : "}}", block) : 0;
        if (end) continue;
        if (l->i >= l->n) return MINFER_OK;
        MF_TRY(lex_code_token(l));
    }
}

/* -- between tags -- */

static minfer_status lex_comment(lexer *l)
{
    for (size_t i = l->i; i < l->n; i++) {
        size_t end = tag_end(l, i, "#}", true);
        if (end) {
            l->i = end;
            return MINFER_OK;
        }
    }
    return l->i < l->n ? fail_here(l, "Missing end of comment tag") : MINFER_OK;
}

/* Behind {% or {%-: the end of a tag that holds nothing but word, or 0. */
static size_t lone_word(const lexer *l, size_t i, const char *word, bool trim)
{
    i = skip_space(l, i);
    if (!at(l, i, word)) return 0;
    return tag_end(l, skip_space(l, i + strlen(word)), "%}", trim);
}

static char sign_at(const lexer *l, size_t i)
{
    return at(l, i, "-") ? '-' : at(l, i, "+") ? '+' : 0;
}

static minfer_status lex_raw(lexer *l)
{
    for (size_t i = l->i; i < l->n; i++) {
        if (!at(l, i, "{%")) continue;
        char sign = sign_at(l, i + 2);
        size_t end = lone_word(l, i + 2 + (sign != 0), "endraw", true);
        if (!end) continue;
        MF_TRY(emit_data(l, l->i, i, sign, true));
        l->i = end;
        return MINFER_OK;
    }
    return l->i < l->n ? fail_here(l, "Missing end of raw directive") : MINFER_OK;
}

static size_t find_tag(const lexer *l, size_t i)
{
    for (; i < l->n; i++) {
        const char *brace = memchr(l->s + i, '{', l->n - i);
        if (!brace) return l->n;
        i = (size_t)(brace - l->s);
        if (i + 1 < l->n && strchr("{%#", l->s[i + 1]) && l->s[i + 1]) return i;
    }
    return l->n;
}

static minfer_status lex_tag(lexer *l, size_t tag, char sign)
{
    size_t code = tag + 2 + (sign != 0), raw;
    l->i = code;
    if (l->s[tag + 1] == '#') return lex_comment(l);
    bool block = l->s[tag + 1] == '%';
    if (block && (raw = lone_word(l, code, "raw", false))) {
        l->i = raw;
        return lex_raw(l);
    }
    l->i = tag;
    MF_TRY(emit(l, block ? MF_TOK_BLOCK_BEGIN : MF_TOK_PRINT_BEGIN, mf_tmissing()));
    l->i = code;
    return lex_code(l, block ? MF_TOK_BLOCK_END : MF_TOK_PRINT_END);
}

static minfer_status lex_all(lexer *l)
{
    while (l->i < l->n) {
        size_t tag = find_tag(l, l->i);
        if (tag == l->n) {
            MF_TRY(emit_text(l, MF_TOK_DATA, l->i, l->n));
            l->i = l->n;
            break;
        }
        char sign = sign_at(l, tag + 2);
        MF_TRY(emit_data(l, l->i, tag, sign, l->s[tag + 1] != '{'));
        MF_TRY(lex_tag(l, tag, sign));
    }
    return emit(l, MF_TOK_EOF, mf_tmissing());
}

/* \r\n and \r become \n; one newline at the end is dropped. */
static minfer_status normalize(mf_trender *r, const char *src, size_t n, mf_tsb *out)
{
    MF_TRY(mf_tsb_fill(r, out, " ", 1, n));
    out->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (src[i] == '\r' && i + 1 < n && src[i + 1] == '\n') continue;
        out->p[out->n++] = src[i] == '\r' ? '\n' : src[i];
    }
    if (out->n && out->p[out->n - 1] == '\n') out->n--;
    return MINFER_OK;
}

minfer_status mf_tlex_all(mf_trender *r, const char *src, size_t n, mf_ttokens *out)
{
    mf_tsb text = {0};
    MF_TRY(normalize(r, src, n, &text));
    lexer l = {.r = r, .s = text.p ? text.p : "", .n = text.n, .line = 1, .column = 1, .out = out};
    return lex_all(&l);
}
