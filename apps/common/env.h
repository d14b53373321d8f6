/* The environment: the only place that reads it. */
#ifndef APP_COMMON_ENV_H
#define APP_COMMON_ENV_H

#include "common/options.h"

/* The value of row's variable; NULL when it is not set or empty. */
const char *app_env_value(const app_option *row);

/* Sets the fields of all rows that have a variable. */
minfer_status app_env_apply(app_options *o, minfer_error *err);

/* Where the value of a text option came from, as refusals name it: its variable, or --name. */
const char *app_env_origin(const char *variable, const char *option, const char *value);

/* $HOME; NULL when it is not set or empty. */
const char *app_env_home(void);

/* The folder for what programs keep of their use: $XDG_STATE_HOME if it is a full path; NULL when not. */
const char *app_env_state(void);

/* Is the terminal one that cannot move its cursor (TERM is dumb or not set)? */
bool app_env_dumb(void);

/* Does the environment speak against colours and cursor movements? NO_COLOR (no-color.org), TERM=dumb. */
bool app_env_plain(void);

#endif
