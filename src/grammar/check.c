/* What must hold of rules before they are run: every rule ends, none begins with itself, and no repetition
 * goes round without taking a byte. Owns nothing. */
#include "grammar/rules.h"

#include <string.h>

/* ---- facts that spread from the elements to the rules */

typedef bool elem_fn(const mf_gelem *e); /* holds without knowing anything of its rule */

static bool takes_none(const mf_gelem *e) /* may be empty */
{
    return e->op == MF_G_REPEAT && e->min == 0;
}

static bool ends(const mf_gelem *e)
{
    return e->op == MF_G_SET || takes_none(e);
}

/* A choice, the rule it belongs to, and how many of its elements are not known to hold. */
typedef struct open_choice {
    uint32_t rule, open;
} open_choice;

typedef struct spread {
    const mf_grules *g;
    elem_fn *holds;
    bool *known;          /* per rule */
    open_choice *choices; /* in order of rules */
    uint32_t *first;      /* per rule + 1: its part of users */
    uint32_t *users;      /* choices that wait for the rule, once per element */
    uint32_t *todo;
    size_t n_todo;
} spread;

static void learn(spread *s, uint32_t rule)
{
    if (s->known[rule]) return;
    s->known[rule] = true;
    s->todo[s->n_todo++] = rule;
}

/* Walks all elements that wait for a rule; with users set, enters them. */
static void visit(spread *s, bool enter)
{
    uint32_t choice = 0;
    for (uint32_t r = 0; r < s->g->n; r++)
        for (size_t a = 0; a < s->g->v[r].n; a++, choice++) {
            const mf_galt *alt = &s->g->v[r].alts[a];
            for (uint32_t i = 0; i < alt->n; i++) {
                const mf_gelem *e = &alt->v[i];
                if (s->holds(e)) continue;
                if (!enter) s->choices[choice].open++;
                if (e->op == MF_G_SET) continue;
                if (enter)
                    s->users[--s->first[e->arg + 1]] = choice;
                else
                    s->first[e->arg + 1]++;
            }
            if (!enter) s->choices[choice].rule = r;
        }
}

static void spread_all(spread *s, size_t n_choices)
{
    visit(s, false);
    for (size_t r = 0; r < s->g->n; r++) s->first[r + 1] += s->first[r];
    uint32_t n_users = s->first[s->g->n];
    visit(s, true); /* leaves in first[r + 1] where the users of r begin */
    for (size_t c = 0; c < n_choices; c++)
        if (s->choices[c].open == 0) learn(s, s->choices[c].rule);
    while (s->n_todo > 0) {
        uint32_t rule = s->todo[--s->n_todo];
        uint32_t end = rule + 1 < s->g->n ? s->first[rule + 2] : n_users;
        for (uint32_t u = s->first[rule + 1]; u < end; u++)
            if (--s->choices[s->users[u]].open == 0) learn(s, s->choices[s->users[u]].rule);
    }
}

/* known[rule]: some choice of it has only elements that hold, by themselves or by what is known of their
 * rules. Linear in the size of the grammar. */
static minfer_status find(const mf_grules *g, elem_fn *holds, bool *known, minfer_error *err)
{
    size_t n_choices = 0;
    for (size_t r = 0; r < g->n; r++) n_choices += g->v[r].n;
    spread s = {.g = g, .holds = holds, .known = known};
    s.choices = mf_calloc(n_choices, sizeof *s.choices);
    s.first = mf_calloc(g->n + 2, sizeof *s.first);
    s.users = mf_calloc(g->n_elems, sizeof *s.users);
    s.todo = mf_calloc(g->n, sizeof *s.todo);
    bool ok = s.choices && s.first && s.users && s.todo;
    if (ok) spread_all(&s, n_choices);
    mf_free(s.choices);
    mf_free(s.first);
    mf_free(s.users);
    mf_free(s.todo);
    return ok ? MINFER_OK : MF_NOMEM(err);
}

static minfer_status refuse(const mf_grules *g, uint32_t rule, uint32_t *culprit, const char *why,
                            minfer_error *err)
{
    if (culprit) *culprit = rule;
    return mf_fail(err, MINFER_ERR_ARG, "rule '%.*s' %s", (int)g->v[rule].name.n, g->v[rule].name.s, why);
}

/* A rule without end calls another one; following them leads to one that calls itself. */
static uint32_t endless_callee(const mf_grules *g, const bool *known, uint32_t rule)
{
    const mf_galt *alt = &g->v[rule].alts[0];
    uint32_t i = 0;
    while (ends(&alt->v[i]) || known[alt->v[i].arg]) i++;
    return alt->v[i].arg;
}

static minfer_status check_ends(const mf_grules *g, bool *known, uint32_t *culprit, minfer_error *err)
{
    MF_TRY(find(g, ends, known, err));
    for (uint32_t r = 0; r < g->n; r++) {
        if (known[r]) continue;
        for (size_t i = 0; i < g->n; i++) r = endless_callee(g, known, r);
        return refuse(g, r, culprit, "can never end", err);
    }
    return MINFER_OK;
}

/* ---- left recursion */

static bool may_be_empty(const mf_grules *g, const mf_gelem *e)
{
    return takes_none(e) || (e->op != MF_G_SET && g->v[e->arg].nullable);
}

typedef struct frame {
    uint32_t rule, alt, elem;
} frame;

enum { UNSEEN, OPEN, CLOSED };

/* Moves f to the next element that a text of its rule may begin with. */
static const mf_gelem *next_first(const mf_grules *g, frame *f)
{
    for (; f->alt < g->v[f->rule].n; f->alt++, f->elem = 0) {
        const mf_galt *alt = &g->v[f->rule].alts[f->alt];
        if (f->elem >= alt->n) continue;
        if (f->elem > 0 && !may_be_empty(g, &alt->v[f->elem - 1])) continue;
        return &alt->v[f->elem++];
    }
    return NULL;
}

/* Depth first along what rules may begin with, on a stack of our own: chains may be as long as the grammar.
 */
static minfer_status search(const mf_grules *g, uint32_t from, uint8_t *seen, frame *stack, uint32_t *culprit,
                            minfer_error *err)
{
    size_t n = 1;
    stack[0] = (frame){from, 0, 0};
    seen[from] = OPEN;
    while (n > 0) {
        const mf_gelem *e = next_first(g, &stack[n - 1]);
        if (!e) {
            seen[stack[--n].rule] = CLOSED;
        } else if (e->op != MF_G_SET && seen[e->arg] == OPEN) {
            return refuse(g, e->arg, culprit, "begins with itself (left recursion)", err);
        } else if (e->op != MF_G_SET && seen[e->arg] == UNSEEN) {
            stack[n++] = (frame){e->arg, 0, 0};
            seen[e->arg] = OPEN;
        }
    }
    return MINFER_OK;
}

static minfer_status check_left(const mf_grules *g, uint32_t *culprit, minfer_error *err)
{
    uint8_t *seen = mf_calloc(g->n, 1);
    frame *stack = mf_calloc(g->n, sizeof *stack);
    minfer_status st = seen && stack ? MINFER_OK : MF_NOMEM(err);
    for (uint32_t r = 0; r < g->n && st == MINFER_OK; r++)
        if (seen[r] == UNSEEN) st = search(g, r, seen, stack, culprit, err);
    mf_free(seen);
    mf_free(stack);
    return st;
}

/* ---- repetitions of what may be empty
 * (B){m,n} with a B that may be empty is (solid B){0,n}, solid B being the texts of B but the empty one:
 * those of a sequence are, for each of its elements that only such before it precede which may be empty,
 * the solid texts of that element and then the rest. */

static minfer_status solid_of(mf_grules *g, uint32_t rule, uint32_t *solid, minfer_error *err)
{
    *solid = g->v[rule].solid;
    if (*solid != MF_G_NONE) return MINFER_OK;
    MF_TRY(mf_grules_group(g, rule, solid, err));
    g->v[rule].solid = *solid;
    g->v[*solid].solid_from = rule;
    return MINFER_OK;
}

/* The solid form of an element that may be empty. */
static minfer_status solid_elem(mf_grules *g, mf_gelem *e, minfer_error *err)
{
    if (g->v[e->arg].nullable) MF_TRY(solid_of(g, e->arg, &e->arg, err));
    if (e->op == MF_G_REPEAT) e->min = 1;
    return MINFER_OK;
}

static minfer_status solid_choices(mf_grules *g, uint32_t solid, mf_galt alt, minfer_error *err)
{
    mf_gelem *v = mf_malloc(alt.n * sizeof *v);
    minfer_status st = v ? MINFER_OK : MF_NOMEM(err);
    for (uint32_t i = 0; i < alt.n && st == MINFER_OK; i++) {
        bool empty = may_be_empty(g, &alt.v[i]);
        memcpy(v, alt.v + i, (alt.n - i) * sizeof *v);
        if (empty) st = solid_elem(g, &v[0], err);
        if (st == MINFER_OK) st = mf_grules_choice(g, solid, v, alt.n - i, err);
        if (!empty) break;
    }
    mf_free(v);
    return st;
}

static minfer_status mend_choice(mf_grules *g, const mf_galt *alt, minfer_error *err)
{
    for (uint32_t i = 0; i < alt->n; i++) {
        mf_gelem *e = (mf_gelem *)(uintptr_t)&alt->v[i];
        if (e->op != MF_G_REPEAT || !g->v[e->arg].nullable) continue;
        MF_TRY(solid_of(g, e->arg, &e->arg, err));
        e->min = 0;
    }
    return MINFER_OK;
}

/* Solid rules are added at the end while rules are walked, so each is filled from one that was mended. */
static minfer_status mend(mf_grules *g, minfer_error *err)
{
    for (uint32_t r = 0; r < g->n; r++) {
        uint32_t from = g->v[r].solid_from;
        for (size_t a = 0; from != MF_G_NONE && a < g->v[from].n; a++)
            MF_TRY(solid_choices(g, r, g->v[from].alts[a], err));
        for (size_t a = 0; a < g->v[r].n; a++) MF_TRY(mend_choice(g, &g->v[r].alts[a], err));
    }
    return MINFER_OK;
}

static minfer_status learn_facts(mf_grules *g, bool *known, uint32_t *culprit, minfer_error *err)
{
    MF_TRY(find(g, takes_none, known, err));
    for (size_t r = 0; r < g->n; r++) g->v[r].nullable = known[r];
    MF_TRY(check_left(g, culprit, err));
    memset(known, 0, g->n * sizeof *known);
    return check_ends(g, known, culprit, err);
}

minfer_status mf_grules_check(mf_grules *g, uint32_t *culprit, minfer_error *err)
{
    bool *known = mf_calloc(g->n, sizeof *known);
    if (!known) return MF_NOMEM(err);
    minfer_status st = learn_facts(g, known, culprit, err);
    mf_free(known);
    return st == MINFER_OK ? mend(g, err) : st;
}
