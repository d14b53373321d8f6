/* The public side of the model cache: listing it, and turning what a user calls a model into a path. */
#include "hub/hub.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN = 8 }; /* models that a message lists */

minfer_status minfer_hub_list(const char *dir, minfer_hub_fn *fn, void *user, minfer_error *err)
{
    mf_hub h;
    MF_TRY(mf_hub_scan(dir, &h, err));
    for (size_t i = 0; i < h.n && fn(user, h.models[i].name, h.models[i].path, h.models[i].bytes); i++) {}
    mf_hub_free(&h);
    return MINFER_OK;
}

static minfer_status copy_path(const char *p, char **path, minfer_error *err)
{
    *path = mf_strndup(p, strlen(p));
    return *path ? MINFER_OK : MF_NOMEM(err);
}

/* Looks at the file system for a name that may be a path. *exists: what is there is a file. */
static minfer_status look_for_file(const char *name, bool *exists, minfer_error *err)
{
    struct stat sb;
    *exists = stat(name, &sb) == 0;
    if (*exists && S_ISDIR(sb.st_mode))
        return mf_fail(err, MINFER_ERR_IO, "%s: is a directory, not a model file", name);
    if (*exists || errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_IO, "%s: %s", name, strerror(errno));
}

/* Appends the names of the models that fit `typed` as well as `fit` (all of them for MF_HUB_NO_FIT). */
static bool append_names(const mf_hub *h, const char *typed, mf_hub_fit fit, size_t n, mf_buf *b)
{
    size_t seen = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < h->n && seen < SHOWN; i++) {
        if (fit != MF_HUB_NO_FIT && mf_hub_fits(&h->models[i], typed) != fit) continue;
        ok = mf_buf_printf(b, "%s%s", seen++ ? ", " : "", h->models[i].name);
    }
    return ok && (n <= seen || mf_buf_printf(b, " and %zu more", n - seen));
}

static minfer_status several(const mf_hub *h, const char *typed, mf_hub_fit fit, size_t n, minfer_error *err)
{
    mf_buf b = {0};
    bool ok = append_names(h, typed, fit, n, &b);
    minfer_status st = ok ? mf_fail(err, MINFER_ERR_ARG, "'%s' fits %zu cached models: %s", typed, n, b.data)
                          : MF_NOMEM(err);
    mf_buf_free(&b);
    return st;
}

static minfer_status none(const mf_hub *h, const char *dir, const char *typed, minfer_error *err)
{
    mf_buf b = {0};
    bool ok = h->n ? mf_buf_str(&b, "has ") && append_names(h, typed, MF_HUB_NO_FIT, h->n, &b)
                   : mf_buf_str(&b, "is empty");
    minfer_status st =
        ok ? mf_fail(
                 err, MINFER_ERR_IO,
                 "'%s': no such file, and no cached model of that name; the cache %s %s; `make demo` gets %s",
                 typed, dir, b.data, MINFER_DEFAULT_MODEL)
           : MF_NOMEM(err);
    mf_buf_free(&b);
    return st;
}

static minfer_status choose(const mf_hub *h, const char *dir, const char *typed, char **path,
                            minfer_error *err)
{
    mf_hub_fit best = MF_HUB_NO_FIT;
    size_t n = 0;
    const mf_hub_model *chosen = NULL;
    for (size_t i = 0; i < h->n; i++) {
        mf_hub_fit fit = mf_hub_fits(&h->models[i], typed);
        if (fit == MF_HUB_NO_FIT || fit < best) continue;
        n = fit == best ? n + 1 : 1;
        best = fit;
        chosen = &h->models[i];
    }
    if (n == 0) return none(h, dir, typed, err);
    return n == 1 ? copy_path(chosen->path, path, err) : several(h, typed, best, n, err);
}

minfer_status minfer_hub_resolve(const char *dir, const char *name, char **path, minfer_error *err)
{
    mf_hub h;
    bool exists = false, is_default = !name || !*name;
    *path = NULL;
    if (is_default) name = MINFER_DEFAULT_MODEL;
    bool sourced = mf_hub_has_source(name);
    if (!is_default && !sourced) MF_TRY(look_for_file(name, &exists, err));
    if (exists) return copy_path(name, path, err);
    if (!sourced && strchr(name, '/')) return mf_fail(err, MINFER_ERR_IO, "%s: no such file", name);
    MF_TRY(mf_hub_scan(dir, &h, err));
    minfer_status st = choose(&h, dir, name, path, err);
    mf_hub_free(&h);
    return st;
}
