/* Prompts: from what the user gave to token ids. */
#include "common/prompt.h"

#include "common/json.h"
#include "common/term.h"

#include "base/filemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool app_words(const app_options *o, mf_buf *out)
{
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0; i < o->words.n && ok; i++)
        ok = (i == 0 || mf_buf_char(out, ' ')) && mf_buf_str(out, o->words.v[i]);
    return ok;
}

static minfer_status read_pipe(mf_buf *out, minfer_error *err)
{
    char *data;
    size_t n;
    MF_TRY(mf_file_read("-", APP_MAX_TEXT, &data, &n, err));
    if (n > 0 && data[n - 1] == '\n') n--;
    bool ok = mf_buf_append(out, data, n);
    mf_free(data);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status read_line(mf_buf *out, minfer_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    fputs("> ", stderr);
    fflush(stderr);
    ssize_t n = getline(&line, &cap, stdin);
    if (n > 0 && line[n - 1] == '\n') n--;
    bool ok = n <= 0 || mf_buf_append(out, line, (size_t)n);
    free(line);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

minfer_status app_prompt_text(const app_options *o, mf_buf *out, minfer_error *err)
{
    if (!mf_buf_str(out, o->prompt ? o->prompt : "") || !app_words(o, out)) return MF_NOMEM(err);
    if (!o->prompt && !o->words.n)
        MF_TRY(app_is_terminal(STDIN_FILENO) ? read_line(out, err) : read_pipe(out, err));
    return out->len ? MINFER_OK : mf_fail(err, MINFER_ERR_ARG, "the prompt is empty");
}

static bool add_message(json_t *list, const char *role, const char *text, size_t n)
{
    json_t *m = json_object();
    bool ok = m && json_object_set_new(m, "role", json_string(role)) == 0 &&
              json_object_set_new(m, "content", app_json_text(text, n)) == 0 &&
              json_array_append(list, m) == 0;
    json_decref(m);
    return ok;
}

/* For mf_free; NULL: out of memory. */
static char *messages_of(const app_options *o, const mf_buf *text)
{
    json_t *list = json_array();
    bool ok = list && (!o->system || add_message(list, "system", o->system, strlen(o->system))) &&
              add_message(list, "user", text->data, text->len);
    char *dump = ok ? mf_json_text(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return dump;
}

minfer_status app_prompt_ids(const app_options *o, const minfer_model *m, const mf_buf *text, int32_t **ids,
                             size_t *n, minfer_error *err)
{
    minfer_model_info info;
    if (o->no_template) return minfer_tokenize(m, text->data, text->len, MINFER_TOKENIZE_BOS, ids, n, err);
    minfer_model_get_info(m, &info);
    if (!info.has_template) app_note("the model has no chat template; ChatML is used (--no-template: none)");
    char *messages = messages_of(o, text);
    if (!messages) return MF_NOMEM(err);
    minfer_chat chat = {.messages = messages, .add_generation_prompt = true};
    minfer_status st = minfer_chat_tokenize(m, &chat, ids, n, err);
    mf_free(messages);
    return st;
}

minfer_status app_text_ids(const app_options *o, const minfer_model *m, const char *text, const char *file,
                           int32_t **ids, size_t *n, minfer_error *err)
{
    char *data = NULL;
    size_t size = text ? strlen(text) : 0;
    unsigned flags = MINFER_TOKENIZE_BOS | (o->special ? MINFER_TOKENIZE_SPECIAL : 0u);
    if (!text) MF_TRY(mf_file_read(file, APP_MAX_TEXT, &data, &size, err));
    minfer_status st = minfer_tokenize(m, text ? text : data, size, flags, ids, n, err);
    mf_free(data);
    if (st != MINFER_OK) return st;
    return *n ? MINFER_OK : mf_fail(err, MINFER_ERR_ARG, "the text has no tokens");
}
