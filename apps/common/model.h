/* From options to models and engines. */
#ifndef APP_COMMON_MODEL_H
#define APP_COMMON_MODEL_H

#include "common/options.h"

/* The folder of the model cache, with its default; the caller frees it with mf_free. */
minfer_status app_model_dir(const app_options *o, char **dir, minfer_error *err);

/* The path of the model that is asked for; says on stderr which one that is when it is the default. */
minfer_status app_model_path(const app_options *o, char **path, minfer_error *err);

typedef minfer_status app_open_fn(const char *path, minfer_model **out, minfer_error *err);
/* minfer_model_open with a progress bar. */
minfer_status app_model_load(const char *path, minfer_model **out, minfer_error *err);
/* Opens the model that is asked for. */
minfer_status app_model_open(const app_options *o, app_open_fn *open, minfer_model **out, minfer_error *err);

/* Refuses, before a model is loaded, devices that cannot be had, naming the option or the variable. */
minfer_status app_engine_check(const app_options *o, minfer_error *err);

/* An engine for at least `least` tokens of context: where what is asked for holds fewer, it gets `wanted`, as
 * far as the model allows. Says on stderr where the context is not as asked for, and with -v what it runs on.
 */
minfer_status app_engine_create(const app_options *o, const minfer_model *m, size_t least, size_t wanted,
                                minfer_engine **out, minfer_error *err);

#endif
