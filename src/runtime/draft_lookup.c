/* Drafts from the text itself: what followed the last time its end stood there before.
 *
 * Every place of the text is entered under its last MIN_MATCH tokens, and the entries of a hash hang in a
 * chain from the latest to the earliest. The longest match wins, the latest among equal ones. A text that
 * was cut back takes its entries out again, last in first out. */
#include "runtime/draft.h"

#include <string.h>

enum {
    MIN_MATCH = 2, /* tokens */
    ENOUGH = 32,   /* a match this long is not compared further */
    MOST = 256,    /* entries of a chain that are looked at */
    FIRST_SIZE = 1024
};

typedef struct lookup {
    minfer_draft base;
    int32_t *tokens;  /* [n] the text that is entered */
    int32_t *earlier; /* [n] the entry before that of place i, in its chain; -1: none */
    size_t n, cap, earlier_cap;
    int32_t *latest; /* [n_latest], a power of two: heads of chains */
    size_t n_latest;
    int32_t match; /* the place whose continuation is the draft; set by look */
} lookup;

static size_t bucket(const lookup *l, size_t place)
{
    uint64_t h = 0;
    for (size_t i = 0; i < MIN_MATCH; i++) h = (h ^ (uint32_t)l->tokens[place - i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 32) & (l->n_latest - 1);
}

static void enter(lookup *l, size_t place)
{
    l->earlier[place] = -1;
    if (place + 1 < MIN_MATCH) return;
    int32_t *head = &l->latest[bucket(l, place)];
    l->earlier[place] = *head;
    *head = (int32_t)place;
}

static void cut(lookup *l, size_t n)
{
    for (; l->n > n; l->n--)
        if (l->n >= MIN_MATCH) l->latest[bucket(l, l->n - 1)] = l->earlier[l->n - 1];
}

/* Chains stay short on average: there are as many as places, at least. */
static bool more_chains(lookup *l, size_t n)
{
    size_t size = l->n_latest ? l->n_latest : FIRST_SIZE;
    while (size < n) size *= 2;
    if (size == l->n_latest) return true;
    int32_t *latest = mf_calloc(size, sizeof *latest);
    if (!latest) return false;
    memset(latest, 0xff, size * sizeof *latest);
    mf_free(l->latest);
    l->latest = latest;
    l->n_latest = size;
    for (size_t i = 0; i < l->n; i++) enter(l, i);
    return true;
}

/* How many tokens the text begins with that are entered. */
static size_t same_tokens(const lookup *l, mf_draft_text t)
{
    size_t same = 0, most = l->n < t.n ? l->n : t.n;
    if (most && memcmp(l->tokens, t.tokens, most * sizeof *l->tokens) == 0) return most; /* nearly always */
    while (same < most && l->tokens[same] == t.tokens[same]) same++;
    return same;
}

static minfer_status take_text(lookup *l, mf_draft_text t, minfer_error *err)
{
    cut(l, same_tokens(l, t));
    if (!more_chains(l, t.n) || !mf_grow((void **)&l->tokens, &l->cap, t.n, sizeof *l->tokens) ||
        !mf_grow((void **)&l->earlier, &l->earlier_cap, t.n, sizeof *l->earlier))
        return MF_NOMEM(err);
    for (; l->n < t.n; l->n++) {
        l->tokens[l->n] = t.tokens[l->n];
        enter(l, l->n);
    }
    return MINFER_OK;
}

/* How many tokens up to place are those at the end of the text. */
static int32_t match_length(const lookup *l, size_t place)
{
    int32_t n = 0;
    size_t end = l->n - 1;
    while (n < ENOUGH && (size_t)n <= place && l->tokens[place - (size_t)n] == l->tokens[end - (size_t)n])
        n++;
    return n;
}

static int32_t longest_match(lookup *l)
{
    int32_t best = 0, place = l->n >= MIN_MATCH ? l->earlier[l->n - 1] : -1;
    for (int i = 0; i < MOST && place >= 0 && best < ENOUGH; i++, place = l->earlier[place]) {
        int32_t n = match_length(l, (size_t)place);
        if (n <= best) continue;
        best = n;
        l->match = place;
    }
    return best;
}

static minfer_status look(minfer_draft *d, mf_draft_text t, int32_t *kind, minfer_error *err)
{
    lookup *l = (lookup *)d;
    MF_TRY(take_text(l, t, err));
    int32_t n = longest_match(l);
    *kind = n < MIN_MATCH ? -1 : n < 4 ? 0 : n < 8 ? 1 : n < 16 ? 2 : 3;
    return MINFER_OK;
}

/* Where the match reaches the end of the text, the draft itself goes on: a repetition repeats. */
static minfer_status propose(minfer_draft *d, mf_draft_text t, int32_t n, int32_t *out, int32_t *got,
                             minfer_error *err)
{
    const lookup *l = (const lookup *)d;
    (void)err;
    for (int32_t i = 0; i < n; i++) {
        size_t from = (size_t)(l->match + 1 + i);
        out[i] = from < t.n ? t.tokens[from] : out[from - t.n];
    }
    *got = n;
    return MINFER_OK;
}

static void lookup_free(minfer_draft *d)
{
    lookup *l = (lookup *)d;
    mf_free(l->tokens);
    mf_free(l->earlier);
    mf_free(l->latest);
    mf_free(l);
}

minfer_status minfer_draft_create_lookup(const minfer_draft_options *o, minfer_draft **out, minfer_error *err)
{
    static const mf_draft_ops ops = {.look = look, .propose = propose, .free = lookup_free};
    *out = NULL;
    lookup *l = mf_calloc(1, sizeof *l);
    if (!l) return MF_NOMEM(err);
    minfer_status st = mf_draft_init(&l->base, &ops, o, err);
    if (st != MINFER_OK) {
        mf_free(l);
        return st;
    }
    *out = &l->base;
    return MINFER_OK;
}
