/* `minfer template`: a chat prompt, rendered. */
#include "cli/commands.h"

#include "common/json.h"
#include "common/model.h"
#include "common/output.h"

#include "base/filemap.h"

#include <string.h>
#include <strings.h>

static minfer_status check(const app_options *o, minfer_error *err)
{
    return o->messages ? MINFER_OK : mf_fail(err, MINFER_ERR_ARG, "template needs --messages FILE");
}

/* The parts of a messages file as texts of their own; free_input gives them back. */
typedef struct input {
    json_t *root;
    char *messages, *tools, *kwargs, *special_tokens;
    bool add_generation_prompt;
} input;

static void free_input(input *in)
{
    json_decref(in->root);
    mf_free(in->messages);
    mf_free(in->tools);
    mf_free(in->kwargs);
    mf_free(in->special_tokens);
}

/* *text stays NULL for a member that is absent or null. */
static minfer_status member(const input *in, const char *path, const char *name, json_type type, char **text,
                            minfer_error *err)
{
    const json_t *j = json_object_get(in->root, name);
    if (!j || json_is_null(j)) return MINFER_OK;
    if (json_typeof(j) != type)
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: '%s' is not an %s", path, name,
                       type == JSON_ARRAY ? "array" : "object");
    *text = mf_json_text(j, JSON_COMPACT);
    return *text ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status read_object(input *in, const char *path, minfer_error *err)
{
    const json_t *add = json_object_get(in->root, "add_generation_prompt");
    if (add && !json_is_boolean(add) && !json_is_null(add))
        return mf_fail(err, MINFER_ERR_FORMAT, "%s: 'add_generation_prompt' is not true or false", path);
    in->add_generation_prompt = json_is_true(add);
    MF_TRY(member(in, path, "messages", JSON_ARRAY, &in->messages, err));
    MF_TRY(member(in, path, "tools", JSON_ARRAY, &in->tools, err));
    MF_TRY(member(in, path, "kwargs", JSON_OBJECT, &in->kwargs, err));
    MF_TRY(member(in, path, "special_tokens", JSON_OBJECT, &in->special_tokens, err));
    return in->messages ? MINFER_OK : mf_fail(err, MINFER_ERR_FORMAT, "%s: there are no 'messages'", path);
}

static minfer_status read_input(input *in, const char *path, minfer_error *err)
{
    const char *name = strcmp(path, "-") ? path : "stdin";
    *in = (input){0};
    MF_TRY(app_json_read(path, &in->root, err));
    if (json_is_object(in->root)) return read_object(in, name, err);
    in->messages = mf_json_text(in->root, JSON_COMPACT);
    return in->messages ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status render_with_model(const char *path, const minfer_chat *chat, char **text, size_t *n,
                                       minfer_error *err)
{
    minfer_model *m;
    MF_TRY(minfer_model_open_vocab(path, &m, err));
    minfer_status st = minfer_chat_render(m, chat, text, n, err);
    minfer_model_free(m);
    return st;
}

enum { MAX_TEMPLATE = 1 << 24 };

static minfer_status render_with_file(const char *path, const minfer_chat *chat, char **text, size_t *n,
                                      minfer_error *err)
{
    char *source;
    size_t source_n;
    MF_TRY(mf_file_read(path, MAX_TEMPLATE, &source, &source_n, err));
    minfer_status st = minfer_template_render(source, source_n, chat, text, n, err);
    mf_free(source);
    return st == MINFER_OK ? st : mf_fail_prefix(err, st, "%s", path);
}

/* A template goes by its name: FILE.jinja (or .jinja2, .j2). Everything else is a model. */
static bool is_template(const char *name)
{
    const char *end = name ? strrchr(name, '.') : NULL;
    return end && (!strcasecmp(end, ".jinja") || !strcasecmp(end, ".jinja2") || !strcasecmp(end, ".j2"));
}

static minfer_status render(const app_options *o, const minfer_chat *chat, char **text, size_t *n,
                            minfer_error *err)
{
    char *path;
    if (is_template(o->model)) return render_with_file(o->model, chat, text, n, err);
    MF_TRY(app_model_path(o, &path, err));
    minfer_status st = render_with_model(path, chat, text, n, err);
    mf_free(path);
    return st;
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    input in;
    char *text = NULL;
    size_t n = 0;
    minfer_status st = read_input(&in, o->messages, err);
    if (st == MINFER_OK) {
        minfer_chat chat = {.messages = in.messages,
                            .tools = in.tools,
                            .kwargs = in.kwargs,
                            .special_tokens = in.special_tokens,
                            .add_generation_prompt = in.add_generation_prompt};
        st = render(o, &chat, &text, &n, err);
    }
    if (st == MINFER_OK) st = app_out(text, n, err);
    minfer_free(text);
    free_input(&in);
    return st;
}

const app_program cli_template = {check, run};
