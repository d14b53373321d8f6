/* Reading the folders of the cache. */
#include "hub/hub.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Folders below hf/ or ollama/ that are looked into: owner, repo, and two more. */
enum { MAX_DEPTH = 4, REPO_DEPTH = 2 };

/* A folder on the way: dir/source/a/b/c. */
typedef struct folder {
    const char *path;   /* of the folder itself */
    const char *source; /* "hf", "ollama"; "" in the cache folder */
    const char *below;  /* "a/b/c", the folders below source; "" */
    int depth;          /* how many these are */
} folder;

static const char *join(mf_arena *a, const char *x, const char *mid, const char *y)
{
    size_t n = strlen(x) + strlen(mid) + strlen(y) + 1;
    char *p = mf_arena_alloc(a, n);
    if (p) snprintf(p, n, "%s%s%s", x, mid, y);
    return p;
}

/* Length of the first REPO_DEPTH folders of below. */
static size_t repo_length(const char *below)
{
    size_t i = 0;
    for (int slashes = 0; below[i]; i++)
        if (below[i] == '/' && ++slashes == REPO_DEPTH) break;
    return i;
}

/* name = repo:rest/stem */
static bool set_names(mf_hub *h, const folder *f, const char *stem, mf_hub_model *m)
{
    size_t n = repo_length(f->below);
    const char *repo = mf_arena_strndup(&h->arena, f->below, n), *rest = f->below + n;
    if (*rest == '/') rest++;
    const char *file = *rest ? join(&h->arena, rest, "/", stem) : stem;
    if (*f->source && repo) repo = join(&h->arena, f->source, ":", repo);
    m->repo = repo;
    m->file = file;
    if (repo && file) m->name = *repo ? join(&h->arena, repo, ":", file) : file;
    return m->name != NULL;
}

static minfer_status add_file(mf_hub *h, const folder *f, const char *name, const char *path, off_t size,
                              minfer_error *err)
{
    mf_hub_model m = {.path = path, .bytes = (uint64_t)size};
    size_t n = mf_hub_split(name, mf_hub_stem(name, strlen(name)), &m.part, &m.n_parts);
    const char *stem = mf_arena_strndup(&h->arena, name, n);
    if (!stem || !set_names(h, f, stem, &m)) return MF_NOMEM(err);
    if (!mf_grow((void **)&h->models, &h->cap, h->n + 1, sizeof m)) return MF_NOMEM(err);
    h->models[h->n++] = m;
    return MINFER_OK;
}

static bool is_source(const char *name)
{
    return strcmp(name, "hf") == 0 || strcmp(name, "ollama") == 0;
}

static minfer_status scan_folder(mf_hub *h, const folder *f, minfer_error *err);

static minfer_status enter(mf_hub *h, const folder *f, const char *name, const char *path, minfer_error *err)
{
    folder inner = *f;
    bool wanted = *f->source ? f->depth < MAX_DEPTH : is_source(name);
    if (!wanted) return MINFER_OK;
    inner.path = path;
    if (*f->source) {
        inner.below = join(&h->arena, f->below, *f->below ? "/" : "", name);
        inner.depth++;
    } else {
        inner.source = mf_arena_strndup(&h->arena, name, strlen(name));
    }
    return inner.below && inner.source ? scan_folder(h, &inner, err) : MF_NOMEM(err);
}

static minfer_status visit(mf_hub *h, const folder *f, const char *name, minfer_error *err)
{
    struct stat sb;
    size_t n = strlen(name);
    if (name[0] == '.') return MINFER_OK;
    const char *path = join(&h->arena, f->path, "/", name);
    if (!path) return MF_NOMEM(err);
    if (stat(path, &sb) != 0) return MINFER_OK; /* gone again, or a link to nowhere */
    if (S_ISDIR(sb.st_mode)) return enter(h, f, name, path, err);
    bool placed = !*f->source || f->depth > 0; /* hf/x.gguf belongs to no repo */
    if (!placed || !S_ISREG(sb.st_mode) || sb.st_size == 0 || mf_hub_stem(name, n) == n) return MINFER_OK;
    return add_file(h, f, name, path, sb.st_size, err);
}

/* Recursion ends at MAX_DEPTH. */
static minfer_status scan_folder(mf_hub *h, const folder *f, minfer_error *err)
{
    DIR *d = opendir(f->path);
    if (!d && errno == ENOENT) return MINFER_OK;
    if (!d) return mf_fail(err, MINFER_ERR_IO, "cache folder %s: %s", f->path, strerror(errno));
    minfer_status st = MINFER_OK;
    for (struct dirent *e; st == MINFER_OK && (e = readdir(d));) st = visit(h, f, e->d_name, err);
    closedir(d);
    return st;
}

static int by_name(const void *x, const void *y)
{
    const mf_hub_model *a = x, *b = y;
    int c = strcmp(a->name, b->name);
    if (c) return c;
    if (a->n_parts != b->n_parts) return a->n_parts < b->n_parts ? -1 : 1;
    if (a->part != b->part) return a->part < b->part ? -1 : 1;
    return strcmp(a->path, b->path);
}

/* Parts of one split model stand side by side, the first one first. */
static void merge_parts(mf_hub *h)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        const mf_hub_model *m = &h->models[i];
        mf_hub_model *last = n ? &h->models[n - 1] : NULL;
        if (last && m->n_parts && m->n_parts == last->n_parts && strcmp(m->name, last->name) == 0)
            last->bytes += m->bytes;
        else
            h->models[n++] = *m;
    }
    h->n = n;
}

minfer_status mf_hub_scan(const char *dir, mf_hub *out, minfer_error *err)
{
    *out = (mf_hub){0};
    if (!dir || !*dir) return mf_fail(err, MINFER_ERR_ARG, "no cache folder was given");
    minfer_status st = scan_folder(out, &(folder){dir, "", "", 0}, err);
    if (st != MINFER_OK) {
        mf_hub_free(out);
        return st;
    }
    if (out->n) qsort(out->models, out->n, sizeof *out->models, by_name);
    merge_parts(out);
    return MINFER_OK;
}

void mf_hub_free(mf_hub *h)
{
    mf_free(h->models);
    mf_arena_free(&h->arena);
    *h = (mf_hub){0};
}
