/* Tools of a chat: which there are, and which may or must be called. */
#include "server/request_read.h"

#include <string.h>

enum { MAX_NAME = 256 };

/* A function without parameters takes an empty object. */
static const char no_parameters[] = "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";

static bool known(const srv_request *r, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(r->tools[i].name, name) == 0) return true;
    return false;
}

static bool read_function(const srv_object *f, srv_tool *tool)
{
    srv_path path;
    srv_object parameters;
    if (!srv_field_text(f, "name", &tool->name, NULL) || !srv_field_bool(f, "strict", &tool->strict) ||
        !srv_field_object(f, "parameters", path, &parameters))
        return false;
    size_t n = tool->name ? strlen(tool->name) : 0;
    if (!n || n > MAX_NAME)
        return srv_field_refuse(f, "name", "expected a string of 1 to %d bytes", MAX_NAME);
    tool->parameters = no_parameters;
    if (!json_object_size(parameters.j)) return true;
    const char *type = json_string_value(srv_field(&parameters, "type"));
    if (type && strcmp(type, "object") != 0)
        return srv_field_refuse(&parameters, "type", "'%.60s' is not 'object'", type);
    return srv_keep_json(parameters.j, f->mem, &tool->parameters, f->e);
}

static bool read_tool(const srv_object *tool, srv_request *r, size_t i)
{
    srv_path path;
    srv_object function;
    if (!json_is_object(tool->j)) return srv_type_refuse(tool->e, tool->path, "an object", tool->j);
    const json_t *type = srv_field(tool, "type");
    if (type && (!json_is_string(type) || strcmp(json_string_value(type), "function") != 0))
        return srv_field_refuse(tool, "type", "expected 'function'");
    if (!srv_field_object(tool, "function", path, &function)) return false;
    if (!function.j) return srv_field_refuse(tool, "function", "required, and missing");
    r->tools[i].index = i;
    if (!read_function(&function, &r->tools[i])) return false;
    if (known(r, i, r->tools[i].name))
        return srv_field_refuse(&function, "name", "'%.60s' is there twice", r->tools[i].name);
    return true;
}

static bool read_list(const srv_object *body, const json_t *tools, srv_request *r)
{
    size_t n = json_array_size(tools);
    if (n > SRV_MAX_TOOLS)
        return srv_field_refuse(body, "tools", "%zu tools, at most %d are taken", n, SRV_MAX_TOOLS);
    r->tools = srv_keep_array(body->mem, n, sizeof *r->tools, body->e);
    if (!r->tools) return false;
    for (size_t i = 0; i < n; i++) {
        srv_path path;
        srv_object tool = {json_array_get(tools, i), srv_path_item("tools", i, path), body->mem, body->e};
        if (!read_tool(&tool, r, i)) return false;
    }
    r->n_tools = n;
    return n == 0 || srv_keep_json(tools, body->mem, &r->chat.tools, body->e);
}

/* {"type":"function","function":{"name":"..."}} */
static bool choose_one(const srv_object *choice, srv_request *r)
{
    srv_path path;
    srv_object function;
    const char *type = json_string_value(srv_field(choice, "type")), *name = NULL;
    if (!type || strcmp(type, "function") != 0)
        return srv_field_refuse(choice, "type", "expected 'function'");
    if (!srv_field_object(choice, "function", path, &function)) return false;
    if (!function.j) return srv_field_refuse(choice, "function", "required, and missing");
    if (!srv_field_text(&function, "name", &name, NULL)) return false;
    if (!name) return srv_field_refuse(&function, "name", "required, and missing");
    r->tool_choice = SRV_TOOLS_FORCED;
    for (size_t i = 0; i < r->n_tools; i++) {
        if (strcmp(r->tools[i].name, name) != 0) continue;
        r->tools += i;
        r->n_tools = 1;
        return true;
    }
    return srv_field_refuse(&function, "name", "'%.60s' is none of the tools", name);
}

static bool choose(const srv_object *body, srv_request *r)
{
    static const char *const words[] = {"none", "auto", "required"};
    json_t *j = srv_field(body, "tool_choice");
    srv_path path;
    r->tool_choice = r->n_tools ? SRV_TOOLS_AUTO : SRV_TOOLS_NONE;
    if (!j) return true;
    srv_object choice = {j, srv_path_of(body, "tool_choice", path), body->mem, body->e};
    if (json_is_object(j)) return choose_one(&choice, r);
    const char *word = json_string_value(j);
    if (!word) return srv_type_refuse(body->e, path, "a string or an object", j);
    for (int i = 0; i < 3; i++) {
        if (strcmp(words[i], word) != 0) continue;
        if (i == SRV_TOOLS_FORCED && !r->n_tools)
            return srv_field_refuse(body, "tool_choice", "'required' without tools");
        if (r->n_tools) r->tool_choice = (srv_tool_choice)i;
        return true;
    }
    return srv_field_refuse(body, "tool_choice", "'%.60s' is not one of none, auto, required", word);
}

bool srv_read_tools(const srv_object *body, srv_request *r)
{
    json_t *tools;
    r->parallel_tool_calls = true;
    if (!srv_field_array(body, "tools", &tools) || (tools && !read_list(body, tools, r))) return false;
    if (!choose(body, r) || !srv_field_bool(body, "parallel_tool_calls", &r->parallel_tool_calls))
        return false;
    if (r->tool_choice == SRV_TOOLS_NONE) {
        r->chat.tools = NULL;
        r->n_tools = 0;
    }
    return true;
}
