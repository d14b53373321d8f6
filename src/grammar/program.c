/* Flattening rules, and sorting bytes into classes. */
#include "grammar/program.h"

#include "grammar/gbnf.h"

#include <string.h>

void mf_program_free(mf_program *p)
{
    mf_free(p->nodes);
    mf_free(p->alts);
    mf_free(p->rules);
    mf_free(p->sets);
    *p = (mf_program){0};
}

static bool has(const mf_gset *s, unsigned i)
{
    return s->bits[i / 64] >> i % 64 & 1;
}

/* Splits each class at the border of a set. */
static void split_classes(mf_program *p, const mf_gset *set)
{
    uint32_t n = p->n_classes;
    int16_t split[256];
    memset(split, -1, sizeof split);
    for (unsigned b = 0; b < 256; b++) {
        uint8_t c = p->class_of[b];
        if (has(set, b) == has(set, p->example[c])) continue;
        if (split[c] < 0) {
            split[c] = (int16_t)n;
            p->example[n++] = (uint8_t)b;
        }
        p->class_of[b] = (uint8_t)split[c];
    }
    p->n_classes = n;
}

static void make_sets(mf_program *p, const mf_grules *g)
{
    p->n_classes = 1;
    for (size_t i = 0; i < g->n_sets; i++) split_classes(p, &g->sets[i]);
    for (size_t i = 0; i < g->n_sets; i++)
        for (uint32_t c = 0; c < p->n_classes; c++)
            if (has(&g->sets[i], p->example[c])) p->sets[i].bits[c / 64] |= (uint64_t)1 << c % 64;
}

static void make_nodes(mf_program *p, const mf_grules *g)
{
    uint32_t node = 0, alt = 0;
    p->nodes[node++] = (mf_gelem){.op = MF_G_ACCEPT};
    for (size_t r = 0; r < g->n; r++) {
        p->rules[r] = (mf_gpart){alt, (uint32_t)g->v[r].n};
        for (size_t a = 0; a < g->v[r].n; a++) {
            const mf_galt *s = &g->v[r].alts[a];
            p->alts[alt++] = node;
            if (s->n) memcpy(p->nodes + node, s->v, s->n * sizeof *s->v);
            node += s->n;
            p->nodes[node++] = (mf_gelem){.op = MF_G_END};
        }
    }
}

minfer_status mf_program_make(mf_program *p, const mf_grules *g, uint32_t root, minfer_error *err)
{
    size_t n_alts = 0;
    *p = (mf_program){.root = root, .n_rules = g->n, .n_nodes = 1};
    for (size_t r = 0; r < g->n; r++) {
        n_alts += g->v[r].n;
        for (size_t a = 0; a < g->v[r].n; a++) p->n_nodes += g->v[r].alts[a].n + 1;
    }
    p->nodes = mf_calloc(p->n_nodes, sizeof *p->nodes);
    p->alts = mf_calloc(n_alts, sizeof *p->alts);
    p->rules = mf_calloc(g->n, sizeof *p->rules);
    p->sets = mf_calloc(g->n_sets, sizeof *p->sets);
    if (!p->nodes || !p->alts || !p->rules || !p->sets) {
        mf_program_free(p);
        return MF_NOMEM(err);
    }
    make_sets(p, g);
    make_nodes(p, g);
    return MINFER_OK;
}

minfer_status mf_program_read(mf_program *p, const char *text, size_t n, mf_str *culprit, minfer_error *err)
{
    mf_grules g = {0};
    uint32_t root = 0, bad = MF_G_NONE;
    *p = (mf_program){0};
    minfer_status st = mf_gbnf_read(text, n, &g, &root, err);
    if (st == MINFER_OK) st = mf_grules_check(&g, &bad, err);
    if (st == MINFER_OK) st = mf_program_make(p, &g, root, err);
    if (bad != MF_G_NONE) mf_gbnf_prefix(st, text, g.v[bad].at, err);
    if (culprit)
        *culprit = bad == MF_G_NONE ? (mf_str){"", 0} : (mf_str){text + g.v[bad].at, g.v[bad].name.n};
    mf_grules_free(&g);
    return st;
}
