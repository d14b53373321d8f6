/* `chat --session FILE`: the conversation as JSON in FILE, keys and values of what it renders to in FILE.kv.
 * The first is written after every change; the second, which may be large, when the program ends. If it is
 * behind or missing, nothing is lost but the time to evaluate the messages again. */
#include "cli/chat.h"

#include "common/output.h"
#include "common/prompt.h"
#include "common/term.h"

#include "base/filemap.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool exists(const char *path)
{
    return access(path, F_OK) == 0 || errno != ENOENT;
}

static minfer_status check_writable(const char *path, minfer_error *err)
{
    app_file f;
    minfer_status st = app_file_create(&f, path, err);
    app_file_close(&f, false, NULL);
    return st;
}

minfer_status cli_dialog_read(cli_dialog *c, minfer_error *err)
{
    const char *path = c->o->session;
    char *text;
    size_t n;
    if (!path) return MINFER_OK;
    c->unsaved = !exists(path) || c->o->system;
    if (exists(path)) {
        MF_TRY(mf_file_read(path, APP_MAX_TEXT, &text, &n, err));
        c->history = (mf_buf){.data = text, .len = n, .cap = n + 1};
        minfer_status st = minfer_conversation_check_json(text, n, err);
        if (st != MINFER_OK) return mf_fail_prefix(err, st, "%s", path);
        c->resumed = true;
    }
    return check_writable(path, err);
}

static char *cache_path(const cli_dialog *c)
{
    mf_buf b = {0};
    if (mf_buf_printf(&b, "%s.kv", c->o->session)) return b.data;
    mf_buf_free(&b);
    return NULL;
}

static void resume_cache(cli_dialog *c, const char *path)
{
    minfer_error why = {0};
    size_t n = 0;
    if (!exists(path))
        app_note("there is no %s: the messages will be evaluated again", path);
    else if (minfer_conversation_restore_cache(c->talk, path, &n, &why) != MINFER_OK)
        app_note("%s; the messages will be evaluated again", why.message);
    else if (c->o->verbose)
        app_note("%zu tokens are resumed from %s", n, path);
}

minfer_status cli_dialog_resume(cli_dialog *c)
{
    if (!c->resumed) return MINFER_OK;
    MF_TRY(minfer_conversation_set_json(c->talk, c->history.data, c->history.len, c->err));
    mf_buf_free(&c->history);
    size_t n = minfer_conversation_exchanges(c->talk);
    char *path = cache_path(c);
    if (!path) return MF_NOMEM(c->err);
    app_note("%s: %zu exchange%s so far", c->o->session, n, n == 1 ? "" : "s");
    if (n) resume_cache(c, path);
    mf_free(path);
    return MINFER_OK;
}

minfer_status cli_dialog_write(const cli_dialog *c, const char *path, minfer_error *err)
{
    app_file f;
    char *json;
    size_t n;
    MF_TRY(minfer_conversation_get_json(c->talk, &json, &n, err));
    minfer_status st = app_file_create(&f, path, err);
    if (st == MINFER_OK) st = app_file_write(&f, json, n, err);
    minfer_status closed = app_file_close(&f, st == MINFER_OK, st == MINFER_OK ? err : NULL);
    minfer_free(json);
    return st == MINFER_OK ? closed : st;
}

void cli_dialog_keep(cli_dialog *c)
{
    minfer_error why = {0};
    if (!c->o->session) return;
    c->unsaved = cli_dialog_write(c, c->o->session, &why) != MINFER_OK;
    if (c->unsaved) app_note("the conversation is not saved: %s", why.message);
}

minfer_status cli_dialog_close(cli_dialog *c)
{
    if (!c->o->session || !c->talk) return MINFER_OK;
    if (c->unsaved) MF_TRY(cli_dialog_write(c, c->o->session, c->err));
    char *path = cache_path(c);
    minfer_status st = path ? minfer_conversation_save_cache(c->talk, path, c->err) : MF_NOMEM(c->err);
    mf_free(path);
    return st;
}
