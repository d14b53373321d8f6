/* Reading JSON, without recursion: a container stands in its parent before its elements are read. Writing. */
#include "base/json.h"

#include "base/utf8.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *text, *p, *end;
    unsigned flags;
    mf_json_error *e;
    mf_buf key, string; /* the last ones read */
    json_t *root;
    json_t *open[MF_JSON_DEPTH]; /* the root owns them */
    size_t depth;
} reader;

/* ---- refusals: false always */

static bool nomem(reader *r)
{
    r->e->nomem = true;
    snprintf(r->e->text, sizeof r->e->text, "out of memory");
    return false;
}

static bool refuse_at(reader *r, const char *at, const char *what)
{
    const char *line = r->text;
    r->e->line = 1;
    for (const char *p = r->text; p < at; p++)
        if (*p == '\n') r->e->line++, line = p + 1;
    r->e->column = (int)mf_utf8_count(line, (size_t)(at - line)) + 1;
    snprintf(r->e->text, sizeof r->e->text, "%s", what);
    return false;
}

static bool is_wordy(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.' || c == '_';
}

/* What stands at r->p is not what was expected. */
static bool refuse(reader *r, const char *expected)
{
    enum { SHOWN = 20 };
    char what[80];
    uint32_t cp;
    int n = 0;
    if (r->p == r->end) {
        snprintf(what, sizeof what, "%s near end of file", expected);
        return refuse_at(r, r->p, what);
    }
    while (r->p + n < r->end && n < SHOWN && is_wordy(r->p[n])) n++;
    if (n == 0) n = (int)mf_utf8_decode(r->p, (size_t)(r->end - r->p), &cp);
    if (n > 1 || (*r->p > 0x20 && *r->p < 0x7f))
        snprintf(what, sizeof what, "%s near '%.*s'", expected, n, r->p);
    else
        snprintf(what, sizeof what, "%s near byte 0x%02x", expected, (unsigned char)*r->p);
    return refuse_at(r, r->p, what);
}

/* ---- strings */

static bool read_hex(reader *r, uint32_t *v)
{
    *v = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        static const char digits[] = "0123456789abcdef";
        const char *d = r->p < r->end && *r->p ? strchr(digits, *r->p | 0x20) : NULL;
        if (!d || !*d) return false;
        *v = *v << 4 | (uint32_t)(d - digits);
    }
    return true;
}

/* Behind \u; two of them make a character beyond the first plane. */
static bool read_code(reader *r, const char *start, mf_buf *out)
{
    uint32_t cp, low;
    char bytes[4];
    if (!read_hex(r, &cp)) return refuse_at(r, start, "invalid escape: four hex digits expected");
    if (cp >= 0xD800 && cp < 0xDC00) {
        bool pair = r->end - r->p >= 2 && r->p[0] == '\\' && r->p[1] == 'u' && (r->p += 2, read_hex(r, &low));
        if (!pair || low < 0xDC00 || low > 0xDFFF) return refuse_at(r, start, "half of a surrogate pair");
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
    } else if (cp >= 0xDC00 && cp <= 0xDFFF) {
        return refuse_at(r, start, "half of a surrogate pair");
    }
    return mf_buf_append(out, bytes, mf_utf8_encode(cp, bytes)) || nomem(r);
}

static bool read_escape(reader *r, mf_buf *out)
{
    static const char names[] = "\"\\/bfnrt", chars[] = "\"\\/\b\f\n\r\t";
    const char *start = r->p++;
    char c = r->p < r->end ? *r->p++ : 0;
    if (c == 'u') return read_code(r, start, out);
    const char *name = c ? strchr(names, c) : NULL;
    if (!name) return refuse_at(r, start, "invalid escape");
    return mf_buf_char(out, chars[name - names]) || nomem(r);
}

/* Bytes from r->p on that stand for themselves; 0: the first one does not. */
static size_t plain(const reader *r)
{
    const char *p = r->p;
    while (p < r->end && (unsigned char)*p >= 0x20 && *p != '"' && *p != '\\') {
        uint32_t cp = 0;
        size_t k = (unsigned char)*p < 0x80 ? 1 : mf_utf8_decode(p, (size_t)(r->end - p), &cp);
        if (cp == MF_UTF8_BAD) break;
        p += k;
    }
    return (size_t)(p - r->p);
}

static bool read_string(reader *r, mf_buf *out)
{
    const char *start = r->p++;
    out->len = 0;
    if (!mf_buf_str(out, "")) return nomem(r);
    for (;;) {
        size_t n = plain(r);
        if (!mf_buf_append(out, r->p, n)) return nomem(r);
        r->p += n;
        if (r->p == r->end) return refuse_at(r, start, "a string that does not end");
        if (*r->p == '"') break;
        if ((unsigned char)*r->p >= 0x80) return refuse_at(r, r->p, "invalid UTF-8");
        if (*r->p != '\\') return refuse_at(r, r->p, "a control character in a string");
        if (!read_escape(r, out)) return false;
    }
    r->p++;
    return true;
}

/* ---- numbers and words */

static bool digits(reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') r->p++;
    return r->p > from;
}

static bool next_is(const reader *r, const char *set)
{
    return r->p < r->end && *r->p && strchr(set, *r->p);
}

/* Over the number that begins at r->p; false: it is none. *real: it has a fraction or an exponent. */
static bool scan_number(reader *r, bool *real)
{
    *real = false;
    if (next_is(r, "-")) r->p++;
    if (next_is(r, "0"))
        r->p++;
    else if (!digits(r))
        return false;
    if (next_is(r, ".")) {
        *real = true;
        r->p++;
        if (!digits(r)) return false;
    }
    if (next_is(r, "eE")) {
        *real = true;
        r->p++;
        if (next_is(r, "+-")) r->p++;
        if (!digits(r)) return false;
    }
    return true;
}

/* NULL: refused, or no memory. */
static json_t *read_number(reader *r)
{
    const char *start = r->p;
    bool real;
    json_t *j;
    if (!scan_number(r, &real)) {
        refuse_at(r, start, "invalid number");
        return NULL;
    }
    r->string.len = 0;
    if (!mf_buf_append(&r->string, start, (size_t)(r->p - start))) {
        nomem(r);
        return NULL;
    }
    char *point = strchr(r->string.data, '.');
    if (point) *point = *localeconv()->decimal_point;
    errno = 0;
    double d = real ? strtod(r->string.data, NULL) : 0;
    long long i = real ? 0 : strtoll(r->string.data, NULL, 10);
    if (real ? !isfinite(d) : errno == ERANGE) {
        refuse_at(r, start, real ? "a number beyond all doubles" : "an integer beyond 64 bits");
        return NULL;
    }
    j = real ? json_real(d) : json_integer(i);
    if (!j) nomem(r);
    return j;
}

static json_t *read_word(reader *r)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(r->end - r->p) < n || memcmp(r->p, words[i], n) != 0) continue;
        if (r->p + n < r->end && is_wordy(r->p[n])) continue;
        r->p += n;
        return i == 0 ? json_true() : i == 1 ? json_false() : json_null();
    }
    refuse(r, "unexpected token");
    return NULL;
}

/* ---- values */

static void skip_blanks(reader *r)
{
    while (next_is(r, " \t\r\n")) r->p++;
}

/* Puts v where the text has it; takes it, also on failure. */
static bool put(reader *r, json_t *v)
{
    json_t *in = r->depth ? r->open[r->depth - 1] : NULL;
    bool ok = true;
    if (!in)
        r->root = v;
    else if (json_is_array(in))
        ok = json_array_append_new(in, v) == 0;
    else
        ok = json_object_set_new_nocheck(in, r->key.data, v) == 0;
    return ok || nomem(r);
}

static bool open_container(reader *r)
{
    json_t *v = *r->p == '{' ? json_object() : json_array();
    if (!v) return nomem(r);
    if (!put(r, v)) return false;
    if (r->depth == MF_JSON_DEPTH) return refuse_at(r, r->p, "brackets are too deep");
    r->open[r->depth++] = v;
    r->p++;
    return true;
}

static bool read_value(reader *r)
{
    skip_blanks(r);
    if (next_is(r, "{[")) return open_container(r);
    json_t *v;
    if (next_is(r, "\"")) {
        if (!read_string(r, &r->string)) return false;
        v = json_stringn_nocheck(r->string.data, r->string.len);
        return v ? put(r, v) : nomem(r);
    }
    v = next_is(r, "-0123456789") ? read_number(r) : read_word(r);
    return v && put(r, v);
}

static bool read_key(reader *r, const json_t *object)
{
    skip_blanks(r);
    const char *start = r->p;
    if (!next_is(r, "\"")) return refuse(r, "a key expected");
    if (!read_string(r, &r->key)) return false;
    if (strlen(r->key.data) != r->key.len) return refuse_at(r, start, "a NUL character in a key");
    if (r->flags & MF_JSON_UNIQUE && json_object_get(object, r->key.data)) {
        char what[120];
        size_t n = r->key.len > 60 ? 60 : r->key.len;
        n -= mf_utf8_incomplete_tail(r->key.data, n);
        snprintf(what, sizeof what, "the key \"%.*s\" is there twice", (int)n, r->key.data);
        return refuse_at(r, start, what);
    }
    skip_blanks(r);
    if (!next_is(r, ":")) return refuse(r, "':' expected");
    r->p++;
    return true;
}

/* The next element of the innermost container, or its end. */
static bool read_element(reader *r)
{
    const json_t *in = r->open[r->depth - 1];
    bool object = json_is_object(in);
    bool empty = !(object ? json_object_size(in) : json_array_size(in));
    skip_blanks(r);
    if (next_is(r, object ? "}" : "]")) {
        r->p++;
        r->depth--;
        return true;
    }
    if (!empty) {
        if (!next_is(r, ",")) return refuse(r, object ? "',' or '}' expected" : "',' or ']' expected");
        r->p++;
    }
    return (!object || read_key(r, in)) && read_value(r);
}

static bool read_text(reader *r)
{
    skip_blanks(r);
    if (!(r->flags & MF_JSON_ANY) && !next_is(r, "{[")) return refuse(r, "'[' or '{' expected");
    if (!read_value(r)) return false;
    while (r->depth)
        if (!read_element(r)) return false;
    skip_blanks(r);
    return r->p == r->end || refuse(r, "end of file expected");
}

json_t *mf_json_read(const char *text, size_t n, unsigned flags, mf_json_error *e)
{
    reader r;
    memset(&r, 0, offsetof(reader, open));
    r.text = r.p = text;
    r.end = text + n;
    r.flags = flags;
    r.e = e;
    r.depth = 0;
    *e = (mf_json_error){0};
    bool ok = read_text(&r);
    if (!ok) json_decref(r.root);
    mf_buf_free(&r.key);
    mf_buf_free(&r.string);
    return ok ? r.root : NULL;
}

minfer_status mf_json_fail(const mf_json_error *e, minfer_error *err)
{
    if (e->nomem) return mf_fail(err, MINFER_ERR_NOMEM, "out of memory while JSON is read");
    return mf_fail(err, MINFER_ERR_FORMAT, "line %d, column %d: %s", e->line, e->column, e->text);
}

/* ---- copying */

json_t *mf_json_copy(const json_t *j)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)j);
    if (json_array_size(copy) == json_array_size(j) && json_object_size(copy) == json_object_size(j))
        return copy;
    json_decref(copy);
    return NULL;
}

/* ---- writing */

typedef struct writer {
    mf_buf *out;
    bool failed; /* jansson goes on after a key that could not be written */
} writer;

static int append(const char *data, size_t n, void *user)
{
    writer *w = user;
    w->failed = w->failed || !mf_buf_append(w->out, data, n);
    return w->failed ? -1 : 0;
}

bool mf_json_write(const json_t *j, size_t flags, mf_buf *out)
{
    writer w = {.out = out};
    return json_dump_callback(j, append, &w, flags) == 0 && !w.failed;
}

char *mf_json_text(const json_t *j, size_t flags)
{
    mf_buf b = {0};
    if (j && mf_json_write(j, flags, &b)) return b.data;
    mf_buf_free(&b);
    return NULL;
}
