/* JSON byte by byte: one function per kind of state. */
#include "server/json_scan.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void end_value(srv_json_scan *s)
{
    s->state = s->depth ? SRV_SCAN_AFTER : SRV_SCAN_DONE;
}

static bool in_object(const srv_json_scan *s)
{
    return s->depth && s->objects >> (s->depth - 1) & 1;
}

static void open_bracket(srv_json_scan *s, bool object)
{
    if (s->depth == SRV_SCAN_DEPTH) {
        s->state = SRV_SCAN_BAD;
        return;
    }
    uint64_t bit = (uint64_t)1 << s->depth++;
    s->objects = object ? s->objects | bit : s->objects & ~bit;
    s->state = object ? SRV_SCAN_KEY_OR_END : SRV_SCAN_VALUE_OR_END;
}

static void close_bracket(srv_json_scan *s, char c)
{
    if (c != (in_object(s) ? '}' : ']')) {
        s->state = SRV_SCAN_BAD;
        return;
    }
    s->depth--;
    end_value(s);
}

static void start_string(srv_json_scan *s, bool key)
{
    s->state = SRV_SCAN_STRING;
    s->key = key;
}

static void start_word(srv_json_scan *s, const char *rest)
{
    s->state = SRV_SCAN_WORD;
    s->word = rest;
}

static void start_value(srv_json_scan *s, char c)
{
    switch (c) {
    case '{': open_bracket(s, true); return;
    case '[': open_bracket(s, false); return;
    case '"': start_string(s, false); return;
    case 't': start_word(s, "rue"); return;
    case 'f': start_word(s, "alse"); return;
    case 'n': start_word(s, "ull"); return;
    case '-': s->state = SRV_SCAN_MINUS; return;
    case '0': s->state = SRV_SCAN_ZERO; return;
    default: s->state = is_digit(c) ? SRV_SCAN_DIGITS : SRV_SCAN_BAD;
    }
}

static void between(srv_json_scan *s, char c)
{
    if (is_blank(c)) return;
    switch (s->state) {
    case SRV_SCAN_VALUE_OR_END:
        if (c == ']')
            close_bracket(s, c);
        else
            start_value(s, c);
        return;
    case SRV_SCAN_KEY_OR_END:
        if (c == '}') {
            close_bracket(s, c);
            return;
        } /* fall through */
    case SRV_SCAN_KEY:
        start_string(s, true);
        if (c != '"') s->state = SRV_SCAN_BAD;
        return;
    case SRV_SCAN_COLON: s->state = c == ':' ? SRV_SCAN_VALUE : SRV_SCAN_BAD; return;
    case SRV_SCAN_AFTER:
        if (c == ',')
            s->state = in_object(s) ? SRV_SCAN_KEY : SRV_SCAN_VALUE;
        else
            close_bracket(s, c);
        return;
    default: start_value(s, c);
    }
}

static void in_string(srv_json_scan *s, char c)
{
    if (c == '\\') {
        s->state = SRV_SCAN_ESCAPE;
    } else if (c == '"' && s->key) {
        s->state = SRV_SCAN_COLON;
    } else if (c == '"') {
        end_value(s);
    }
}

static void in_escape(srv_json_scan *s, char c)
{
    if (s->state == SRV_SCAN_HEX) {
        bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        s->state = !hex ? SRV_SCAN_BAD : --s->n_hex ? SRV_SCAN_HEX : SRV_SCAN_STRING;
    } else if (c == 'u') {
        s->state = SRV_SCAN_HEX;
        s->n_hex = 4;
    } else {
        s->state = c && strchr("\"\\/bfnrt", c) ? SRV_SCAN_STRING : SRV_SCAN_BAD;
    }
}

static void in_word(srv_json_scan *s, char c)
{
    if (c != *s->word) {
        s->state = SRV_SCAN_BAD;
    } else if (!*++s->word) {
        end_value(s);
    }
}

/* The state of a number after c, or AFTER where c is no part of it. */
static srv_scan_state next_of_number(srv_scan_state state, char c)
{
    bool digit = is_digit(c), e = c == 'e' || c == 'E';
    switch (state) {
    case SRV_SCAN_MINUS: return c == '0' ? SRV_SCAN_ZERO : digit ? SRV_SCAN_DIGITS : SRV_SCAN_BAD;
    case SRV_SCAN_DIGITS:
        if (digit) return SRV_SCAN_DIGITS; /* fall through */
    case SRV_SCAN_ZERO: return c == '.' ? SRV_SCAN_POINT : e ? SRV_SCAN_EXPONENT : SRV_SCAN_AFTER;
    case SRV_SCAN_POINT: return digit ? SRV_SCAN_FRACTION : SRV_SCAN_BAD;
    case SRV_SCAN_FRACTION: return digit ? SRV_SCAN_FRACTION : e ? SRV_SCAN_EXPONENT : SRV_SCAN_AFTER;
    case SRV_SCAN_EXPONENT:
        if (c == '+' || c == '-') return SRV_SCAN_EXP_SIGN; /* fall through */
    case SRV_SCAN_EXP_SIGN: return digit ? SRV_SCAN_EXP_DIGIT : SRV_SCAN_BAD;
    default: return digit ? SRV_SCAN_EXP_DIGIT : SRV_SCAN_AFTER;
    }
}

static void in_number(srv_json_scan *s, char c)
{
    s->state = next_of_number(s->state, c);
    if (s->state != SRV_SCAN_AFTER) return;
    if (s->depth)
        between(s, c);
    else
        s->state = SRV_SCAN_BAD; /* nobody asks for bare numbers */
}

void srv_json_scan_byte(srv_json_scan *s, char c)
{
    switch (s->state) {
    case SRV_SCAN_STRING: in_string(s, c); return;
    case SRV_SCAN_ESCAPE:
    case SRV_SCAN_HEX: in_escape(s, c); return;
    case SRV_SCAN_WORD: in_word(s, c); return;
    case SRV_SCAN_DONE: s->state = is_blank(c) ? SRV_SCAN_DONE : SRV_SCAN_BAD; return;
    case SRV_SCAN_BAD: return;
    default:
        if (s->state >= SRV_SCAN_MINUS)
            in_number(s, c);
        else
            between(s, c);
    }
}
