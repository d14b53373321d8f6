/* Reading one tool call byte by byte. */
#include "server/call.h"

#include "server/fields.h"

#include <string.h>

enum { MAX_NAME = 1000 }; /* bytes of a key or name as written */

static void bad(srv_call *c)
{
    c->scan.state = SRV_SCAN_BAD;
}

/* Replaces a JSON string by what it says; false: out of memory. Text that is none is left, as "". */
static bool decode(mf_buf *b)
{
    mf_json_error e;
    json_t *j = mf_json_read(b->data, b->len, MF_JSON_ANY, &e);
    if (!j && e.nomem) return false;
    b->len = 0;
    bool ok = mf_buf_append(b, j ? json_string_value(j) : "", j ? json_string_length(j) : 0);
    json_decref(j);
    return ok;
}

static bool is(const mf_buf *b, const char *s)
{
    return b->len == strlen(s) && memcmp(b->data, s, b->len) == 0;
}

/* The value of the key that was read begins with byte. */
static void start_value(srv_call *c, char byte)
{
    bool args = is(&c->key, "arguments") || is(&c->key, "parameters");
    c->field = is(&c->key, "name") ? SRV_CALL_NAME : args ? SRV_CALL_ARGUMENTS : SRV_CALL_OTHER;
    if (c->field == SRV_CALL_OTHER && c->only) bad(c);
    if (c->field == SRV_CALL_NAME && (byte != '"' || c->tool)) bad(c);
    if (c->field == SRV_CALL_ARGUMENTS && (!strchr("{\"n", byte) || c->args_done)) bad(c);
}

static bool end_name(srv_call *c)
{
    if (!decode(&c->name)) return false;
    for (size_t i = 0; i < c->n_tools && !c->tool; i++)
        if (is(&c->name, c->tools[i].name)) c->tool = &c->tools[i];
    if (!c->tool) bad(c);
    return true;
}

static bool is_object(const mf_buf *b)
{
    srv_json_scan s = {0};
    size_t blank = strspn(b->data, " \t\r\n");
    for (size_t i = 0; i < b->len; i++) srv_json_scan_byte(&s, b->data[i]);
    return s.state == SRV_SCAN_DONE && b->data[blank] == '{';
}

/* Arguments as JSON text within a string are taken, too; null and "" stand for none. */
static bool end_args(srv_call *c)
{
    c->args_done = true;
    if (c->args.data[0] == '{') return true;
    if (c->args.data[0] == '"' && !decode(&c->args)) return false;
    if (c->args.len == 0 || is(&c->args, "null")) {
        c->args.len = 0;
        return mf_buf_str(&c->args, "{}");
    }
    if (!is_object(&c->args)) bad(c);
    return true;
}

static bool append_escaped(mf_buf *b, bool in_string, char byte)
{
    if (!in_string || (unsigned char)byte >= 0x20) return mf_buf_char(b, byte);
    if (byte == '\n') return mf_buf_str(b, "\\n");
    if (byte == '\t') return mf_buf_str(b, "\\t");
    return mf_buf_printf(b, "\\u%04x", (unsigned)byte);
}

static bool keep(srv_call *c, bool in_string, char byte)
{
    mf_buf *b = c->field == SRV_CALL_KEY ? &c->key : &c->name;
    if (c->field == SRV_CALL_ARGUMENTS) return append_escaped(&c->args, in_string, byte);
    if (c->field != SRV_CALL_KEY && c->field != SRV_CALL_NAME) return true;
    if (b->len >= MAX_NAME) bad(c);
    return mf_buf_char(b, byte);
}

bool srv_call_byte(srv_call *c, char byte)
{
    srv_scan_state before = c->scan.state;
    int depth = c->scan.depth;
    srv_json_scan_byte(&c->scan, byte);
    srv_scan_state now = c->scan.state;
    if (depth == 0 && before == SRV_SCAN_VALUE && now != SRV_SCAN_VALUE && byte != '{') bad(c);
    if (depth == 1 && now == SRV_SCAN_STRING && (before == SRV_SCAN_KEY || before == SRV_SCAN_KEY_OR_END)) {
        c->field = SRV_CALL_KEY;
        c->key.len = 0;
    } else if (depth == 1 && before == SRV_SCAN_VALUE && now != SRV_SCAN_VALUE && now != SRV_SCAN_BAD) {
        start_value(c, byte);
    }
    if (c->scan.state == SRV_SCAN_BAD) return true;
    if (!keep(c, before == SRV_SCAN_STRING, byte)) return false;
    if (c->scan.depth > 1 || (now != SRV_SCAN_AFTER && now != SRV_SCAN_COLON)) return true;
    srv_call_field field = c->field;
    c->field = SRV_CALL_NOTHING;
    if (field == SRV_CALL_KEY) return decode(&c->key);
    if (field == SRV_CALL_NAME) return end_name(c);
    return field != SRV_CALL_ARGUMENTS || end_args(c);
}

bool srv_call_ready(const srv_call *c)
{
    bool closed = c->scan.state == SRV_SCAN_DONE || (c->scan.state == SRV_SCAN_AFTER && c->scan.depth == 1);
    return closed && c->tool && (c->args_done || !c->args.len);
}

bool srv_call_streams(const srv_call *c)
{
    return c->tool && c->args.len && (c->args_done || c->args.data[0] == '{');
}

void srv_call_free(srv_call *c)
{
    mf_buf_free(&c->key);
    mf_buf_free(&c->name);
    mf_buf_free(&c->args);
}
