/* Reading the command line. */
#include "common/options.h"

#include "common/env.h"

#include <stdio.h>
#include <string.h>

/* Commands of later versions, so that nobody takes them for a model. */
static const char *const later[] = {"download", "remove", "quantize", "convert", "split", "merge", "viz"};

typedef struct args {
    app_options *o;
    int n, at;
    char **v;
    minfer_error *err;
} args;

static bool row_fits(const app_option *row, app_command c)
{
    return row->name && (row->commands >> c & 1);
}

/* The row of --name (n bytes) or of -letter; NULL when the command has none. */
static const app_option *find_row(app_command c, const char *name, size_t n, char letter)
{
    for (size_t i = 0; i < app_option_count; i++) {
        const app_option *row = &app_option_table[i];
        if (!row_fits(row, c)) continue;
        if (name ? strlen(row->name) == n && memcmp(row->name, name, n) == 0
                 : row->letter && row->letter == letter)
            return row;
    }
    return NULL;
}

static const char *option_name(const void *user, size_t i)
{
    const app_command *c = user;
    if (i >= app_option_count) return NULL;
    return row_fits(&app_option_table[i], *c) ? app_option_table[i].name : "";
}

/* "run, tokenize": the commands that have the option. */
static bool list_owners(const char *name, size_t n, char letter, mf_buf *out)
{
    bool ok = mf_buf_append(out, "", 0);
    for (app_command c = 0; c < APP_N_COMMANDS && ok; c++)
        if (find_row(c, name, n, letter))
            ok = mf_buf_printf(out, "%s%s", out->len ? ", " : "", app_commands[c].name);
    return ok;
}

/* name and n: what stands after the dashes of arg, up to '='; name NULL for a short one. */
static minfer_status refuse_unknown(const args *a, const char *arg, const char *name, size_t n)
{
    app_command c = a->o->command;
    mf_buf owners = {0};
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)n, name ? name : "");
    const char *near = name ? app_nearest(typed, option_name, &c) : NULL;
    minfer_status st = MINFER_ERR_ARG;
    if (!list_owners(name, n, name || arg[2] ? 0 : arg[1], &owners))
        st = MF_NOMEM(a->err);
    else if (owners.len)
        mf_fail(a->err, st, "%.60s is not an option of %s, but of: %s", arg, app_commands[c].name,
                owners.data);
    else if (near)
        mf_fail(a->err, st, "unknown option %.60s; did you mean --%s?", arg, near);
    else
        mf_fail(a->err, st, "unknown option %.60s; `minfer %s -h` lists the options%s", arg,
                app_commands[c].name,
                app_commands[c].takes_words ? ", and text that begins with - goes after --" : "");
    mf_buf_free(&owners);
    return st;
}

/* Is this argument the name of an option, and so hardly the value of the one before? */
static bool is_option_name(const args *a, const char *arg)
{
    if (arg[0] != '-' || arg[1] == 0) return false;
    if (arg[1] == '-') return arg[2] == 0 || find_row(a->o->command, arg + 2, strlen(arg + 2), 0);
    return arg[2] == 0 && find_row(a->o->command, NULL, 0, arg[1]);
}

/* attached: the value that stands in the same argument, or NULL. */
static minfer_status take_option(args *a, const app_option *row, const char *label, const char *attached)
{
    const char *value = attached;
    if (row->kind == APP_FLAG) {
        if (attached) return mf_fail(a->err, MINFER_ERR_ARG, "%s takes no value", label);
        return app_value_set(row, label, "1", a->o, a->err);
    }
    if (!value) {
        value = a->at < a->n ? a->v[a->at] : NULL;
        if (!value) return mf_fail(a->err, MINFER_ERR_ARG, "%s needs a value: %s", label, row->value);
        if (is_option_name(a, value))
            return mf_fail(a->err, MINFER_ERR_ARG,
                           "%s needs a value, but %s follows (write %s=%s if it is meant)", label, value,
                           label, value);
        a->at++;
    }
    return app_value_set(row, label, value, a->o, a->err);
}

static minfer_status take_long(args *a, const char *arg)
{
    char label[64];
    const char *name = arg + 2, *value = strchr(name, '=');
    size_t n = value ? (size_t)(value - name) : strlen(name);
    const app_option *row = find_row(a->o->command, name, n, 0);
    if (!row) return refuse_unknown(a, arg, name, n);
    snprintf(label, sizeof label, "--%s", row->name);
    return take_option(a, row, label, value ? value + 1 : NULL);
}

/* A name of two letters may stand after one dash, too: -pl. */
static minfer_status take_short(args *a, const char *arg)
{
    const app_option *two = arg[2] && !arg[3] ? find_row(a->o->command, arg + 1, 2, 0) : NULL;
    if (two) return take_option(a, two, arg, NULL);
    char label[] = {'-', arg[1], 0};
    const app_option *row = find_row(a->o->command, NULL, 0, arg[1]);
    if (!row || (row->kind == APP_FLAG && arg[2])) return refuse_unknown(a, arg, NULL, 0);
    return take_option(a, row, label, arg[2] ? arg + 2 + (arg[2] == '=') : NULL);
}

static minfer_status take_word(args *a, const char *word)
{
    app_texts *w = &a->o->words;
    if (!mf_grow((void **)&w->v, &w->cap, w->n + 1, sizeof *w->v)) return MF_NOMEM(a->err);
    w->v[w->n++] = word;
    return MINFER_OK;
}

/* The first word is the model. */
static minfer_status place_words(app_options *o, minfer_error *err)
{
    const app_command_info *c = &app_commands[o->command];
    if (c->takes_model && o->words.n) {
        o->model = o->words.v[0];
        memmove(o->words.v, o->words.v + 1, --o->words.n * sizeof *o->words.v);
    }
    if (o->words.n && !c->takes_words)
        return mf_fail(err, MINFER_ERR_ARG, "%s: unexpected argument '%.60s'", c->name, o->words.v[0]);
    for (app_command k = 0; o->bare && o->model && k < APP_N_COMMANDS; k++)
        if (strcmp(o->model, app_commands[k].name) == 0)
            return mf_fail(err, MINFER_ERR_ARG, "the command comes first: minfer %s ...", o->model);
    return MINFER_OK;
}

static minfer_status choose_command(args *a)
{
    app_options *o = a->o;
    const char *first = a->at < a->n ? a->v[a->at] : "";
    for (app_command c = 0; c < APP_N_COMMANDS; c++)
        if (strcmp(first, app_commands[c].name) == 0) {
            o->command = c;
            a->at++;
            return MINFER_OK;
        }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(first, later[i]) == 0)
            return mf_fail(a->err, MINFER_ERR_ARG,
                           "'%s' is not in this version; `minfer -h` lists the commands", first);
    o->command = APP_RUN;
    o->bare = true;
    return MINFER_OK;
}

/* --cnv decides which options there are, so it is looked for before they are read. */
static void prefer_chat(args *a)
{
    for (int i = a->at; i < a->n && a->o->command == APP_RUN && strcmp(a->v[i], "--") != 0; i++)
        if (strcmp(a->v[i], "--cnv") == 0) a->o->command = APP_CHAT;
}

static minfer_status read_args(args *a)
{
    app_options *o = a->o;
    bool ended = false;
    while (a->at < a->n) {
        const char *arg = a->v[a->at++];
        if (ended || arg[0] != '-' || arg[1] == 0)
            MF_TRY(take_word(a, arg));
        else if (strcmp(arg, "--") == 0)
            ended = true;
        else if (arg[1] == '-')
            MF_TRY(take_long(a, arg));
        else
            MF_TRY(take_short(a, arg));
        if (o->help || o->version) {
            o->global = o->bare && o->words.n == 0;
            return MINFER_OK;
        }
    }
    return place_words(o, a->err);
}

minfer_status app_options_parse(app_options *o, int argc, char **argv, minfer_error *err)
{
    args a = {.o = o, .n = argc, .at = 1, .v = argv, .err = err};
    minfer_error env = {0};
    app_options_init(o);
    minfer_status bad = app_env_apply(o, &env);
    MF_TRY(choose_command(&a));
    prefer_chat(&a);
    MF_TRY(read_args(&a));
    if (bad == MINFER_OK || o->help || o->version || o->command == APP_ENV) return MINFER_OK;
    return mf_fail(err, bad, "%s", env.message);
}
