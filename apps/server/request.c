/* Bodies of requests as values: which endpoint takes which fields. */
#include "server/request_read.h"

#include <string.h>

bool srv_model_fits(const srv_context *c, const char *name, srv_error *e)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i], name) == 0) return true;
    return srv_refuse(e, 404, "model_not_found", "model", "model: '%.200s' is not served here, '%s' is", name,
                      c->models[0]);
}

static bool read_model(const srv_object *body, const srv_context *c, srv_request *r)
{
    if (!srv_field_text(body, "model", &r->model, NULL)) return false;
    return !r->model || !c->n_models || srv_model_fits(c, r->model, body->e);
}

/* ---- fields of making text */

static bool read_one_stop(const srv_object *body, const json_t *j, const char *path, const char **stop)
{
    if (!srv_keep_text(j, path, body->mem, stop, NULL, body->e)) return false;
    size_t n = strlen(*stop);
    if (n >= 1 && n <= SRV_MAX_STOP_BYTES) return true;
    return srv_refuse(body->e, 400, NULL, path, "%s has %zu bytes, expected 1 to %d", path, n,
                      SRV_MAX_STOP_BYTES);
}

static bool read_stop(const srv_object *body, srv_request *r)
{
    const json_t *j = srv_field(body, "stop");
    srv_path path;
    if (!j) return true;
    if (!json_is_string(j) && !json_is_array(j))
        return srv_type_refuse(body->e, "stop", "a string or an array of strings", j);
    size_t n = json_is_array(j) ? json_array_size(j) : 1;
    if (n > SRV_MAX_STOPS)
        return srv_field_refuse(body, "stop", "%zu strings, at most %d are taken", n, SRV_MAX_STOPS);
    r->stop = srv_keep_array(body->mem, n, sizeof *r->stop, body->e);
    if (!r->stop) return false;
    if (json_is_string(j)) return read_one_stop(body, j, "stop", &r->stop[r->n_stop++]);
    for (size_t i = 0; i < n; i++)
        if (!read_one_stop(body, json_array_get(j, i), srv_path_item("stop", i, path), &r->stop[r->n_stop++]))
            return false;
    return true;
}

/* The newer name wins. More than any context holds is as good as no limit. */
static bool read_max_tokens(const srv_object *body, srv_request *r)
{
    int64_t v = -1;
    if (!srv_field_int(body, "max_tokens", -1, INT64_MAX, &v)) return false;
    if (r->endpoint == SRV_CHAT && !srv_field_int(body, "max_completion_tokens", -1, INT64_MAX, &v))
        return false;
    r->max_tokens = v > INT32_MAX ? INT32_MAX : (int32_t)v;
    return true;
}

static bool read_stream(const srv_object *body, srv_request *r)
{
    srv_path path;
    srv_object options;
    if (!srv_field_bool(body, "stream", &r->stream)) return false;
    if (!srv_field_object(body, "stream_options", path, &options)) return false;
    return !options.j || srv_field_bool(&options, "include_usage", &r->include_usage);
}

/* Chat: a switch and a count; completions: a count. */
static bool read_logprobs(const srv_object *body, srv_request *r)
{
    int64_t v = -1;
    if (r->endpoint == SRV_COMPLETIONS) {
        if (!srv_field_int(body, "logprobs", 0, SRV_MAX_TOP_LOGPROBS, &v)) return false;
        r->logprobs = v >= 0;
    } else {
        if (!srv_field_bool(body, "logprobs", &r->logprobs) ||
            !srv_field_int(body, "top_logprobs", 0, SRV_MAX_TOP_LOGPROBS, &v))
            return false;
        if (v > 0 && !r->logprobs)
            return srv_field_refuse(body, "top_logprobs", "is %d, but logprobs is not true", (int)v);
    }
    r->n_logprobs = v > 0 ? (int32_t)v : 0;
    return true;
}

static bool read_n(const srv_object *body, const srv_context *c, srv_request *r)
{
    int64_t v = 1, best = 1;
    int32_t most = c->max_n ? c->max_n : SRV_MAX_CHOICES;
    size_t prompts = r->endpoint == SRV_COMPLETIONS ? r->n_prompts : 1;
    if (!srv_field_int(body, "n", 1, most, &v)) return false;
    if ((size_t)v * prompts > SRV_MAX_CHOICES)
        return srv_field_refuse(body, "n", "%d for each of %zu prompts, at most %d choices are made", (int)v,
                                prompts, SRV_MAX_CHOICES);
    r->n = (int32_t)v;
    if (r->endpoint == SRV_CHAT) return true;
    if (!srv_field_int(body, "best_of", 1, INT32_MAX, &best)) return false;
    return best == 1 || best == v || srv_field_refuse(body, "best_of", "is not supported, other than as n");
}

static bool set_constraint(const srv_object *body, srv_request *r, srv_constraint kind)
{
    if (r->constraint != SRV_FREE)
        return srv_field_refuse(body, "grammar", "cannot be given together with response_format");
    r->constraint = kind;
    return true;
}

static bool read_schema(const srv_object *format, srv_request *r)
{
    srv_path path, schema_path;
    srv_object o;
    if (!srv_field_object(format, "json_schema", path, &o)) return false;
    if (!o.j) return srv_field_refuse(format, "json_schema", "required, and missing");
    const json_t *schema = srv_field(&o, "schema");
    if (!schema) return srv_field_refuse(&o, "schema", "required, and missing");
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return srv_type_refuse(o.e, srv_path_of(&o, "schema", schema_path), "an object", schema);
    return srv_keep_json(schema, o.mem, &r->grammar, o.e);
}

static bool read_format(const srv_object *body, srv_request *r)
{
    static const char any_object[] = "{\"type\":\"object\"}";
    srv_path path;
    srv_object format;
    if (!srv_field_object(body, "response_format", path, &format)) return false;
    if (!format.j) return true;
    const char *type = json_string_value(srv_field(&format, "type"));
    if (!type) return srv_field_refuse(&format, "type", "expected a string");
    if (strcmp(type, "text") == 0) return true;
    if (strcmp(type, "json_object") == 0)
        r->grammar = any_object;
    else if (strcmp(type, "json_schema") != 0)
        return srv_field_refuse(&format, "type", "'%.60s' is not one of text, json_object, json_schema",
                                type);
    else if (!read_schema(&format, r))
        return false;
    r->n_grammar = strlen(r->grammar);
    return set_constraint(body, r, SRV_SCHEMA);
}

static bool read_constraint(const srv_object *body, srv_request *r)
{
    const char *text = NULL;
    size_t n = 0;
    if (!read_format(body, r) || !srv_field_text(body, "grammar", &text, &n)) return false;
    if (!text) return true;
    if (!set_constraint(body, r, SRV_GBNF)) return false;
    r->grammar = text;
    r->n_grammar = n;
    return true;
}

static bool read_making(const srv_object *body, const srv_context *c, srv_request *r)
{
    return srv_read_sampling(body, c, r) && read_max_tokens(body, r) && read_n(body, c, r) &&
           read_stop(body, r) && srv_field_bool(body, "ignore_eos", &r->ignore_end) && read_stream(body, r) &&
           read_logprobs(body, r) && read_constraint(body, r);
}

/* ---- endpoints */

static bool read_kwargs(const srv_object *body, srv_request *r)
{
    srv_path path;
    srv_object kwargs;
    if (!srv_field_object(body, "chat_template_kwargs", path, &kwargs)) return false;
    return !kwargs.j || srv_keep_json(kwargs.j, body->mem, &r->chat.kwargs, body->e);
}

static bool read_reasoning(const srv_object *body, srv_request *r)
{
    const char *word = "auto";
    if (!srv_field_text(body, "reasoning_format", &word, NULL)) return false;
    r->reasoning = strcmp(word, "auto") == 0;
    if (r->reasoning || strcmp(word, "none") == 0) return true;
    return srv_field_refuse(body, "reasoning_format", "'%.60s' is not one of auto, none", word);
}

static bool read_chat(const srv_object *body, const srv_context *c, srv_request *r)
{
    r->chat.add_generation_prompt = true;
    if (!srv_read_messages(body, r) || !srv_read_tools(body, r) || !read_kwargs(body, r) ||
        !read_reasoning(body, r) || !read_making(body, c, r))
        return false;
    if (r->constraint != SRV_FREE && r->tool_choice == SRV_TOOLS_FORCED)
        return srv_field_refuse(body, "tool_choice", "forces a call, which %s forbids",
                                r->constraint == SRV_GBNF ? "grammar" : "response_format");
    return true;
}

static bool read_completions(const srv_object *body, const srv_context *c, srv_request *r)
{
    const char *suffix = "";
    if (!srv_field_text(body, "suffix", &suffix, NULL)) return false;
    if (*suffix) return srv_field_refuse(body, "suffix", "is not supported");
    return srv_read_prompts(body, "prompt", c, SRV_MAX_CHOICES, r) &&
           srv_field_bool(body, "echo", &r->echo) && read_making(body, c, r);
}

static bool read_embeddings(const srv_object *body, const srv_context *c, srv_request *r)
{
    const char *format = "float";
    int64_t dimensions = c->n_embd;
    if (!srv_read_prompts(body, "input", c, SRV_MAX_INPUTS, r) ||
        !srv_field_text(body, "encoding_format", &format, NULL) ||
        !srv_field_int(body, "dimensions", 1, INT32_MAX, &dimensions))
        return false;
    if (c->n_embd && dimensions != c->n_embd)
        return srv_field_refuse(body, "dimensions", "is %d, the model's vectors have %d", (int)dimensions,
                                c->n_embd);
    r->base64 = strcmp(format, "base64") == 0;
    if (r->base64 || strcmp(format, "float") == 0) return true;
    return srv_field_refuse(body, "encoding_format", "'%.60s' is not one of float, base64", format);
}

static bool read_tokenize(const srv_object *body, srv_request *r)
{
    r->prompts = srv_keep_array(body->mem, 1, sizeof *r->prompts, body->e);
    r->n_prompts = 1;
    return r->prompts &&
           (srv_field(body, "content") || srv_field_refuse(body, "content", "required, and missing")) &&
           srv_field_text(body, "content", &r->prompts->text, &r->prompts->n_text) &&
           srv_field_bool(body, "add_special", &r->add_special) &&
           srv_field_bool(body, "parse_special", &r->parse_special) &&
           srv_field_bool(body, "with_pieces", &r->with_pieces);
}

static bool read_detokenize(const srv_object *body, const srv_context *c, srv_request *r)
{
    json_t *ids;
    r->special = true;
    if (!srv_field_array(body, "tokens", &ids)) return false;
    if (!ids) return srv_field_refuse(body, "tokens", "required, and missing");
    return srv_read_ids(body, ids, "tokens", c, &r->ids, &r->n_ids) &&
           srv_field_bool(body, "special", &r->special);
}

static bool read_body(const srv_object *body, const srv_context *c, srv_request *r)
{
    if (!read_model(body, c, r)) return false;
    switch (r->endpoint) {
    case SRV_CHAT: return read_chat(body, c, r);
    case SRV_COMPLETIONS: return read_completions(body, c, r);
    case SRV_EMBEDDINGS: return read_embeddings(body, c, r);
    case SRV_TOKENIZE: return read_tokenize(body, r);
    case SRV_DETOKENIZE: return read_detokenize(body, c, r);
    }
    return false;
}

bool srv_request_parse(srv_endpoint endpoint, const char *body, size_t n, const srv_context *c,
                       srv_request *r, srv_error *e)
{
    *r = (srv_request){.endpoint = endpoint};
    *e = (srv_error){0};
    json_t *j = srv_json_read(body, n, true, e);
    if (!j) return false;
    const srv_object o = {j, "", &r->mem, e};
    bool ok = read_body(&o, c, r);
    json_decref(j);
    if (!ok) srv_request_free(r);
    return ok;
}

void srv_request_free(srv_request *r)
{
    mf_arena_free(&r->mem);
    *r = (srv_request){0};
}
