/* The tensor directory: checks every entry, then that all data lies inside the file, aligned, and apart.
 * Reads no tensor data and does not know which tensors a model needs. */
#include "gguf/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { MIN_ENTRY = 8 + 1 + 4 + 8 + 4 + 8 }; /* bytes: name of one byte, one dimension, type, offset */

typedef struct mf_dims_text {
    char text[100];
} mf_dims_text;

static mf_dims_text show_dims(const mf_gguf_tensor *t)
{
    mf_dims_text d;
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_dims; i++)
        n += (size_t)snprintf(d.text + n, sizeof d.text - n, "%s%llu", i ? ", " : "[",
                              (unsigned long long)t->dims[i]);
    snprintf(d.text + n, sizeof d.text - n, "]");
    return d;
}

static minfer_status read_dims(mf_cursor *c, mf_gguf_tensor *t, minfer_error *err)
{
    size_t at = c->pos;
    MF_TRY(mf_cursor_u32(c, "number of dimensions", &t->n_dims, err));
    if (t->n_dims < 1 || t->n_dims > 4)
        return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: has %u dimensions, 1 to 4 are possible", at,
                       t->n_dims);
    at = c->pos;
    for (uint32_t i = 0; i < 4; i++) t->dims[i] = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) MF_TRY(mf_cursor_u64(c, "dimension", &t->dims[i], err));
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] == 0)
            return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: dimension %u of %s is 0", at + 8 * i, i,
                           show_dims(t).text);
    return MINFER_OK;
}

static minfer_status read_type(mf_cursor *c, mf_gguf_tensor *t, minfer_error *err)
{
    size_t at = c->pos;
    uint32_t id;
    MF_TRY(mf_cursor_u32(c, "type", &id, err));
    const mf_type_info *info = mf_type_get(id);
    if (!info->name)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "byte %zu: type %u is unknown, the known ones end at %d",
                       at, id, MF_TYPE_COUNT - 1);
    if (info->block_values == 0)
        return mf_fail(err, MINFER_ERR_UNSUPPORTED,
                       "byte %zu: type %u (%s) has been taken out of GGUF, convert the model anew", at, id,
                       info->name);
    t->type = (mf_type)id;
    if (t->dims[0] % info->block_values != 0)
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "byte %zu: rows of %llu values are no whole blocks of %s, which have %u", at,
                       (unsigned long long)t->dims[0], info->name, info->block_values);
    if (!mf_type_tensor_bytes(t->type, t->dims, &t->size))
        return mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: shape %s of type %s is too big for any file", at,
                       show_dims(t).text, info->name);
    return MINFER_OK;
}

static minfer_status read_shape(mf_cursor *c, mf_gguf_tensor *t, uint32_t alignment, minfer_error *err)
{
    MF_TRY(read_dims(c, t, err));
    MF_TRY(read_type(c, t, err));
    size_t at = c->pos;
    MF_TRY(mf_cursor_u64(c, "offset", &t->offset, err));
    if (t->offset % alignment != 0)
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "byte %zu: data offset %llu is no multiple of the alignment %u", at,
                       (unsigned long long)t->offset, alignment);
    return MINFER_OK;
}

static minfer_status add_tensor(mf_gguf *g, mf_gguf_tensor *t, size_t at, minfer_error *err)
{
    uint32_t there;
    char *name = mf_arena_strndup(&g->names, t->name.s, t->name.n);
    if (!name || !mf_grow((void **)&g->tensors, &g->cap_tensors, g->n_tensors + 1, sizeof *g->tensors))
        return MF_NOMEM(err);
    if (!mf_strmap_add(&g->tensor_index, name, t->name.n, (uint32_t)g->n_tensors, &there))
        return MF_NOMEM(err);
    if (there != MF_STRMAP_NONE) {
        uint32_t part = g->tensors[there].part;
        return part == t->part ? mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: is in the directory already", at)
                               : mf_fail(err, MINFER_ERR_FORMAT, "byte %zu: is in part %u too (%s)", at,
                                         part + 1, mf_gguf_shown_path(g->parts[part].path));
    }
    t->cname = name;
    t->name.s = name;
    g->tensors[g->n_tensors++] = *t;
    return MINFER_OK;
}

static minfer_status read_entry(mf_gguf *g, mf_cursor *c, uint64_t i, uint64_t n, minfer_error *err)
{
    mf_gguf_tensor t = {.part = (uint32_t)g->n_parts - 1};
    size_t at = c->pos;
    minfer_status st = mf_cursor_name(c, "name", MF_GGUF_MAX_TENSOR_NAME, &t.name, err);
    if (st != MINFER_OK)
        return mf_fail_prefix(err, st, "tensor %llu of %llu", (unsigned long long)i + 1,
                              (unsigned long long)n);
    mf_str name = t.name;
    st = read_shape(c, &t, g->parts[t.part].alignment, err);
    if (st == MINFER_OK) st = add_tensor(g, &t, at, err);
    if (st != MINFER_OK) return mf_fail_prefix(err, st, "tensor %s", mf_quote(name).text);
    return MINFER_OK;
}

/* Turns the offsets of tensors from first on into offsets in the file, which has size bytes and whose data
 * section begins at base. Of a file that is cut off the message tells how much is missing in all. */
static minfer_status place(mf_gguf *g, size_t first, size_t base, size_t size, minfer_error *err)
{
    const mf_gguf_tensor *out = NULL;
    uint64_t end, last = 0;
    for (size_t i = first; i < g->n_tensors; i++) {
        mf_gguf_tensor *t = &g->tensors[i];
        if (__builtin_add_overflow(t->offset, base, &t->offset) ||
            __builtin_add_overflow(t->offset, t->size, &end))
            return mf_fail(err, MINFER_ERR_FORMAT,
                           "tensor %s: offset and size (%zu bytes) are too big for any file",
                           mf_quote(t->name).text, t->size);
        if (end > size && !out) out = t;
        if (end > last) last = end;
    }
    if (out)
        return mf_fail(
            err, MINFER_ERR_FORMAT,
            "tensor %s: its %zu bytes of data begin at byte %llu, but the file ends at byte %zu: in all, "
            "%llu bytes are missing at the end (an unfinished download?)",
            mf_quote(out->name).text, out->size, (unsigned long long)out->offset, size,
            (unsigned long long)(last - size));
    return MINFER_OK;
}

static int by_offset(const void *a, const void *b)
{
    const mf_gguf_tensor *x = *(const mf_gguf_tensor *const *)a, *y = *(const mf_gguf_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static minfer_status check_apart(const mf_gguf *g, size_t first, minfer_error *err)
{
    size_t n = g->n_tensors - first;
    const mf_gguf_tensor **order = mf_calloc(n, sizeof(void *));
    minfer_status st = MINFER_OK;
    if (!order) return MF_NOMEM(err);
    for (size_t i = 0; i < n; i++) order[i] = &g->tensors[first + i];
    qsort(order, n, sizeof(void *), by_offset);
    for (size_t i = 1; i < n && st == MINFER_OK; i++) {
        const mf_gguf_tensor *a = order[i - 1], *b = order[i];
        if (b->offset - a->offset < a->size)
            st = mf_fail(err, MINFER_ERR_FORMAT,
                         "tensor %s: its data at byte %llu overlaps that of %s, %zu bytes from byte %llu on",
                         mf_quote(b->name).text, (unsigned long long)b->offset, mf_quote(a->name).text,
                         a->size, (unsigned long long)a->offset);
    }
    mf_free(order);
    return st;
}

minfer_status mf_gguf_read_directory(mf_gguf *g, mf_cursor *c, uint64_t n, minfer_error *err)
{
    const mf_gguf_part *p = &g->parts[g->n_parts - 1];
    size_t first = g->n_tensors;
    MF_TRY(mf_gguf_check_count(c, n, MIN_ENTRY, "tensors", err));
    for (uint64_t i = 0; i < n; i++) MF_TRY(read_entry(g, c, i, n, err));
    MF_TRY(place(g, first, mf_align_up(c->pos, p->alignment), c->size, err));
    for (size_t i = first; i < g->n_tensors; i++) g->tensors[i].data = p->data + g->tensors[i].offset;
    return check_apart(g, first, err);
}
