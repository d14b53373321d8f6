/* Split models: name-00001-of-00003.gguf and its keys split.no (from 0), split.count, split.tensors.count.
 * Gathers all parts from the name of any one, and refuses what is no complete, single model. */
#include "gguf/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct mf_split_name { /* prefix-NNNNN-of-NNNNN.gguf */
    size_t prefix;             /* bytes in front of the first hyphen */
    uint32_t number, count;    /* number from 1 */
} mf_split_name;

enum { TAIL = sizeof "-00001-of-00001.gguf" - 1 };

static bool five_digits(const char *s, uint32_t *v)
{
    *v = 0;
    for (int i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *v = *v * 10 + (uint32_t)(s[i] - '0');
    }
    return true;
}

static bool read_name(const char *path, mf_split_name *n)
{
    size_t len = strlen(path);
    if (len < TAIL) return false;
    n->prefix = len - TAIL;
    const char *tail = path + n->prefix;
    return tail[0] == '-' && five_digits(tail + 1, &n->number) && memcmp(tail + 6, "-of-", 4) == 0 &&
           five_digits(tail + 10, &n->count) && strcmp(tail + 15, ".gguf") == 0;
}

static char *part_path(const char *path, const mf_split_name *n, uint32_t number)
{
    char *s = mf_strndup(path, strlen(path));
    if (s) snprintf(s + n->prefix, TAIL + 1, "-%05u-of-%05u.gguf", number % 100000, n->count % 100000);
    return s;
}

/* A key of the last part that the split needs. */
static minfer_status need(const mf_gguf *g, const char *key, uint32_t wanted, minfer_error *err)
{
    const mf_gguf_part *p = &g->parts[g->n_parts - 1];
    uint32_t v = 0;
    MF_TRY(mf_gguf_part_u32(p, key, &v, NULL, err));
    if (v == wanted) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT, "%s: key '%s' is %u, expected %u as the file's name says",
                   mf_gguf_shown_path(p->path), key, v, wanted);
}

static bool same_value(const mf_gguf_kv *a, const mf_gguf_kv *b)
{
    return a->type == b->type && a->elem == b->elem && a->count == b->count && a->size == b->size &&
           memcmp(a->data, b->data, a->size) == 0;
}

/* Later parts carry the split's keys only, as a rule. What else they carry may not contradict the first. */
static minfer_status check_same_model(const mf_gguf *g, minfer_error *err)
{
    const mf_gguf_part *first = &g->parts[0], *p = &g->parts[g->n_parts - 1];
    for (size_t i = 0; i < p->n_kv; i++) {
        const mf_gguf_kv *kv = &p->slots[i].kv;
        uint32_t there = mf_strmap_get(&first->kv_index, kv->key.s, kv->key.n);
        bool own = kv->key.n == 8 && memcmp(kv->key.s, "split.no", 8) == 0;
        bool layout = kv->key.n == 17 && memcmp(kv->key.s, "general.alignment", 17) == 0;
        if (own || layout || there == MF_STRMAP_NONE || same_value(kv, &first->slots[there].kv)) continue;
        return mf_fail(err, MINFER_ERR_FORMAT,
                       "%s: key %s differs from that of %s: these are parts of different models",
                       mf_gguf_shown_path(p->path), mf_quote(kv->key).text, mf_gguf_shown_path(first->path));
    }
    return MINFER_OK;
}

static minfer_status add_numbered(mf_gguf *g, const char *path, const mf_split_name *n, uint32_t number,
                                  minfer_error *err)
{
    char *part = part_path(path, n, number);
    if (!part) return MF_NOMEM(err);
    minfer_status st = mf_gguf_add_part(g, part, err);
    mf_free(part);
    if (st != MINFER_OK) return mf_fail_prefix(err, st, "part %u of %u", number, n->count);
    MF_TRY(need(g, "split.count", n->count, err));
    MF_TRY(need(g, "split.no", number - 1, err));
    return check_same_model(g, err);
}

static minfer_status check_total(const mf_gguf *g, minfer_error *err)
{
    uint32_t total = 0;
    bool found;
    MF_TRY(mf_gguf_part_u32(&g->parts[0], "split.tensors.count", &total, &found, err));
    if (!found || total == g->n_tensors) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_FORMAT,
                   "%s: key 'split.tensors.count' is %u, but the %zu parts have %zu tensors",
                   mf_gguf_shown_path(g->parts[0].path), total, g->n_parts, g->n_tensors);
}

minfer_status mf_gguf_complete_split(mf_gguf *g, const char *path, minfer_error *err)
{
    uint32_t count = 0;
    bool found;
    mf_split_name n;
    MF_TRY(mf_gguf_part_u32(&g->parts[0], "split.count", &count, &found, err));
    if (count <= 1) return MINFER_OK;
    if (!read_name(path, &n) || n.number < 1 || n.number > n.count)
        return mf_fail(
            err, MINFER_ERR_FORMAT,
            "%s: is a part of a model in %u files, whose names must end in -00001-of-%05u.gguf and so on",
            mf_gguf_shown_path(path), count, count);
    mf_gguf_drop_parts(g);
    for (uint32_t i = 1; i <= n.count; i++) MF_TRY(add_numbered(g, path, &n, i, err));
    return check_total(g, err);
}
