/* Opening and parsing of one file, and plain access to what was read. The parts of a split model are gathered
 * in split.c, typed access to metadata is in get.c. */
#include "gguf/internal.h"

#include "base/bytes.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are used in place, which needs a little-endian host");

enum { HEADER = 4 + 4 + 8 + 8, SHOWN_PATH = 300 };

const char *mf_gguf_shown_path(const char *path)
{
    size_t n = strlen(path);
    return n > SHOWN_PATH ? path + n - SHOWN_PATH : path;
}

minfer_status mf_gguf_check_count(const mf_cursor *c, uint64_t n, size_t min_bytes, const char *what,
                                  minfer_error *err)
{
    size_t room = mf_cursor_left(c) / min_bytes;
    if (n > room)
        return mf_fail(
            err, MINFER_ERR_FORMAT,
            "the header tells of %llu %s, but the %zu bytes from byte %zu on have room for %zu at most",
            (unsigned long long)n, what, mf_cursor_left(c), c->pos, room);
    if (n > MF_GGUF_MAX_ENTRIES)
        return mf_fail(err, MINFER_ERR_LIMIT, "the header tells of %llu %s, at most %d are allowed",
                       (unsigned long long)n, what, MF_GGUF_MAX_ENTRIES);
    return MINFER_OK;
}

static minfer_status check_version(uint32_t version, minfer_error *err)
{
    uint32_t swapped = __builtin_bswap32(version);
    if (version == 2 || version == 3) return MINFER_OK;
    if (swapped >= 1 && swapped <= 3)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED,
                       "byte 4: version %u is stored big-endian: only little-endian files can be read",
                       swapped);
    return mf_fail(err, MINFER_ERR_UNSUPPORTED, "byte 4: GGUF version %u, only 2 and 3 can be read%s",
                   version, version == 1 ? ": convert the model anew" : "");
}

static minfer_status check_magic(const mf_gguf_part *p, minfer_error *err)
{
    if (p->size >= 4 && memcmp(p->data, "GGUF", 4) == 0) {
        if (p->size >= HEADER) return MINFER_OK;
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "the file ends at byte %zu, in the middle of the header of %d bytes", p->size, HEADER);
    }
    return mf_fail(err, MINFER_ERR_FORMAT, "not a GGUF file: it is %s", mf_gguf_identify(p->data, p->size));
}

static minfer_status read_file(mf_gguf *g, minfer_error *err)
{
    mf_gguf_part *p = &g->parts[g->n_parts - 1];
    MF_TRY(check_magic(p, err));
    p->version = mf_load_u32(p->data + 4);
    MF_TRY(check_version(p->version, err));
    mf_cursor c = {p->data, p->size, HEADER};
    MF_TRY(mf_gguf_read_metadata(p, &c, mf_load_u64(p->data + 16), err));
    return mf_gguf_read_directory(g, &c, mf_load_u64(p->data + 8), err);
}

/* NULL: out of memory. */
static mf_gguf_part *new_part(mf_gguf *g, const char *path)
{
    char *copy = mf_strndup(path, strlen(path));
    if (!copy || !mf_grow((void **)&g->parts, &g->cap_parts, g->n_parts + 1, sizeof *g->parts)) {
        mf_free(copy);
        return NULL;
    }
    mf_gguf_part *p = &g->parts[g->n_parts++];
    *p = (mf_gguf_part){.path = copy};
    return p;
}

static minfer_status read_part(mf_gguf *g, const char *path, minfer_error *err)
{
    minfer_status st = read_file(g, err);
    return st == MINFER_OK ? st : mf_fail_prefix(err, st, "%s", mf_gguf_shown_path(path));
}

minfer_status mf_gguf_add_part(mf_gguf *g, const char *path, minfer_error *err)
{
    mf_gguf_part *p = new_part(g, path);
    if (!p) return MF_NOMEM(err);
    MF_TRY(mf_filemap_open(path, &p->map, err));
    p->data = p->map.data;
    p->size = p->map.size;
    return read_part(g, path, err);
}

void mf_gguf_drop_parts(mf_gguf *g)
{
    for (size_t i = 0; i < g->n_parts; i++) {
        mf_gguf_part *p = &g->parts[i];
        mf_strmap_free(&p->kv_index);
        mf_filemap_close(&p->map);
        mf_free(p->slots);
        mf_free(p->strs);
        mf_free(p->path);
    }
    mf_free(g->parts);
    mf_free(g->tensors);
    mf_strmap_free(&g->tensor_index);
    mf_arena_free(&g->names);
    *g = (mf_gguf){0};
}

void mf_gguf_free(mf_gguf *g)
{
    if (!g) return;
    mf_gguf_drop_parts(g);
    mf_free(g);
}

static minfer_status finish(mf_gguf *g, minfer_status st, mf_gguf **out)
{
    if (st == MINFER_OK)
        *out = g;
    else
        mf_gguf_free(g);
    return st;
}

minfer_status mf_gguf_open(const char *path, mf_gguf **out, minfer_error *err)
{
    mf_gguf *g = mf_calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return MF_NOMEM(err);
    minfer_status st = mf_gguf_add_part(g, path, err);
    if (st == MINFER_OK) st = mf_gguf_complete_split(g, path, err);
    return finish(g, st, out);
}

minfer_status mf_gguf_parse(const void *data, size_t size, const char *name, mf_gguf **out, minfer_error *err)
{
    mf_gguf *g = mf_calloc(1, sizeof *g);
    mf_gguf_part *p = g ? new_part(g, name) : NULL;
    *out = NULL;
    if (!p) {
        mf_gguf_free(g);
        return MF_NOMEM(err);
    }
    p->data = data;
    p->size = size;
    return finish(g, read_part(g, name, err), out);
}

uint32_t mf_gguf_version(const mf_gguf *g)
{
    return g->parts[0].version;
}

const char *mf_gguf_path(const mf_gguf *g)
{
    return g->parts[0].path;
}

uint32_t mf_gguf_alignment(const mf_gguf *g)
{
    return g->parts[0].alignment;
}

uint32_t mf_gguf_n_parts(const mf_gguf *g)
{
    return (uint32_t)g->n_parts;
}

const char *mf_gguf_part_path(const mf_gguf *g, uint32_t part)
{
    return g->parts[part].path;
}

size_t mf_gguf_file_bytes(const mf_gguf *g)
{
    size_t sum = 0;
    for (size_t i = 0; i < g->n_parts; i++) sum += g->parts[i].size;
    return sum;
}

size_t mf_gguf_n_kv(const mf_gguf *g)
{
    return g->parts[0].n_kv;
}

const mf_gguf_kv *mf_gguf_kv_at(const mf_gguf *g, size_t i)
{
    return &g->parts[0].slots[i].kv;
}

size_t mf_gguf_n_tensors(const mf_gguf *g)
{
    return g->n_tensors;
}

const mf_gguf_tensor *mf_gguf_tensor_at(const mf_gguf *g, size_t i)
{
    return &g->tensors[i];
}

const mf_gguf_tensor *mf_gguf_find_tensor(const mf_gguf *g, const char *name)
{
    uint32_t i = mf_strmap_get(&g->tensor_index, name, strlen(name));
    return i == MF_STRMAP_NONE ? NULL : &g->tensors[i];
}
