/* Messages of a chat, checked and normalised for templates: content is a string, arguments of tool calls are
 * objects, developer is system, and fields that templates do not know are left out. */
#include "server/request_read.h"

#include <string.h>

static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};

static bool set_new(json_t *object, const char *name, json_t *value, srv_error *e)
{
    return (value && json_object_set_new(object, name, value) == 0) || srv_nomem_refuse(e);
}

/* Copies an optional field that is a string. */
static bool copy_text(const srv_object *from, const char *name, json_t *to)
{
    json_t *j = srv_field(from, name);
    srv_path path;
    if (!j) return true;
    if (!json_is_string(j)) return srv_type_refuse(from->e, srv_path_of(from, name, path), "a string", j);
    return json_object_set(to, name, j) == 0 || srv_nomem_refuse(from->e);
}

static bool read_role(const srv_object *m, json_t *out, const char **role)
{
    const json_t *j = srv_field(m, "role");
    srv_path path;
    if (!j) return srv_field_refuse(m, "role", "required, and missing");
    if (!json_is_string(j)) return srv_type_refuse(m->e, srv_path_of(m, "role", path), "a string", j);
    *role = json_string_value(j);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i], *role) == 0)
            return set_new(out, "role", json_string(i == 1 ? "system" : roles[i]), m->e);
    return srv_field_refuse(m, "role", "'%.60s' is not one of system, developer, user, assistant, tool",
                            *role);
}

/* The text of one content part. */
static bool read_part(const srv_object *part, mf_buf *out)
{
    const json_t *type = srv_field(part, "type"), *text;
    const char *name = json_string_value(type);
    if (!name) return srv_field_refuse(part, "type", "expected a string");
    if (strcmp(name, "text") != 0 && strcmp(name, "refusal") != 0)
        return srv_field_refuse(part, "type", "parts of type '%.60s' are not supported, only 'text'", name);
    text = srv_field(part, name);
    if (!json_is_string(text)) return srv_field_refuse(part, name, "expected a string");
    return mf_buf_append(out, json_string_value(text), json_string_length(text)) || srv_nomem_refuse(part->e);
}

static bool read_parts(const srv_object *m, const json_t *parts, mf_buf *out)
{
    srv_path path, at;
    srv_path_of(m, "content", path);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        srv_object part = {json_array_get(parts, i), srv_path_item(path, i, at), m->mem, m->e};
        if (!json_is_object(part.j)) return srv_type_refuse(m->e, at, "an object", part.j);
        if (!read_part(&part, out)) return false;
    }
    return true;
}

static bool read_content(const srv_object *m, bool may_lack, json_t *out)
{
    json_t *j = json_object_get(m->j, "content");
    srv_path path;
    if (!j && !may_lack) return srv_field_refuse(m, "content", "required, and missing");
    if (!j || json_is_null(j)) return set_new(out, "content", json_string(""), m->e);
    if (json_is_string(j)) return json_object_set(out, "content", j) == 0 || srv_nomem_refuse(m->e);
    if (!json_is_array(j))
        return srv_type_refuse(m->e, srv_path_of(m, "content", path), "a string, null or an array of parts",
                               j);
    mf_buf text = {0};
    bool ok = read_parts(m, j, &text) &&
              set_new(out, "content", json_stringn(text.data ? text.data : "", text.len), m->e);
    mf_buf_free(&text);
    return ok;
}

static bool is_empty(const char *s)
{
    return s[strspn(s, " \t\r\n")] == 0;
}

/* Clients send arguments as JSON text, which templates would quote once more. */
static bool read_arguments(const srv_object *function, json_t *out)
{
    json_t *j = srv_field(function, "arguments");
    srv_path path;
    srv_error why;
    if (!j || (json_is_string(j) && is_empty(json_string_value(j))))
        return set_new(out, "arguments", json_object(), function->e);
    if (json_is_object(j)) return json_object_set(out, "arguments", j) == 0 || srv_nomem_refuse(function->e);
    srv_path_of(function, "arguments", path);
    if (!json_is_string(j)) return srv_type_refuse(function->e, path, "JSON of an object as a string", j);
    json_t *parsed = srv_json_read(json_string_value(j), json_string_length(j), false, &why);
    if (parsed) return set_new(out, "arguments", parsed, function->e);
    if (why.status == 500) return srv_nomem_refuse(function->e);
    return srv_field_refuse(function, "arguments", "expected JSON of an object: %s", why.message);
}

static bool read_call(const srv_object *call, json_t *out)
{
    srv_path path;
    srv_object function;
    if (!set_new(out, "type", json_string("function"), call->e) || !copy_text(call, "id", out)) return false;
    json_t *f = json_object();
    if (!set_new(out, "function", f, call->e) || !srv_field_object(call, "function", path, &function))
        return false;
    if (!function.j) return srv_field_refuse(call, "function", "required, and missing");
    if (!srv_field(&function, "name")) return srv_field_refuse(&function, "name", "required, and missing");
    return copy_text(&function, "name", f) && read_arguments(&function, f);
}

static bool read_calls(const srv_object *m, const json_t *calls, json_t *out)
{
    json_t *list = json_array();
    srv_path path, at;
    if (!set_new(out, "tool_calls", list, m->e)) return false;
    srv_path_of(m, "tool_calls", path);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        srv_object call = {json_array_get(calls, i), srv_path_item(path, i, at), m->mem, m->e};
        json_t *copy = json_object();
        if (json_array_append_new(list, copy)) return srv_nomem_refuse(m->e);
        if (!json_is_object(call.j)) return srv_type_refuse(m->e, at, "an object", call.j);
        if (!read_call(&call, copy)) return false;
    }
    return true;
}

static bool read_message(const srv_object *m, json_t *out)
{
    const char *role = "";
    json_t *calls;
    if (!json_is_object(m->j)) return srv_type_refuse(m->e, m->path, "an object", m->j);
    if (!read_role(m, out, &role) || !srv_field_array(m, "tool_calls", &calls)) return false;
    bool assistant = strcmp(role, "assistant") == 0;
    if (!read_content(m, assistant && json_array_size(calls), out) || !copy_text(m, "name", out))
        return false;
    if (strcmp(role, "tool") == 0) return copy_text(m, "tool_call_id", out);
    if (!assistant) return true;
    return copy_text(m, "reasoning_content", out) && (!json_array_size(calls) || read_calls(m, calls, out));
}

bool srv_read_messages(const srv_object *body, srv_request *r)
{
    json_t *messages;
    if (!srv_field_array(body, "messages", &messages)) return false;
    size_t n = json_array_size(messages);
    if (!messages) return srv_field_refuse(body, "messages", "required, and missing");
    if (!n) return srv_field_refuse(body, "messages", "the array is empty");
    if (n > SRV_MAX_MESSAGES)
        return srv_field_refuse(body, "messages", "%zu messages, at most %d are taken", n, SRV_MAX_MESSAGES);
    json_t *out = json_array();
    bool ok = out || srv_nomem_refuse(body->e);
    for (size_t i = 0; i < n && ok; i++) {
        srv_path path;
        srv_object m = {json_array_get(messages, i), srv_path_item("messages", i, path), body->mem, body->e};
        json_t *copy = json_object();
        ok = json_array_append_new(out, copy) == 0 ? read_message(&m, copy) : srv_nomem_refuse(body->e);
    }
    ok = ok && srv_keep_json(out, body->mem, &r->chat.messages, body->e);
    json_decref(out);
    return ok;
}
