/* From options to models and engines. */
#include "common/model.h"

#include "common/env.h"
#include "common/term.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

minfer_status app_model_dir(const app_options *o, char **dir, minfer_error *err)
{
    mf_buf b = {0};
    const char *home = app_env_home();
    *dir = NULL;
    if (!o->model_dir && !home)
        return mf_fail(err, MINFER_ERR_ARG,
                       "no folder for cached models: neither MINFER_MODEL_DIR nor HOME is set");
    bool ok = o->model_dir ? mf_buf_str(&b, o->model_dir)
                           : mf_buf_printf(&b, "%s/.cache/minfer/models", home);
    if (!ok) {
        mf_buf_free(&b);
        return MF_NOMEM(err);
    }
    *dir = b.data;
    return MINFER_OK;
}

/* Adds to the error what the user may have meant. */
static minfer_status explain(const app_options *o, minfer_status st, minfer_error *err)
{
    char why[sizeof err->message];
    const char *near = o->bare && o->model ? app_nearest_command(o->model) : NULL;
    if (st != MINFER_ERR_IO) return st;
    if (!o->model) return mf_fail_prefix(err, st, "no model is given, and the default one is not there");
    memcpy(why, err->message, sizeof why);
    if (o->bare && !strpbrk(o->model, "/ ."))
        return mf_fail(err, st, "'%s' is neither a command%s%s%s nor a model: %s", o->model,
                       near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", why);
    if (o->command == APP_RUN && !o->prompt && o->words.n == 0 && strchr(o->model, ' '))
        return mf_fail(err, st, "%s (a prompt for the default model goes after -p)", why);
    return st;
}

static bool file_exists(const char *path)
{
    struct stat sb;
    return path && stat(path, &sb) == 0;
}

minfer_status app_model_path(const app_options *o, char **path, minfer_error *err)
{
    char *dir = NULL;
    *path = NULL;
    if (!file_exists(o->model)) MF_TRY(app_model_dir(o, &dir, err)); /* a path needs no cache */
    minfer_status st = explain(o, minfer_hub_resolve(dir ? dir : "", o->model, path, err), err);
    mf_free(dir);
    if (st == MINFER_OK && !o->model)
        app_note("using the default model, %s (%s)", MINFER_DEFAULT_MODEL, *path);
    return st;
}

minfer_status app_model_load(const char *path, minfer_model **out, minfer_error *err)
{
    minfer_status st = minfer_model_open(path, app_progress, NULL, out, err);
    if (st != MINFER_OK) app_progress(NULL, 1);
    return st;
}

minfer_status app_model_open(const app_options *o, app_open_fn *open, minfer_model **out, minfer_error *err)
{
    char *path;
    *out = NULL;
    MF_TRY(app_model_path(o, &path, err));
    minfer_status st = open(path, out, err);
    mf_free(path);
    return st;
}

minfer_status app_engine_check(const app_options *o, minfer_error *err)
{
    minfer_engine_options e = o->engine;
    e.backends = NULL;
    minfer_status st = minfer_engine_options_check(&e, err);
    if (st != MINFER_OK)
        return mf_fail_prefix(err, st, "%s", app_env_origin("MINFER_CPU_TIER", "--cpu-tier", e.cpu_tier));
    st = minfer_engine_options_check(&o->engine, err);
    if (st == MINFER_OK) return st;
    return mf_fail_prefix(err, st, "%s", app_env_origin("MINFER_BACKENDS", "--backend", o->engine.backends));
}

static void trace(void *user, const char *text)
{
    (void)user;
    fputs(text, stderr);
}

enum { DEFAULT_CTX = 4096 };

static int32_t choose_ctx(const app_options *o, int32_t trained, size_t least, size_t wanted)
{
    int32_t asked = o->engine.n_ctx ? o->engine.n_ctx : DEFAULT_CTX, n = asked;
    if ((size_t)asked < least) n = wanted < INT32_MAX ? (int32_t)wanted : INT32_MAX;
    if (n > trained) n = trained;
    if (o->engine.n_ctx > trained)
        app_note("the model's context is %d tokens; --n-ctx %d is cut to that", trained, asked);
    else if (o->engine.n_ctx && n > asked)
        app_note("--n-ctx %d does not hold the prompt; the context is %d tokens", asked, n);
    return n;
}

static void describe(const minfer_model *m, const minfer_engine *e, int32_t n_batch)
{
    minfer_model_info info;
    minfer_engine_info running;
    minfer_model_get_info(m, &info);
    minfer_engine_get_info(e, &running);
    app_note("model %s (%s)", *info.name ? info.name : info.architecture, info.path);
    app_note("backends %s, %d threads, CPU tier %s, context %d, batch %d, cache %s", running.backends,
             running.n_threads, running.cpu_tier, running.n_ctx,
             n_batch < running.n_ctx ? n_batch : running.n_ctx, running.cache_type);
}

minfer_status app_engine_create(const app_options *o, const minfer_model *m, size_t least, size_t wanted,
                                minfer_engine **out, minfer_error *err)
{
    minfer_engine_options e = o->engine;
    minfer_model_info info;
    minfer_model_get_info(m, &info);
    e.n_ctx = choose_ctx(o, info.n_ctx, least, wanted);
    e.gpu_budget = (uint64_t)o->gpu_mib << 20;
    if (o->graph_trace) e.trace = trace;
    MF_TRY(minfer_engine_create(m, &e, out, err));
    if (o->verbose) describe(m, *out, e.n_batch);
    return MINFER_OK;
}
