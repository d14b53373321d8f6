/* The commands of `minfer chat`: lines that begin with '/'. */
#include "cli/chat.h"

#include "common/output.h"
#include "common/term.h"

#include <stdio.h>
#include <string.h>

/* arg: what stands after the name, without the blanks between; "" for nothing. */
typedef minfer_status command_fn(cli_dialog *c, const char *arg);

typedef struct command {
    const char *name, *arg; /* arg: as help shows it; NULL: it takes none */
    const char *help;
    command_fn *run;
} command;

/* Something was asked for that cannot be done. */
static minfer_status refuse(cli_dialog *c, const minfer_error *why)
{
    app_note("%s", why->message);
    c->failed = true;
    return MINFER_OK;
}

static minfer_status clear(cli_dialog *c, const char *arg)
{
    (void)arg;
    minfer_conversation_clear(c->talk);
    cli_dialog_keep(c);
    app_note("the conversation is forgotten");
    return MINFER_OK;
}

static minfer_status regenerate(cli_dialog *c, const char *arg)
{
    (void)arg;
    return cli_dialog_answer(c, NULL, 0);
}

static minfer_status undo(cli_dialog *c, const char *arg)
{
    minfer_error why = {0};
    (void)arg;
    if (minfer_conversation_undo(c->talk, &why) != MINFER_OK) return refuse(c, &why);
    size_t n = minfer_conversation_exchanges(c->talk);
    cli_dialog_keep(c);
    app_note("the last exchange is forgotten; %zu %s left", n, n == 1 ? "is" : "are");
    return MINFER_OK;
}

static minfer_status show_system(cli_dialog *c)
{
    char *text;
    size_t n;
    mf_buf shown = {0};
    MF_TRY(minfer_conversation_get_system(c->talk, &text, &n, c->err));
    bool ok = !text || app_escape(text, n, false, &shown);
    if (ok) app_note(text ? "system message: %s" : "there is no system message%s", text ? shown.data : "");
    minfer_free(text);
    mf_buf_free(&shown);
    return ok ? MINFER_OK : MF_NOMEM(c->err);
}

static minfer_status set_system(cli_dialog *c, const char *arg)
{
    minfer_error why = {0};
    bool none = strcmp(arg, "-") == 0;
    if (!*arg) return show_system(c);
    if (minfer_conversation_set_system(c->talk, none ? NULL : arg, strlen(arg), &why) != MINFER_OK)
        return refuse(c, &why);
    cli_dialog_keep(c);
    app_note(none ? "the system message is gone" : "the system message is set");
    return MINFER_OK;
}

static minfer_status save(cli_dialog *c, const char *arg)
{
    minfer_error why = {0};
    const char *path = *arg ? arg : c->o->session;
    if (!path)
        mf_fail(&why, MINFER_ERR_ARG, "/save needs the name of a file");
    else if (cli_dialog_write(c, path, &why) == MINFER_OK) {
        app_note("saved in %s", path);
        return MINFER_OK;
    }
    return refuse(c, &why);
}

static minfer_status leave(cli_dialog *c, const char *arg)
{
    (void)arg;
    c->leave = true;
    return MINFER_OK;
}

static command_fn help;

static const command commands[] = {
    {"clear", NULL, "forget the conversation, but not the system message", clear},
    {"regen", NULL, "answer the last message once more", regenerate},
    {"undo", NULL, "forget the last message and its answer", undo},
    {"system", "[TEXT]", "set the system message (-: none); without TEXT, show it", set_system},
    {"save", "[FILE]", "write the conversation as JSON to FILE, or to that of --session", save},
    {"help", NULL, "this text", help},
    {"exit", NULL, "leave (also /quit, Ctrl-D, and Ctrl-C twice)", leave},
    {"quit", NULL, NULL, leave},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static minfer_status help(cli_dialog *c, const char *arg)
{
    (void)c;
    (void)arg;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char left[32];
        if (!commands[i].help) continue;
        snprintf(left, sizeof left, "/%s %s", commands[i].name, commands[i].arg ? commands[i].arg : "");
        fprintf(stderr, "%-16s %s\n", left, commands[i].help);
    }
    fputs(
        "A line that ends in \\ goes on in the next; text between two \"\"\" may have any number of lines.\n"
        "Ctrl-C stops an answer. To send text that begins with /, put a blank before it.\n",
        stderr);
    return MINFER_OK;
}

static const char *name_at(const void *user, size_t i)
{
    (void)user;
    return i < N_COMMANDS ? commands[i].name : NULL;
}

static minfer_status refuse_unknown(cli_dialog *c, const char *name, size_t n)
{
    char typed[40];
    minfer_error why = {0};
    snprintf(typed, sizeof typed, "%.*s", (int)n, name);
    const char *near = app_nearest(typed, name_at, NULL);
    if (near)
        mf_fail(&why, MINFER_ERR_ARG, "unknown command /%s; did you mean /%s?", typed, near);
    else
        mf_fail(&why, MINFER_ERR_ARG,
                "unknown command /%s; /help lists them, and a blank before / makes it text", typed);
    return refuse(c, &why);
}

minfer_status cli_dialog_command(cli_dialog *c, const char *line)
{
    minfer_error why = {0};
    const char *name = line + 1, *arg = name + strcspn(name, " \t");
    size_t n = (size_t)(arg - name);
    arg += strspn(arg, " \t");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const command *k = &commands[i];
        if (strlen(k->name) != n || memcmp(k->name, name, n) != 0) continue;
        if (k->arg || !*arg) return k->run(c, arg);
        mf_fail(&why, MINFER_ERR_ARG, "/%s takes no argument", k->name);
        return refuse(c, &why);
    }
    return refuse_unknown(c, name, n);
}
