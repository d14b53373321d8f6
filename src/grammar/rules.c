/* Rules, byte sets, and classes of characters as sequences of bytes. */
#include "grammar/rules.h"

#include "base/utf8.h"

#include <string.h>

enum { MAX_RULES = 1 << 20, MAX_ELEMS = 1 << 22 };

void mf_grules_free(mf_grules *g)
{
    for (size_t i = 0; i < g->n; i++) mf_free(g->v[i].alts);
    mf_free(g->v);
    mf_free(g->sets);
    mf_strmap_free(&g->names);
    mf_strmap_free(&g->set_ids);
    mf_strmap_free(&g->class_ids);
    mf_arena_free(&g->arena);
    *g = (mf_grules){0};
}

static minfer_status add_rule(mf_grules *g, mf_str name, size_t at, uint32_t *rule, minfer_error *err)
{
    if (g->n >= MAX_RULES)
        return mf_fail(err, MINFER_ERR_LIMIT, "the grammar has more than %d rules and groups", MAX_RULES);
    if (!mf_grow((void **)&g->v, &g->cap, g->n + 1, sizeof *g->v)) return MF_NOMEM(err);
    *rule = (uint32_t)g->n;
    g->v[g->n++] = (mf_grule){.name = name, .at = at, .solid = MF_G_NONE, .solid_from = MF_G_NONE};
    return MINFER_OK;
}

minfer_status mf_grules_named(mf_grules *g, mf_str name, size_t at, uint32_t *rule, minfer_error *err)
{
    *rule = mf_strmap_get(&g->names, name.s, name.n);
    if (*rule != MF_STRMAP_NONE) return MINFER_OK;
    mf_str own = {mf_arena_strndup(&g->arena, name.s, name.n), name.n};
    if (!own.s) return MF_NOMEM(err);
    MF_TRY(add_rule(g, own, at, rule, err));
    return mf_strmap_add(&g->names, own.s, own.n, *rule, NULL) ? MINFER_OK : MF_NOMEM(err);
}

minfer_status mf_grules_group(mf_grules *g, uint32_t of, uint32_t *rule, minfer_error *err)
{
    MF_TRY(add_rule(g, g->v[of].name, g->v[of].at, rule, err));
    g->v[*rule].defined = true;
    return MINFER_OK;
}

minfer_status mf_grules_choice(mf_grules *g, uint32_t rule, const mf_gelem *v, size_t n, minfer_error *err)
{
    mf_grule *r = &g->v[rule];
    g->n_elems += n + 1;
    if (g->n_elems > MAX_ELEMS)
        return mf_fail(err, MINFER_ERR_LIMIT, "the grammar has more than %d elements", MAX_ELEMS);
    mf_gelem *own = mf_arena_array(&g->arena, n, sizeof *own);
    if (!own || !mf_grow((void **)&r->alts, &r->cap, r->n + 1, sizeof *r->alts)) return MF_NOMEM(err);
    if (n) memcpy(own, v, n * sizeof *own);
    r->alts[r->n++] = (mf_galt){own, (uint32_t)n};
    return MINFER_OK;
}

/* ---- sets of bytes */

static void set_range(mf_gset *s, unsigned lo, unsigned hi)
{
    for (unsigned b = lo; b <= hi; b++) s->bits[b / 64] |= (uint64_t)1 << b % 64;
}

static minfer_status set_elem(mf_grules *g, const mf_gset *set, mf_gelem *out, minfer_error *err)
{
    uint32_t id = mf_strmap_get(&g->set_ids, (const char *)set, sizeof *set);
    if (id == MF_STRMAP_NONE) {
        char *key = mf_arena_strndup(&g->arena, (const char *)set, sizeof *set);
        id = (uint32_t)g->n_sets;
        if (!key || !mf_grow((void **)&g->sets, &g->sets_cap, g->n_sets + 1, sizeof *g->sets) ||
            !mf_strmap_add(&g->set_ids, key, sizeof *set, id, NULL))
            return MF_NOMEM(err);
        g->sets[g->n_sets++] = *set;
    }
    *out = (mf_gelem){.op = MF_G_SET, .arg = id};
    return MINFER_OK;
}

minfer_status mf_grules_byte(mf_grules *g, uint8_t byte, mf_gelem *out, minfer_error *err)
{
    mf_gset s = {0};
    set_range(&s, byte, byte);
    return set_elem(g, &s, out, err);
}

/* ---- classes */

static minfer_status add_block(mf_grules *g, uint32_t rule, const char *lo, const char *hi, size_t n,
                               minfer_error *err)
{
    mf_gelem e[4];
    for (size_t i = 0; i < n; i++) {
        mf_gset s = {0};
        set_range(&s, (unsigned char)lo[i], (unsigned char)hi[i]);
        MF_TRY(set_elem(g, &s, &e[i], err));
    }
    return mf_grules_choice(g, rule, e, n, err);
}

/* The last character up to hi such that all from lo to it are the texts of one sequence of byte ranges: of
 * one length, and where their bytes first differ, what follows takes all its values. */
static uint32_t block_end(uint32_t lo, uint32_t hi)
{
    static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF};
    for (int i = 0; i < 3; i++)
        if (lo <= last_of_length[i] && hi > last_of_length[i]) hi = last_of_length[i];
    for (int i = 1; i < 4; i++) {
        uint32_t low = ((uint32_t)1 << 6 * i) - 1;
        if ((lo & ~low) == (hi & ~low)) break;
        if (lo & low)
            hi = lo | low;
        else if ((hi & low) != low)
            hi = (hi & ~low) - 1;
    }
    return hi;
}

static minfer_status add_wide(mf_grules *g, uint32_t rule, mf_grange r, minfer_error *err)
{
    for (uint32_t lo = r.lo, hi; lo <= r.hi; lo = hi + 1) {
        char a[4], b[4];
        hi = block_end(lo, r.hi);
        size_t n = mf_utf8_encode(lo, a);
        mf_utf8_encode(hi, b);
        MF_TRY(add_block(g, rule, a, b, n, err));
    }
    return MINFER_OK;
}

/* The ASCII part of a class is one set, the rest one choice for each block of bytes. */
static minfer_status add_class(mf_grules *g, const mf_grange *v, size_t n, mf_gelem *out, minfer_error *err)
{
    mf_gset ascii = {0};
    size_t i = 0;
    for (; i < n && v[i].lo < 0x80; i++) set_range(&ascii, v[i].lo, v[i].hi < 0x80 ? v[i].hi : 0x7F);
    bool wide = n && v[n - 1].hi >= 0x80;
    if (!wide) return set_elem(g, &ascii, out, err);
    uint32_t rule;
    MF_TRY(add_rule(g, (mf_str){"character class", 15}, 0, &rule, err));
    g->v[rule].defined = true;
    if (i > 0) {
        MF_TRY(set_elem(g, &ascii, out, err));
        MF_TRY(mf_grules_choice(g, rule, out, 1, err));
    }
    for (i = 0; i < n; i++) {
        mf_grange r = {v[i].lo < 0x80 ? 0x80 : v[i].lo, v[i].hi};
        if (r.lo <= r.hi) MF_TRY(add_wide(g, rule, r, err));
    }
    *out = (mf_gelem){.op = MF_G_CALL, .arg = rule};
    return MINFER_OK;
}

minfer_status mf_grules_class(mf_grules *g, const mf_grange *v, size_t n, mf_gelem *out, minfer_error *err)
{
    uint32_t known = mf_strmap_get(&g->class_ids, (const char *)v, n * sizeof *v);
    if (known != MF_STRMAP_NONE) {
        *out = (mf_gelem){.op = known & 1 ? MF_G_CALL : MF_G_SET, .arg = known >> 1};
        return MINFER_OK;
    }
    MF_TRY(add_class(g, v, n, out, err));
    char *key = mf_arena_strndup(&g->arena, (const char *)v, n * sizeof *v);
    uint32_t value = out->arg << 1 | (out->op == MF_G_CALL);
    return key && mf_strmap_add(&g->class_ids, key, n * sizeof *v, value, NULL) ? MINFER_OK : MF_NOMEM(err);
}
