/* The environment, turned into options by their table. */
#include "common/env.h"

#include <stdlib.h>
#include <string.h>

static const char *variable(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

const char *app_env_value(const app_option *row)
{
    return row->env ? variable(row->env) : NULL;
}

minfer_status app_env_apply(app_options *o, minfer_error *err)
{
    for (size_t i = 0; i < app_option_count; i++) {
        const app_option *row = &app_option_table[i];
        const char *value = app_env_value(row);
        if (value) MF_TRY(app_value_set(row, row->env, value, o, err));
    }
    return MINFER_OK;
}

const char *app_env_origin(const char *variable_name, const char *option, const char *value)
{
    return value == variable(variable_name) ? variable_name : option; /* the very string, not an equal one */
}

const char *app_env_home(void)
{
    return variable("HOME");
}

const char *app_env_state(void)
{
    const char *dir = variable("XDG_STATE_HOME");
    return dir && dir[0] == '/' ? dir : NULL;
}

bool app_env_dumb(void)
{
    const char *term = variable("TERM");
    return !term || strcmp(term, "dumb") == 0;
}

bool app_env_plain(void)
{
    return variable("NO_COLOR") || app_env_dumb();
}
