/* str.format: "{} {name.attr[key]!r:>8}". */
#include "template/attr.h"
#include "template/format.h"
#include "template/number.h"
#include "template/print.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LEVEL = 2 }; /* a specification may hold fields, those may not hold more */

typedef struct state {
    mf_trender *r;
    const mf_tcall *call;
    int64_t next; /* number of the next {} */
    bool manual, automatic;
} state;

static minfer_status expand(state *s, const char *p, size_t n, int level, mf_tsb *out);

static minfer_status bad(state *s, const char *what)
{
    return mf_trender_raise(s->r, MF_TE_VALUE, "%s", what);
}

static bool all_digits(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)p[i])) return false;
    return n > 0;
}

static minfer_status positional(state *s, int64_t i, mf_tval *out)
{
    if (i < 0 || (uint64_t)i >= s->call->npos)
        return mf_trender_raise(
            s->r, MF_TE_INDEX, "Replacement index %lld out of range for positional args tuple", (long long)i);
    *out = s->call->pos[i];
    return MINFER_OK;
}

static minfer_status named(state *s, const char *p, size_t n, mf_tval *out)
{
    for (size_t i = 0; i < s->call->nkw; i++) {
        const mf_tstr *name = s->call->kw[i].name;
        if (name->n != n || (n && memcmp(name->p, p, n) != 0)) continue;
        *out = s->call->kw[i].value;
        return MINFER_OK;
    }
    return mf_trender_raise(s->r, MF_TE_KEY, "'%.*s'", n > 200 ? 200 : (int)n, p);
}

static minfer_status index_number(state *s, const char *p, size_t n, int64_t *out)
{
    return mf_tnumber_parse_int(p, n, 10, out) == MF_PARSE_OK
               ? MINFER_OK
               : bad(s, "Too many decimal digits in format string");
}

/* The argument a field begins with. */
static minfer_status first_value(state *s, const char *p, size_t n, bool whole, mf_tval *out)
{
    int64_t i;
    if (n == 0 && whole) {
        if (s->manual)
            return bad(s, "cannot switch from manual field specification to automatic field numbering");
        s->automatic = true;
        return positional(s, s->next++, out);
    }
    if (!all_digits(p, n)) return named(s, p, n, out);
    if (s->automatic)
        return bad(s, "cannot switch from automatic field numbering to manual field specification");
    s->manual = true;
    MF_TRY(index_number(s, p, n, &i));
    return positional(s, i, out);
}

/* One .name or [key] at p; *used tells its length. */
static minfer_status follow(state *s, const char *p, size_t n, size_t *used, mf_tval *v)
{
    bool bracket = *p == '[';
    size_t end = 1;
    mf_tval key;
    if (!bracket && *p != '.') return bad(s, "Only '.' or '[' may follow ']' in format field specifier");
    while (end < n && (bracket ? p[end] != ']' : p[end] != '.' && p[end] != '[')) end++;
    if (bracket && end == n) return bad(s, "Missing ']' in format string");
    if (end == 1) return bad(s, "Empty attribute in format string");
    *used = end + bracket;
    MF_TRY(mf_tstr_new(s->r, p + 1, end - 1, &key));
    if (!bracket) return mf_tattr_get(s->r, *v, key, v);
    if (all_digits(p + 1, end - 1)) {
        key = mf_tint(0);
        MF_TRY(index_number(s, p + 1, end - 1, &key.i));
    }
    return mf_titem_get(s->r, *v, key, v);
}

static minfer_status field_value(state *s, const char *p, size_t n, mf_tval *out)
{
    size_t first = 0, used = 0;
    while (first < n && p[first] != '.' && p[first] != '[') first++;
    MF_TRY(first_value(s, p, first, first == n, out));
    for (size_t i = first; i < n; i += used) MF_TRY(follow(s, p + i, n - i, &used, out));
    return MINFER_OK;
}

static minfer_status convert(state *s, char how, mf_tval *v)
{
    mf_tsb text = {0};
    if (how == 's') return mf_tval_to_str(s->r, *v, v);
    if (how != 'r' && how != 'a') return bad(s, "Unknown conversion specifier");
    if (how == 'a' && mf_tis(*v, MF_T_STR))
        MF_TRY(mf_tprint_quoted(s->r, &text, v->s, true));
    else
        MF_TRY(mf_tval_repr(s->r, &text, *v));
    return mf_tstr_wrap(s->r, text.p, text.n, v);
}

/* The text between the braces of one field. */
static minfer_status put_field(state *s, const char *p, size_t n, int level, mf_tsb *out)
{
    size_t name = 0, spec = n;
    char conversion = 0;
    for (bool bracket = false; name < n && (bracket || (p[name] != '!' && p[name] != ':')); name++)
        bracket = p[name] == '[' || (bracket && p[name] != ']');
    if (name < n && p[name] == ':') spec = name + 1;
    if (name < n && p[name] == '!') {
        if (name + 1 == n) return bad(s, "end of string while looking for conversion specifier");
        conversion = p[name + 1];
        if (name + 2 < n && p[name + 2] != ':') return bad(s, "expected ':' after conversion specifier");
        spec = name + 3 < n ? name + 3 : n;
    }
    mf_tval v;
    mf_tsb expanded = {0};
    MF_TRY(field_value(s, p, name, &v));
    if (conversion) MF_TRY(convert(s, conversion, &v));
    MF_TRY(expand(s, p + spec, n - spec, level + 1, &expanded));
    return mf_tformat_value(s->r, out, v, expanded.p, expanded.n);
}

/* Where the field that begins at i ends: at the brace that closes it. */
static size_t field_end(const char *p, size_t n, size_t i)
{
    for (size_t depth = 1; i < n; i++) {
        if (p[i] == '{') depth++;
        if (p[i] == '}' && --depth == 0) break;
    }
    return i;
}

static minfer_status expand(state *s, const char *p, size_t n, int level, mf_tsb *out)
{
    if (level > MAX_LEVEL) return n ? bad(s, "Max string recursion exceeded") : MINFER_OK;
    MF_TRY(mf_trender_charge(s->r, n));
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c != '{' && c != '}') {
            MF_TRY(mf_tsb_char(s->r, out, c));
            continue;
        }
        if (i + 1 < n && p[i + 1] == c) {
            MF_TRY(mf_tsb_char(s->r, out, c));
            i++;
            continue;
        }
        if (c == '}') return bad(s, "Single '}' encountered in format string");
        size_t end = field_end(p, n, i + 1);
        if (end == n) return bad(s, "expected '}' before end of string");
        MF_TRY(put_field(s, p + i + 1, end - i - 1, level, out));
        i = end;
    }
    return MINFER_OK;
}

minfer_status mf_tformat_braces(mf_trender *r, const mf_tstr *fmt, const mf_tcall *call, mf_tval *out)
{
    state s = {.r = r, .call = call};
    mf_tsb text = {0};
    MF_TRY(expand(&s, fmt->p, fmt->n, 1, &text));
    return mf_tstr_wrap(r, text.p, text.n, out);
}
