/* `minfer list`: the cached models. */
#include "cli/commands.h"

#include "common/json.h"
#include "common/model.h"
#include "common/output.h"
#include "common/term.h"

#include <string.h>

typedef struct row {
    char *name, *path;
    uint64_t bytes;
} row;

typedef struct rows {
    row *v;
    size_t n, cap;
    bool ok;
} rows;

static bool take(void *user, const char *name, const char *path, uint64_t bytes)
{
    rows *r = user;
    r->ok = mf_grow((void **)&r->v, &r->cap, r->n + 1, sizeof *r->v);
    if (!r->ok) return false;
    r->v[r->n++] = (row){mf_strndup(name, strlen(name)), mf_strndup(path, strlen(path)), bytes};
    return r->ok = r->v[r->n - 1].name && r->v[r->n - 1].path;
}

static void free_rows(rows *r)
{
    for (size_t i = 0; i < r->n; i++) {
        mf_free(r->v[i].name);
        mf_free(r->v[i].path);
    }
    mf_free(r->v);
}

/* Two columns of their own width, then the path. */
static bool as_text(const rows *r, mf_buf *out)
{
    int width = 0;
    bool ok = mf_buf_append(out, "", 0);
    for (size_t i = 0; i < r->n; i++)
        if ((int)strlen(r->v[i].name) > width) width = (int)strlen(r->v[i].name);
    for (size_t i = 0; i < r->n && ok; i++) {
        mf_buf size = {0};
        ok = app_bytes(r->v[i].bytes, &size) &&
             mf_buf_printf(out, "%-*s  %10s  %s\n", width, r->v[i].name, size.data, r->v[i].path);
        mf_buf_free(&size);
    }
    return ok;
}

static bool as_json(const rows *r, mf_buf *out)
{
    json_t *list = json_array();
    bool ok = list;
    for (size_t i = 0; i < r->n && ok; i++) {
        const row *m = &r->v[i];
        json_t *o = json_pack("{s:o, s:I, s:o}", "name", app_json_text(m->name, strlen(m->name)), "bytes",
                              (json_int_t)m->bytes, "path", app_json_text(m->path, strlen(m->path)));
        ok = json_array_append_new(list, o) == 0;
    }
    if (!ok) json_decref(list);
    return app_json_take(ok ? list : NULL, 2, out) && mf_buf_char(out, '\n');
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    rows r = {.ok = true};
    mf_buf out = {0};
    char *dir = NULL;
    MF_TRY(app_model_dir(o, &dir, err));
    minfer_status st = minfer_hub_list(dir, take, &r, err);
    if (st == MINFER_OK && r.ok && r.n == 0)
        app_note("the cache %s is empty; put GGUF files there (`make demo` gets %s)", dir,
                 MINFER_DEFAULT_MODEL);
    if (st == MINFER_OK)
        st = app_out_buf(&out, r.ok && (o->json ? as_json(&r, &out) : as_text(&r, &out)), err);
    free_rows(&r);
    mf_free(dir);
    return st;
}

const app_program cli_list = {NULL, run};
