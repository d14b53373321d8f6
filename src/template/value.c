/* Strings, lists and dictionaries. */
#include "template/value.h"
#include "base/strmap.h"
#include "template/ops.h"

#include <string.h>

static const char *const type_names[MF_T_COUNT] = {
    [MF_T_MISSING] = "missing",
    [MF_T_UNDEFINED] = "Undefined",
    [MF_T_NONE] = "NoneType",
    [MF_T_BOOL] = "bool",
    [MF_T_INT] = "int",
    [MF_T_FLOAT] = "float",
    [MF_T_STR] = "str",
    [MF_T_LIST] = "list",
    [MF_T_TUPLE] = "tuple",
    [MF_T_DICT] = "dict",
    [MF_T_RANGE] = "range",
    [MF_T_ITER] = "generator",
    [MF_T_NAMESPACE] = "Namespace",
    [MF_T_MACRO] = "Macro",
    [MF_T_FUNC] = "builtin_function_or_method",
    [MF_T_LOOP] = "LoopContext",
    [MF_T_CYCLER] = "Cycler",
    [MF_T_JOINER] = "Joiner",
};

const char *mf_tval_type_name(mf_tval v)
{
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    return v.type == MF_T_VIEW ? views[v.view->kind] : type_names[v.type];
}

/* -- strings -- */

size_t mf_tstr_count(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)p[i] & 0xC0) != 0x80;
    return count;
}

static minfer_status wrap(mf_trender *r, const char *p, size_t n, size_t chars, mf_tval *out)
{
    mf_tstr *s = MF_RENDER_NEW(r, mf_tstr);
    if (!s) return mf_trender_failed(r);
    *s = (mf_tstr){p ? p : "", n, chars};
    *out = mf_tstring(s);
    return MINFER_OK;
}

minfer_status mf_tstr_wrap(mf_trender *r, const char *p, size_t n, mf_tval *out)
{
    return wrap(r, p, n, mf_tstr_count(p, n), out);
}

minfer_status mf_tstr_new(mf_trender *r, const char *p, size_t n, mf_tval *out)
{
    MF_TRY(mf_trender_charge(r, n));
    char *copy = mf_trender_alloc(r, n, 1);
    if (!copy) return mf_trender_failed(r);
    if (n) memcpy(copy, p, n);
    return mf_tstr_wrap(r, copy, n, out);
}

minfer_status mf_tstr_view(mf_trender *r, const mf_tstr *base, size_t off, size_t n, mf_tval *out)
{
    if (base->n == base->chars) return wrap(r, base->p + off, n, n, out);
    MF_TRY(mf_trender_charge(r, n));
    return mf_tstr_wrap(r, base->p + off, n, out);
}

minfer_status mf_tstr_lit(mf_trender *r, const char *text, mf_tval *out)
{
    size_t n = strlen(text);
    return wrap(r, text, n, n, out);
}

size_t mf_tchar_len(const char *p)
{
    unsigned char c = (unsigned char)*p;
    return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

size_t mf_tstr_offset(const mf_tstr *s, size_t i)
{
    if (s->n == s->chars) return i;
    size_t off = 0;
    for (; i > 0 && off < s->n; i--) off += mf_tchar_len(s->p + off);
    return off;
}

bool mf_tstr_is(const mf_tstr *s, const char *text)
{
    return s->n == strlen(text) && memcmp(s->p, text, s->n) == 0;
}

bool mf_tstr_same(const mf_tstr *a, const mf_tstr *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* -- lists -- */

minfer_status mf_tlist_new(mf_trender *r, size_t cap, mf_tlist **out)
{
    mf_tlist *l = MF_RENDER_NEW(r, mf_tlist);
    if (!l) return mf_trender_failed(r);
    if (cap && !(l->v = mf_trender_alloc(r, cap, sizeof *l->v))) return mf_trender_failed(r);
    l->cap = cap;
    *out = l;
    return MINFER_OK;
}

minfer_status mf_tlist_push(mf_trender *r, mf_tlist *l, mf_tval v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap : 2;
        if (!mf_mul_ok(cap, 2, &cap)) cap = SIZE_MAX;
        mf_tval *bigger = mf_trender_alloc(r, cap, sizeof *bigger);
        if (!bigger) return mf_trender_failed(r);
        if (l->n) memcpy(bigger, l->v, l->n * sizeof *bigger);
        l->v = bigger;
        l->cap = cap;
    }
    l->v[l->n++] = v;
    return MINFER_OK;
}

minfer_status mf_tlist_copy(mf_trender *r, const mf_tlist *l, size_t from, size_t n, mf_tlist **out)
{
    MF_TRY(mf_trender_charge(r, n * sizeof *l->v));
    MF_TRY(mf_tlist_new(r, n, out));
    if (n) memcpy((*out)->v, l->v + from, n * sizeof *l->v);
    (*out)->n = n;
    return MINFER_OK;
}

minfer_status mf_tpair(mf_trender *r, mf_tval a, mf_tval b, mf_tval *out)
{
    mf_tlist *l = NULL;
    MF_TRY(mf_tlist_new(r, 2, &l));
    l->v[0] = a;
    l->v[1] = b;
    l->n = 2;
    *out = mf_ttupleval(l);
    return MINFER_OK;
}

/* -- dictionaries -- */

enum { INDEX_FROM = 8 }; /* up to here a scan of the entries is as fast */

minfer_status mf_tdict_new(mf_trender *r, mf_tdict **out)
{
    *out = MF_RENDER_NEW(r, mf_tdict);
    return *out ? MINFER_OK : mf_trender_failed(r);
}

static minfer_status matches(mf_trender *r, const mf_tentry *e, mf_tval key, uint64_t hash, bool *same)
{
    *same = false; /* as with the key of a removed entry, which no value equals */
    if (e->hash != hash) return MINFER_OK;
    return mf_tval_eq(r, e->key, key, same);
}

/* The entry of a key: by scanning a small dictionary, else by probing the index. */
static minfer_status find_hashed(mf_trender *r, const mf_tdict *d, mf_tval key, uint64_t hash,
                                 mf_tentry **out)
{
    bool same;
    *out = NULL;
    for (size_t i = 0; !d->index && i < d->n; i++) {
        MF_TRY(matches(r, &d->e[i], key, hash, &same));
        if (same) return *out = &d->e[i], MINFER_OK;
    }
    if (!d->index) return MINFER_OK;
    for (size_t i = hash & (d->index_cap - 1); d->index[i]; i = (i + 1) & (d->index_cap - 1)) {
        MF_TRY(mf_trender_step(r));
        MF_TRY(matches(r, &d->e[d->index[i] - 1], key, hash, &same));
        if (same) return *out = &d->e[d->index[i] - 1], MINFER_OK;
    }
    return MINFER_OK;
}

minfer_status mf_tdict_find(mf_trender *r, const mf_tdict *d, mf_tval key, mf_tentry **out)
{
    uint64_t hash;
    MF_TRY(mf_tval_hash(r, key, &hash));
    return find_hashed(r, d, key, hash, out);
}

static void index_entry(mf_tdict *d, size_t at)
{
    size_t i = d->e[at].hash & (d->index_cap - 1);
    while (d->index[i]) i = (i + 1) & (d->index_cap - 1);
    d->index[i] = (uint32_t)(at + 1);
}

/* Room for one more entry; removed ones are dropped on the way, the index is rebuilt at most half full. */
static minfer_status grow(mf_trender *r, mf_tdict *d)
{
    size_t cap = d->live < 2 ? 4 : d->live * 2, n = 0;
    if (cap > UINT32_MAX / 2)
        return mf_fail(r->err, MINFER_ERR_LIMIT, "a dictionary has %zu entries", d->live);
    mf_tentry *e = mf_trender_alloc(r, cap, sizeof *e);
    if (!e) return mf_trender_failed(r);
    for (size_t i = 0; i < d->n; i++)
        if (!mf_tis(d->e[i].key, MF_T_MISSING)) e[n++] = d->e[i];
    size_t index_cap = 16;
    while (index_cap < cap * 2) index_cap *= 2;
    uint32_t *index = cap > INDEX_FROM ? mf_trender_alloc(r, index_cap, sizeof *index) : NULL;
    if (cap > INDEX_FROM && !index) return mf_trender_failed(r);
    d->e = e;
    d->n = n;
    d->cap = cap;
    d->index = index;
    d->index_cap = index ? index_cap : 0;
    for (size_t i = 0; index && i < n; i++) index_entry(d, i);
    return mf_trender_charge(r, n * sizeof *e);
}

minfer_status mf_tdict_set(mf_trender *r, mf_tdict *d, mf_tval key, mf_tval value)
{
    uint64_t hash;
    mf_tentry *e;
    MF_TRY(mf_tval_hash(r, key, &hash));
    MF_TRY(find_hashed(r, d, key, hash, &e));
    if (e) {
        e->value = value;
        return MINFER_OK;
    }
    if (d->n == d->cap) MF_TRY(grow(r, d));
    d->e[d->n] = (mf_tentry){key, value, hash};
    if (d->index) index_entry(d, d->n);
    d->n++;
    d->live++;
    return MINFER_OK;
}

minfer_status mf_tdict_update(mf_trender *r, mf_tdict *d, const mf_tdict *from)
{
    size_t i = 0;
    for (const mf_tentry *e; (e = mf_tdict_next(from, &i));) MF_TRY(mf_tdict_set(r, d, e->key, e->value));
    return MINFER_OK;
}

minfer_status mf_tdict_copy(mf_trender *r, const mf_tdict *d, mf_tdict **out)
{
    MF_TRY(mf_tdict_new(r, out));
    return mf_tdict_update(r, *out, d);
}

void mf_tdict_remove(mf_tdict *d, mf_tentry *e)
{
    e->key = e->value = mf_tmissing();
    d->live--;
}

void mf_tdict_clear(mf_tdict *d)
{
    bool busy = d->busy;
    *d = (mf_tdict){.busy = busy};
}

mf_tentry *mf_tdict_next(const mf_tdict *d, size_t *i)
{
    while (*i < d->n) {
        mf_tentry *e = &d->e[(*i)++];
        if (!mf_tis(e->key, MF_T_MISSING)) return e;
    }
    return NULL;
}

minfer_status mf_tdict_get(mf_trender *r, const mf_tdict *d, const char *key, mf_tval *out)
{
    size_t n = strlen(key);
    mf_tstr s = {key, n, n};
    mf_tentry *e;
    MF_TRY(mf_tdict_find(r, d, mf_tstring(&s), &e));
    *out = e ? e->value : mf_tmissing();
    return MINFER_OK;
}
