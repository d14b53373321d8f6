/* `minfer env`: the environment variables, their values and their meaning. */
#include "cli/commands.h"

#include "common/env.h"
#include "common/output.h"

#include <string.h>

/* The row whose variable comes next after `last` in the order of names; NULL after all. */
static const app_option *next_variable(const char *last)
{
    const app_option *best = NULL;
    for (size_t i = 0; i < app_option_count; i++) {
        const app_option *row = &app_option_table[i];
        if (row->env && strcmp(row->env, last) > 0 && (!best || strcmp(row->env, best->env) < 0)) best = row;
    }
    return best;
}

/* NAME=VALUE, then default and meaning below it. */
static minfer_status describe(const app_option *row, mf_buf *out, minfer_error *err)
{
    app_options o;
    mf_buf standard = {0};
    minfer_error why = {0};
    const char *value = app_env_value(row);
    app_options_init(&o);
    bool ok = row->standard ? mf_buf_str(&standard, row->standard) : app_value_show(row, &o, &standard);
    if (value) app_value_set(row, row->env, value, &o, &why);
    ok = ok && mf_buf_str(out, row->env) && mf_buf_char(out, '=') &&
         app_escape(value ? value : "", value ? strlen(value) : 0, false, out) &&
         mf_buf_printf(out, "\n    %s%s\n    default: %s", row->unused ? "(not used in this version) " : "",
                       row->help, standard.data ? standard.data : "");
    if (row->name) ok = ok && mf_buf_printf(out, "; the same as --%s", row->name);
    if (why.code) ok = ok && mf_buf_printf(out, "\n    refused: %s", why.message);
    ok = ok && mf_buf_char(out, '\n');
    mf_buf_free(&standard);
    app_options_free(&o);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    mf_buf out = {0};
    minfer_status st = MINFER_OK;
    (void)o;
    for (const app_option *row = next_variable(""); row && st == MINFER_OK; row = next_variable(row->env))
        st = describe(row, &out, err);
    if (st == MINFER_OK) return app_out_buf(&out, true, err);
    mf_buf_free(&out);
    return st;
}

const app_program cli_env = {NULL, run};
