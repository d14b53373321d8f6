/* Prompts of completions and inputs of embeddings: a text, ids, or a list of texts or of lists of ids. */
#include "server/request_read.h"

#include "base/utf8.h"

bool srv_read_ids(const srv_object *body, const json_t *j, const char *path, const srv_context *c,
                  const int32_t **ids, size_t *n)
{
    size_t count = json_array_size(j);
    int32_t *list = srv_keep_array(body->mem, count, sizeof *list, body->e);
    if (!list) return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(j, i);
        int64_t v, high = c->n_vocab ? c->n_vocab - 1 : INT32_MAX;
        srv_path at;
        if (!srv_json_int(item, &v) || v < 0 || v > high) {
            char expected[60];
            snprintf(expected, sizeof expected, "a token id from 0 to %lld", (long long)high);
            return srv_type_refuse(body->e, srv_path_item(path, i, at), expected, item);
        }
        list[i] = (int32_t)v;
    }
    *ids = list;
    *n = count;
    return true;
}

static bool read_prompt(const srv_object *body, const json_t *j, const char *path, const srv_context *c,
                        srv_prompt *p)
{
    if (json_is_string(j)) return srv_keep_text(j, path, body->mem, &p->text, &p->n_text, body->e);
    if (!json_is_array(j)) return srv_type_refuse(body->e, path, "a string or an array of token ids", j);
    if (json_array_size(j) == 0)
        return srv_refuse(body->e, 400, NULL, path, "%s is an empty array, expected token ids", path);
    return srv_read_ids(body, j, path, c, &p->ids, &p->n_ids);
}

/* A list of prompts; its elements are all texts or all lists. */
static bool read_list(const srv_object *body, const json_t *j, const char *name, const srv_context *c,
                      srv_request *r)
{
    for (size_t i = 0; i < r->n_prompts; i++) {
        const json_t *item = json_array_get(j, i);
        srv_path path;
        srv_path_item(name, i, path);
        if (json_typeof(item) != json_typeof(json_array_get(j, 0)))
            return srv_type_refuse(body->e, path, "an element like the first one", item);
        if (!read_prompt(body, item, path, c, &r->prompts[i])) return false;
    }
    return true;
}

bool srv_read_prompts(const srv_object *body, const char *name, const srv_context *c, size_t limit,
                      srv_request *r)
{
    const json_t *j = srv_field(body, name);
    if (!j) return srv_field_refuse(body, name, "required, and missing");
    const json_t *first = json_array_get(j, 0);
    bool list = json_is_array(j) && !json_is_number(first);
    if (json_is_array(j) && !first) return srv_field_refuse(body, name, "the array is empty");
    r->n_prompts = list ? json_array_size(j) : 1;
    if (r->n_prompts > limit)
        return srv_field_refuse(body, name, "%zu elements, at most %zu are taken", r->n_prompts, limit);
    r->prompts = srv_keep_array(body->mem, r->n_prompts, sizeof *r->prompts, body->e);
    if (!r->prompts) return false;
    return list ? read_list(body, j, name, c, r) : read_prompt(body, j, name, c, r->prompts);
}
