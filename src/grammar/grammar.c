/* The public grammar object, and readers. */
#include "grammar/grammar.h"

#include "grammar/schema.h"

#include <math.h>
#include <string.h>

typedef struct used { /* a vocabulary */
    struct used *next;
    mf_matcher *m;
} used;

struct minfer_grammar {
    int refs; /* the caller's, and one for each reader */
    mf_program p;
    used *used;
};

/* The grammar of a program that was read, which becomes its own. */
static minfer_status create(minfer_status st, mf_program *p, minfer_grammar **out, minfer_error *err)
{
    *out = NULL;
    if (st != MINFER_OK) return st;
    minfer_grammar *g = mf_calloc(1, sizeof *g);
    if (!g) {
        mf_program_free(p);
        return MF_NOMEM(err);
    }
    g->refs = 1;
    g->p = *p;
    *out = g;
    return MINFER_OK;
}

minfer_status minfer_grammar_create(const char *gbnf, size_t n, minfer_grammar **out, minfer_error *err)
{
    mf_program p;
    minfer_status st = mf_program_read(&p, gbnf, n, NULL, err);
    if (st != MINFER_OK) mf_fail_prefix(err, st, "grammar");
    return create(st, &p, out, err);
}

minfer_status minfer_grammar_create_schema(const char *json, size_t n, minfer_grammar **out,
                                           minfer_error *err)
{
    mf_program p;
    mf_buf text = {0};
    minfer_status st = mf_schema_read(json, n, &text, &p, err);
    mf_buf_free(&text);
    return create(st, &p, out, err);
}

static void unref(minfer_grammar *g)
{
    if (--g->refs > 0) return;
    for (used *u = g->used, *next; u; u = next) {
        next = u->next;
        mf_matcher_free(u->m);
        mf_free(u);
    }
    mf_program_free(&g->p);
    mf_free(g);
}

void minfer_grammar_free(minfer_grammar *g)
{
    if (g) unref(g);
}

static minfer_status matcher_for(minfer_grammar *g, mf_trie *trie, mf_matcher **out, minfer_error *err)
{
    for (used *u = g->used; u; u = u->next)
        if (mf_matcher_trie(u->m) == trie) {
            *out = u->m;
            return MINFER_OK;
        }
    used *u = mf_calloc(1, sizeof *u);
    minfer_status st = u ? mf_matcher_create(&g->p, trie, &u->m, err) : MF_NOMEM(err);
    if (st != MINFER_OK) {
        mf_free(u);
        return st;
    }
    u->next = g->used;
    g->used = u;
    *out = u->m;
    return MINFER_OK;
}

/* ---- readers */

minfer_status mf_reader_open(mf_reader *r, minfer_grammar *g, mf_trie *trie, minfer_error *err)
{
    mf_matcher *m;
    mf_gplace start = {0};
    if (g) {
        MF_TRY(matcher_for(g, trie, &m, err));
        MF_TRY(mf_matcher_enter(m, &start, err));
        g->refs++;
    }
    mf_reader_close(r);
    r->g = g;
    if (g) mf_matcher_join(&r->at, &start);
    mf_matcher_leave(&start);
    return MINFER_OK;
}

void mf_reader_close(mf_reader *r)
{
    mf_matcher_leave(&r->at);
    if (r->g) unref(r->g);
    r->g = NULL;
}

void mf_reader_copy(mf_reader *r, const mf_reader *from)
{
    if (r == from) return;
    if (from->g) from->g->refs++;
    mf_reader_close(r);
    r->g = from->g;
    if (r->g) mf_matcher_join(&r->at, &from->at);
}

minfer_status mf_reader_restart(mf_reader *r, minfer_error *err)
{
    return r->g ? mf_matcher_restart(&r->at, err) : MINFER_OK;
}

/* Forbids those of 64 tokens that have no bit. */
static void apply(uint64_t bits, float *logits, int32_t n)
{
    if (bits == UINT64_MAX) return;
    for (int32_t i = 0; i < n; i++) logits[i] = bits >> i & 1 ? logits[i] : -INFINITY;
}

minfer_status mf_reader_mask(mf_reader *r, float *logits, int32_t n, minfer_error *err)
{
    const uint64_t *bits;
    uint64_t any = 0;
    if (!r->g) return MINFER_OK;
    MF_TRY(mf_matcher_mask(&r->at, &bits, err));
    for (int32_t i = 0; i < n; i += 64) {
        any |= bits[i / 64];
        apply(bits[i / 64], logits + i, n - i < 64 ? n - i : 64);
    }
    if (any) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_STATE, "no token of the vocabulary can go on with the text here");
}

minfer_status mf_reader_accept(mf_reader *r, int32_t id, minfer_error *err)
{
    return r->g ? mf_matcher_accept(&r->at, id, err) : MINFER_OK;
}

bool mf_reader_exhausted(const mf_reader *r)
{
    return r->g && mf_matcher_complete(&r->at) && mf_matcher_trie(r->at.m)->n_ends == 0;
}
