/* Interning of sets, their unions, and the closure of a step. */
#include "grammar/sets.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 2000, MAX_WORK = 1 << 18, MAX_EFFORT = 1 << 21, MIN_SLOTS = 256, N_UNIONS = 1 << 12 };

void mf_gsets_free(mf_gsets *s)
{
    mf_free(s->v);
    mf_free(s->entries);
    mf_free(s->slots);
    mf_free(s->unions);
    mf_free(s->work);
    mf_free(s->seen);
    mf_free(s->out);
    *s = (mf_gsets){0};
}

size_t mf_gsets_bytes(const mf_gsets *s)
{
    return s->n * sizeof *s->v + s->n_entries * sizeof *s->entries + s->n_slots * sizeof *s->slots;
}

static minfer_status too_many(minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_LIMIT, "the grammar can be read in too many ways at this point");
}

/* ---- interning */

static uint32_t hash_entries(const mf_gentry *v, size_t n)
{
    return (uint32_t)(mf_hash_bytes(v, n * sizeof *v, n) >> 16);
}

/* Where the set of these entries is in slots, or would go. */
static size_t find_slot(const mf_gsets *s, const mf_gentry *v, size_t n, uint32_t hash)
{
    size_t mask = s->n_slots - 1, i = hash & mask;
    for (; s->slots[i]; i = (i + 1) & mask) {
        const mf_gstack *set = &s->v[s->slots[i] - 1];
        if (set->hash == hash && set->part.n == n &&
            (n == 0 || memcmp(s->entries + set->part.first, v, n * sizeof *v) == 0))
            break;
    }
    return i;
}

static bool grow_slots(mf_gsets *s)
{
    size_t n = s->n_slots ? s->n_slots * 2 : MIN_SLOTS;
    uint32_t *slots = mf_calloc(n, sizeof *slots);
    if (!slots) return false;
    for (size_t k = 0; k < s->n; k++) {
        size_t i = s->v[k].hash & (n - 1);
        while (slots[i]) i = (i + 1) & (n - 1);
        slots[i] = (uint32_t)k + 1;
    }
    mf_free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return true;
}

static minfer_status set_like(mf_gsets *s, uint32_t set, int depth, minfer_error *err);

/* The number of the set of n entries, which ascend and are apart. v may not point into s->entries. */
static minfer_status intern(mf_gsets *s, const mf_gentry *v, size_t n, int depth, uint32_t *set,
                            minfer_error *err)
{
    if (s->n * 2 >= s->n_slots && !grow_slots(s)) return MF_NOMEM(err);
    uint32_t hash = hash_entries(v, n);
    size_t slot = find_slot(s, v, n, hash);
    if (s->slots[slot]) {
        *set = s->slots[slot] - 1;
        return MINFER_OK;
    }
    if (s->n >= UINT32_MAX - 1 || s->n_entries + n >= UINT32_MAX) return too_many(err);
    if (!mf_grow((void **)&s->v, &s->cap, s->n + 1, sizeof *s->v) ||
        !mf_grow((void **)&s->entries, &s->entries_cap, s->n_entries + n, sizeof *s->entries))
        return MF_NOMEM(err);
    if (n) memcpy(s->entries + s->n_entries, v, n * sizeof *v);
    *set = (uint32_t)s->n;
    s->v[s->n++] = (mf_gstack){{(uint32_t)s->n_entries, (uint32_t)n}, hash, *set};
    s->n_entries += n;
    s->slots[slot] = *set + 1;
    return set_like(s, *set, depth, err);
}

/* ---- unions */

static int by_place(const void *a, const void *b)
{
    const mf_gentry *x = a, *y = b;
    if (x->pos != y->pos) return x->pos < y->pos ? -1 : 1;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return x->rest < y->rest ? -1 : x->rest > y->rest;
}

static minfer_status unite(mf_gsets *s, uint32_t a, uint32_t b, int depth, uint32_t *both, minfer_error *err);

/* Sorts entries and makes those of one place one, with what may follow any of them. */
static minfer_status merge(mf_gsets *s, mf_gentry *v, size_t *n, int depth, minfer_error *err)
{
    size_t k = 0;
    s->effort += (uint32_t)*n;
    if (s->effort > MAX_EFFORT) return too_many(err);
    if (*n > 1) qsort(v, *n, sizeof *v, by_place);
    for (size_t i = 0; i < *n; i++) {
        if (k > 0 && v[k - 1].pos == v[i].pos && v[k - 1].count == v[i].count)
            MF_TRY(unite(s, v[k - 1].rest, v[i].rest, depth + 1, &v[k - 1].rest, err));
        else
            v[k++] = v[i];
    }
    *n = k;
    return MINFER_OK;
}

static minfer_status unite_fresh(mf_gsets *s, uint32_t a, uint32_t b, int depth, uint32_t *both,
                                 minfer_error *err)
{
    mf_gpart x = s->v[a].part, y = s->v[b].part;
    size_t n = (size_t)x.n + y.n;
    mf_gentry *v = mf_malloc(n * sizeof *v);
    if (!v) return MF_NOMEM(err);
    memcpy(v, s->entries + x.first, x.n * sizeof *v);
    memcpy(v + x.n, s->entries + y.first, y.n * sizeof *v);
    minfer_status st = merge(s, v, &n, depth, err);
    if (st == MINFER_OK) st = intern(s, v, n, depth, both, err);
    mf_free(v);
    return st;
}

static minfer_status unite(mf_gsets *s, uint32_t a, uint32_t b, int depth, uint32_t *both, minfer_error *err)
{
    if (a == b || b == MF_GSET_EMPTY) {
        *both = a;
        return MINFER_OK;
    }
    if (a > b) return unite(s, b, a, depth, both, err);
    if (a == MF_GSET_EMPTY) {
        *both = b;
        return MINFER_OK;
    }
    if (depth > MAX_DEPTH) return too_many(err);
    size_t slot = (a * (uint64_t)0x9e3779b1u ^ b * (uint64_t)0x85ebca77u) % N_UNIONS;
    mf_gpair known = s->unions[slot];
    if (known.a == a && known.b == b) {
        *both = known.both;
        return MINFER_OK;
    }
    MF_TRY(unite_fresh(s, a, b, depth, both, err));
    s->unions[slot] = (mf_gpair){a, b, *both};
    return MINFER_OK;
}

/* ---- sets that are alike */

static uint32_t like_count(const mf_gsets *s, uint32_t pos, uint32_t count)
{
    const mf_gelem *e = &s->p->nodes[pos];
    if (e->op != MF_G_REPEAT) return count;
    uint64_t after = (uint64_t)count + s->horizon;
    if (after < e->min) return 0;
    return count >= e->min && after < e->max ? e->min : count;
}

static minfer_status set_like(mf_gsets *s, uint32_t set, int depth, minfer_error *err)
{
    mf_gpart part = s->v[set].part;
    size_t n = part.n;
    bool same = true;
    for (size_t i = 0; i < n && same; i++) {
        const mf_gentry *e = &s->entries[part.first + i];
        same = like_count(s, e->pos, e->count) == e->count && s->v[e->rest].like == e->rest;
    }
    if (same) return MINFER_OK;
    mf_gentry *v = mf_malloc(n * sizeof *v);
    if (!v) return MF_NOMEM(err);
    for (size_t i = 0; i < n; i++) {
        const mf_gentry *e = &s->entries[part.first + i];
        v[i] = (mf_gentry){e->pos, like_count(s, e->pos, e->count), s->v[e->rest].like};
    }
    uint32_t like = set;
    minfer_status st = merge(s, v, &n, depth, err);
    if (st == MINFER_OK) st = intern(s, v, n, depth, &like, err);
    s->v[set].like = like;
    mf_free(v);
    return st;
}

/* ---- the closure: from positions anywhere to positions that take a byte */

static bool grow_seen(mf_gsets *s)
{
    size_t n = s->n_seen ? s->n_seen * 2 : MIN_SLOTS;
    uint32_t *seen = mf_calloc(n, sizeof *seen);
    if (!seen) return false;
    for (size_t k = 0; k < s->n_work; k++) {
        size_t i = hash_entries(&s->work[k], 1) & (n - 1);
        while (seen[i]) i = (i + 1) & (n - 1);
        seen[i] = (uint32_t)k + 1;
    }
    mf_free(s->seen);
    s->seen = seen;
    s->n_seen = n;
    return true;
}

/* Adds an entry to what is to be closed, once. */
static minfer_status visit(mf_gsets *s, uint32_t pos, uint32_t count, uint32_t rest, minfer_error *err)
{
    mf_gentry e = {pos, count, rest};
    if (s->n_work >= MAX_WORK || ++s->effort > MAX_EFFORT) return too_many(err);
    if (s->n_work * 2 >= s->n_seen && !grow_seen(s)) return MF_NOMEM(err);
    size_t mask = s->n_seen - 1, i = hash_entries(&e, 1) & mask;
    for (; s->seen[i]; i = (i + 1) & mask)
        if (memcmp(&s->work[s->seen[i] - 1], &e, sizeof e) == 0) return MINFER_OK;
    if (!mf_grow((void **)&s->work, &s->work_cap, s->n_work + 1, sizeof *s->work)) return MF_NOMEM(err);
    s->work[s->n_work++] = e;
    s->seen[i] = (uint32_t)s->n_work;
    return MINFER_OK;
}

/* Enters a rule after which the text goes on at `after`. Where nothing is left to do there, what follows is
 * what followed anyway: so that a rule that ends with itself does not pile up. */
static minfer_status enter(mf_gsets *s, uint32_t rule, mf_gentry after, minfer_error *err)
{
    uint32_t rest = after.rest;
    if (s->p->nodes[after.pos].op != MF_G_END) MF_TRY(intern(s, &after, 1, 0, &rest, err));
    mf_gpart alts = s->p->rules[rule];
    for (uint32_t i = 0; i < alts.n; i++) MF_TRY(visit(s, s->p->alts[alts.first + i], 0, rest, err));
    return MINFER_OK;
}

static minfer_status close_repeat(mf_gsets *s, const mf_gelem *e, mf_gentry at, minfer_error *err)
{
    uint32_t next = at.count + 1;
    if (at.count >= e->min) MF_TRY(visit(s, at.pos + 1, 0, at.rest, err));
    if (at.count >= e->max) return MINFER_OK;
    if (next == e->max) return enter(s, e->arg, (mf_gentry){at.pos + 1, 0, at.rest}, err);
    if (e->max == MF_G_MANY && next > e->min) next = e->min;
    return enter(s, e->arg, (mf_gentry){at.pos, next, at.rest}, err);
}

static minfer_status close_end(mf_gsets *s, uint32_t rest, minfer_error *err)
{
    mf_gpart part = s->v[rest].part;
    for (uint32_t i = 0; i < part.n; i++) {
        mf_gentry e = s->entries[part.first + i];
        MF_TRY(visit(s, e.pos, e.count, e.rest, err));
    }
    return MINFER_OK;
}

static minfer_status close_one(mf_gsets *s, mf_gentry at, minfer_error *err)
{
    const mf_gelem *e = &s->p->nodes[at.pos];
    switch (e->op) {
    case MF_G_END: return close_end(s, at.rest, err);
    case MF_G_CALL: return enter(s, e->arg, (mf_gentry){at.pos + 1, 0, at.rest}, err);
    case MF_G_REPEAT: return close_repeat(s, e, at, err);
    case MF_G_SET:
    case MF_G_ACCEPT: break;
    }
    if (!mf_grow((void **)&s->out, &s->out_cap, s->n_out + 1, sizeof *s->out)) return MF_NOMEM(err);
    s->out[s->n_out++] = at;
    return MINFER_OK;
}

/* Closes what was visited and makes it a set. */
static minfer_status finish(mf_gsets *s, minfer_status st, uint32_t *set, minfer_error *err)
{
    s->n_out = 0;
    for (size_t i = 0; i < s->n_work && st == MINFER_OK; i++) st = close_one(s, s->work[i], err);
    if (s->n_work * 4 < s->n_seen)
        for (size_t i = 0; i < s->n_work; i++) {
            size_t at = hash_entries(&s->work[i], 1) & (s->n_seen - 1);
            for (; s->seen[at]; at = (at + 1) & (s->n_seen - 1)) s->seen[at] = 0;
        }
    else if (s->n_seen)
        memset(s->seen, 0, s->n_seen * sizeof *s->seen);
    s->n_work = 0;
    if (st == MINFER_OK) st = merge(s, s->out, &s->n_out, 0, err);
    return st == MINFER_OK ? intern(s, s->out, s->n_out, 0, set, err) : st;
}

minfer_status mf_gsets_start(mf_gsets *s, uint32_t *set, minfer_error *err)
{
    return finish(s, enter(s, s->p->root, (mf_gentry){0, 0, MF_GSET_EMPTY}, err), set, err);
}

minfer_status mf_gsets_step(mf_gsets *s, uint32_t from, uint32_t class, uint32_t *to, minfer_error *err)
{
    mf_gpart part = s->v[from].part;
    minfer_status st = MINFER_OK;
    for (uint32_t i = 0; i < part.n && st == MINFER_OK; i++) {
        mf_gentry e = s->entries[part.first + i];
        const mf_gelem *node = &s->p->nodes[e.pos];
        if (node->op == MF_G_SET && mf_program_takes(s->p, node->arg, class))
            st = visit(s, e.pos + 1, 0, e.rest, err);
    }
    return finish(s, st, to, err);
}

/* ---- making, collecting */

static minfer_status reset(mf_gsets *s, minfer_error *err)
{
    mf_gentry bottom = {0, 0, MF_GSET_EMPTY};
    uint32_t set;
    s->n = s->n_entries = 0;
    if (s->n_slots) memset(s->slots, 0, s->n_slots * sizeof *s->slots);
    memset(s->unions, 0, N_UNIONS * sizeof *s->unions);
    MF_TRY(intern(s, &bottom, 0, 0, &set, err));
    return intern(s, &bottom, 1, 0, &set, err);
}

minfer_status mf_gsets_init(mf_gsets *s, const mf_program *p, uint32_t horizon, minfer_error *err)
{
    *s = (mf_gsets){.p = p, .horizon = horizon};
    s->unions = mf_calloc(N_UNIONS, sizeof *s->unions);
    minfer_status st = s->unions ? reset(s, err) : MF_NOMEM(err);
    if (st != MINFER_OK) mf_gsets_free(s);
    return st;
}

/* Copies the sets that are needed, least numbers first, into t; number[] tells what becomes of each. */
static minfer_status copy_needed(const mf_gsets *s, const bool *needed, mf_gsets *t, uint32_t *number,
                                 minfer_error *err)
{
    mf_gentry *v = NULL;
    size_t cap = 0;
    minfer_status st = MINFER_OK;
    for (size_t k = 0; k < s->n && st == MINFER_OK; k++) {
        mf_gpart part = s->v[k].part;
        if (!needed[k]) continue;
        if (!mf_grow((void **)&v, &cap, part.n + 1, sizeof *v)) {
            st = MF_NOMEM(err);
            break;
        }
        for (uint32_t i = 0; i < part.n; i++) {
            v[i] = s->entries[part.first + i];
            v[i].rest = number[v[i].rest];
        }
        st = intern(t, v, part.n, 0, &number[k], err); /* places, and so their order, stay */
    }
    mf_free(v);
    return st;
}

minfer_status mf_gsets_collect(mf_gsets *s, uint32_t *const *keep, size_t n, minfer_error *err)
{
    mf_gsets t;
    bool *needed = mf_calloc(s->n, sizeof *needed);
    uint32_t *number = mf_calloc(s->n, sizeof *number);
    minfer_status st = needed && number ? mf_gsets_init(&t, s->p, s->horizon, err) : MF_NOMEM(err);
    if (st == MINFER_OK) {
        for (size_t i = 0; i < n; i++) needed[*keep[i]] = true;
        for (size_t k = s->n; k-- > 0;)
            for (uint32_t i = 0; needed[k] && i < s->v[k].part.n; i++)
                needed[s->entries[s->v[k].part.first + i].rest] = true;
        st = copy_needed(s, needed, &t, number, err);
        if (st == MINFER_OK) {
            for (size_t i = 0; i < n; i++) *keep[i] = number[*keep[i]];
            mf_gsets old = *s;
            *s = t;
            t = old;
        }
        mf_gsets_free(&t);
    }
    mf_free(needed);
    mf_free(number);
    return st;
}
