/* States, the walk of the trie, and keeping memory within bounds. A state is a set that can be stepped from;
 * it has a row of where each class of bytes leads, filled when first asked. */
#include "grammar/matcher.h"

#include <string.h>

enum {
    DEAD = 0,              /* the state of the empty set */
    MAX_MASKS = 512,       /* 19 KB each with 151,936 tokens */
    TIDY_BYTES = 32 << 20, /* beyond it, what no place needs is dropped */
    MAX_BYTES = 256 << 20, /* beyond it, a walk gives up */
};
#define UNKNOWN UINT32_MAX

typedef struct state {
    uint32_t set;
    uint32_t mask; /* + 1; 0: not computed */
} state;

struct mf_matcher {
    const mf_program *p;
    mf_trie *trie;
    mf_gsets sets;
    state *states;
    size_t n_states, states_cap;
    uint32_t *rows; /* [n_states][classes]: states, or UNKNOWN */
    size_t rows_cap;
    uint32_t *state_of; /* set -> state + 1 */
    size_t state_of_cap;
    uint64_t *masks;
    size_t n_masks, n_words, masks_cap;
    uint32_t *path; /* of a walk: rows of the states at each depth */
    mf_gplace *places;
};

void mf_matcher_free(mf_matcher *m)
{
    if (!m) return;
    mf_gsets_free(&m->sets);
    mf_trie_unref(m->trie);
    mf_free(m->states);
    mf_free(m->rows);
    mf_free(m->state_of);
    mf_free(m->masks);
    mf_free(m->path);
    mf_free(m);
}

const mf_trie *mf_matcher_trie(const mf_matcher *m)
{
    return m->trie;
}

/* ---- states */

static minfer_status find_state(mf_matcher *m, uint32_t set, uint32_t *out, minfer_error *err)
{
    size_t cap = m->state_of_cap, classes = m->p->n_classes;
    if (!mf_grow((void **)&m->state_of, &m->state_of_cap, set + 1, sizeof *m->state_of)) return MF_NOMEM(err);
    memset(m->state_of + cap, 0, (m->state_of_cap - cap) * sizeof *m->state_of);
    if (m->state_of[set]) {
        *out = m->state_of[set] - 1;
        return MINFER_OK;
    }
    if ((m->n_states + 1) * classes > UINT32_MAX)
        return mf_fail(err, MINFER_ERR_LIMIT, "the grammar needs more than %zu states", m->n_states);
    if (!mf_grow((void **)&m->states, &m->states_cap, m->n_states + 1, sizeof *m->states) ||
        !mf_grow((void **)&m->rows, &m->rows_cap, (m->n_states + 1) * classes, sizeof *m->rows))
        return MF_NOMEM(err);
    memset(m->rows + m->n_states * classes, 0xFF, classes * sizeof *m->rows);
    m->states[m->n_states] = (state){.set = set};
    *out = (uint32_t)m->n_states++;
    m->state_of[set] = *out + 1;
    return MINFER_OK;
}

/* Where a class leads from the state whose row begins at `row`. */
static minfer_status step(mf_matcher *m, uint32_t row, uint32_t class, uint32_t *to, minfer_error *err)
{
    *to = m->rows[row + class];
    if (*to != UNKNOWN) return MINFER_OK;
    uint32_t set;
    MF_TRY(mf_gsets_step(&m->sets, m->states[row / m->p->n_classes].set, class, &set, err));
    MF_TRY(find_state(m, set, to, err));
    m->rows[row + class] = *to;
    return MINFER_OK;
}

/* ---- memory */

size_t mf_matcher_bytes(const mf_matcher *m)
{
    return mf_gsets_bytes(&m->sets) + m->n_states * (sizeof(state) + 4 * m->p->n_classes);
}

static minfer_status forget(mf_matcher *m, minfer_error *err)
{
    uint32_t dead;
    m->n_states = m->n_masks = 0;
    if (m->state_of_cap) memset(m->state_of, 0, m->state_of_cap * sizeof *m->state_of);
    return find_state(m, MF_GSET_EMPTY, &dead, err);
}

/* Keeps only where places stand, when there is much else. */
static minfer_status tidy(mf_matcher *m, minfer_error *err)
{
    size_t n = 0;
    if (mf_matcher_bytes(m) <= TIDY_BYTES) return MINFER_OK;
    for (mf_gplace *a = m->places; a; a = a->next) n++;
    uint32_t **keep = mf_calloc(n, sizeof *keep);
    if (!keep) return MF_NOMEM(err);
    n = 0;
    for (mf_gplace *a = m->places; a; a = a->next) keep[n++] = &a->set;
    minfer_status st = mf_gsets_collect(&m->sets, keep, n, err);
    mf_free(keep);
    return st == MINFER_OK ? forget(m, err) : st;
}

/* ---- masks */

static void allow(uint64_t *bits, int32_t id)
{
    bits[id / 64] |= (uint64_t)1 << id % 64;
}

/* Goes down the trie as far as the grammar goes along. */
static minfer_status walk(mf_matcher *m, uint32_t from, uint64_t *bits, minfer_error *err)
{
    const mf_trie *t = m->trie;
    const uint32_t classes = m->p->n_classes;
    m->path[0] = from * classes;
    for (size_t i = 0; i < t->n_nodes;) {
        const mf_trie_node *node = &t->nodes[i];
        uint32_t row = m->path[node->depth - 1], class = m->p->class_of[node->byte];
        uint32_t to = m->rows[row + class];
        if (to == UNKNOWN) {
            MF_TRY(step(m, row, class, &to, err));
            if (mf_matcher_bytes(m) > MAX_BYTES)
                return mf_fail(err, MINFER_ERR_LIMIT, "the grammar needs more than %d MiB of states",
                               MAX_BYTES >> 20);
        }
        if (to == DEAD) {
            i = node->skip;
            continue;
        }
        m->path[node->depth] = to * classes;
        if (node->token >= 0) {
            allow(bits, node->token);
            for (int32_t id = node->more ? t->same[node->token] : -1; id >= 0; id = t->same[id])
                allow(bits, id);
        }
        i++;
    }
    return MINFER_OK;
}

static minfer_status new_mask(mf_matcher *m, uint64_t **bits, minfer_error *err)
{
    if (m->n_masks == MAX_MASKS) {
        m->n_masks = 0;
        for (size_t i = 0; i < m->n_states; i++) m->states[i].mask = 0;
    }
    size_t need = (m->n_masks + 1) * m->n_words;
    if (!mf_grow((void **)&m->masks, &m->masks_cap, need, sizeof *m->masks)) return MF_NOMEM(err);
    *bits = m->masks + m->n_masks * m->n_words;
    memset(*bits, 0, m->n_words * sizeof **bits);
    return MINFER_OK;
}

static void allow_ends(const mf_trie *t, uint64_t *bits)
{
    for (size_t i = 0; i < t->n_ends; i++) allow(bits, t->ends[i]);
}

static minfer_status mask_of(mf_matcher *m, uint32_t set, const uint64_t **out, minfer_error *err)
{
    uint32_t s;
    MF_TRY(find_state(m, set, &s, err));
    if (m->states[s].mask == 0) {
        uint64_t *bits = NULL;
        MF_TRY(new_mask(m, &bits, err));
        if (set != MF_GSET_BOTTOM) MF_TRY(walk(m, s, bits, err));
        if (mf_gsets_can_end(&m->sets, set)) allow_ends(m->trie, bits);
        m->states[s].mask = (uint32_t)++m->n_masks;
    }
    *out = m->masks + (m->states[s].mask - 1) * m->n_words;
    return MINFER_OK;
}

minfer_status mf_matcher_mask(mf_gplace *at, const uint64_t **bits, minfer_error *err)
{
    mf_matcher *m = at->m;
    MF_TRY(tidy(m, err));
    m->sets.effort = 0;
    return mask_of(m, at->ended ? MF_GSET_BOTTOM : mf_gsets_like(&m->sets, at->set), bits, err);
}

/* ---- places */

static minfer_status refuse(const mf_gplace *at, int32_t id, minfer_error *err)
{
    mf_str s = mf_trie_text(at->m->trie, id);
    if (at->ended) return mf_fail(err, MINFER_ERR_ARG, "token %d after the end of the grammar's text", id);
    if (s.n == 0)
        return mf_fail(err, MINFER_ERR_ARG, "token %d %s here by the grammar", id,
                       mf_trie_is_end(at->m->trie, id) ? "would end the text, which is not allowed"
                                                       : "has no text and is not allowed");
    return mf_fail(err, MINFER_ERR_ARG, "token %d (\"%.*s\") is not allowed here by the grammar", id,
                   s.n < 40 ? (int)s.n : 40, s.s);
}

minfer_status mf_matcher_accept(mf_gplace *at, int32_t id, minfer_error *err)
{
    mf_matcher *m = at->m;
    uint32_t s;
    if (id < 0 || id >= m->trie->n_vocab)
        return mf_fail(err, MINFER_ERR_ARG, "token %d is not in 0..%d", id, m->trie->n_vocab - 1);
    if (mf_trie_is_end(m->trie, id)) {
        if (!at->ended && !mf_gsets_can_end(&m->sets, at->set)) return refuse(at, id, err);
        at->ended = true;
        return MINFER_OK;
    }
    mf_str text = mf_trie_text(m->trie, id);
    if (at->ended || text.n == 0) return refuse(at, id, err);
    MF_TRY(tidy(m, err));
    m->sets.effort = 0;
    MF_TRY(find_state(m, at->set, &s, err));
    for (size_t i = 0; i < text.n && s != DEAD; i++)
        MF_TRY(step(m, s * m->p->n_classes, m->p->class_of[(unsigned char)text.s[i]], &s, err));
    if (s == DEAD) return refuse(at, id, err);
    at->set = m->states[s].set;
    return MINFER_OK;
}

bool mf_matcher_complete(const mf_gplace *at)
{
    return at->ended || !mf_gsets_can_go_on(&at->m->sets, at->set);
}

minfer_status mf_matcher_restart(mf_gplace *at, minfer_error *err)
{
    at->m->sets.effort = 0;
    MF_TRY(mf_gsets_start(&at->m->sets, &at->set, err));
    at->ended = false;
    return MINFER_OK;
}

static void link_place(mf_matcher *m, mf_gplace *at)
{
    at->m = m;
    at->prev = NULL;
    at->next = m->places;
    if (at->next) at->next->prev = at;
    m->places = at;
}

minfer_status mf_matcher_enter(mf_matcher *m, mf_gplace *at, minfer_error *err)
{
    mf_gplace p = {.m = m};
    MF_TRY(mf_matcher_restart(&p, err));
    *at = p;
    link_place(m, at);
    return MINFER_OK;
}

void mf_matcher_join(mf_gplace *to, const mf_gplace *from)
{
    *to = *from;
    link_place(from->m, to);
}

void mf_matcher_leave(mf_gplace *at)
{
    if (at->prev) at->prev->next = at->next;
    if (at->next) at->next->prev = at->prev;
    if (at->m && at->m->places == at) at->m->places = at->next;
    *at = (mf_gplace){0};
}

minfer_status mf_matcher_create(const mf_program *p, mf_trie *trie, mf_matcher **out, minfer_error *err)
{
    mf_matcher *m = mf_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return MF_NOMEM(err);
    m->p = p;
    m->trie = mf_trie_ref(trie);
    m->n_words = ((size_t)trie->n_vocab + 63) / 64;
    m->path = mf_calloc((size_t)trie->longest + 1, sizeof *m->path);
    minfer_status st = m->path ? mf_gsets_init(&m->sets, p, trie->longest, err) : MF_NOMEM(err);
    if (st == MINFER_OK) st = forget(m, err);
    if (st != MINFER_OK) {
        mf_matcher_free(m);
        return st;
    }
    *out = m;
    return MINFER_OK;
}
