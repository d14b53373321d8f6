/* Compiling nodes to steps, deciding about barriers, cutting shares, running. */
#include "backends/cpu/program.h"
#include "backends/cpu/device.h"

#include <stdatomic.h>
#include <string.h>

minfer_status cpu_push(cpu_emit *e, cpu_step_fn *fn, const mf_node *n, cpu_key key, cpu_step **out)
{
    cpu_program *p = e->p;
    if (!mf_grow((void **)&p->steps, &p->cap, (size_t)p->n_steps + 1, sizeof *p->steps))
        return MF_NOMEM(e->err);
    *out = &p->steps[p->n_steps++];
    **out = (cpu_step){.fn = fn, .node = n, .slot = (int32_t)n->op, .key = key, .cost = mf_node_elements(n)};
    p->own_from = p->n_ranges;
    return MINFER_OK;
}

/* Under one key the parts of one value are the same threads'; parts of another value over the same memory are
 * not. */
static bool conflicts(const cpu_range *a, const cpu_range *b)
{
    bool same_parts = a->key != 0 && a->key == b->key && a->lo == b->lo && a->hi == b->hi;
    return (a->write || b->write) && a->lo < b->hi && b->lo < a->hi && !same_parts;
}

static minfer_status touch(cpu_emit *e, const void *ptr, size_t bytes, cpu_key key, bool write)
{
    cpu_program *p = e->p;
    cpu_range r = {ptr, (const uint8_t *)ptr + bytes, key, write};
    bool hit = false;
    for (size_t i = 0; i < p->own_from && !hit; i++) hit = conflicts(&p->ranges[i], &r);
    if (hit) { /* what is older lies behind the barrier now */
        p->steps[p->n_steps - 1].barrier = true;
        p->n_ranges -= p->own_from;
        memmove(p->ranges, p->ranges + p->own_from, p->n_ranges * sizeof *p->ranges);
        p->own_from = 0;
    }
    if (!mf_grow((void **)&p->ranges, &p->range_cap, p->n_ranges + 1, sizeof *p->ranges))
        return MF_NOMEM(e->err);
    p->ranges[p->n_ranges++] = r;
    return MINFER_OK;
}

static cpu_key step_key(const cpu_emit *e)
{
    return e->p->steps[e->p->n_steps - 1].key;
}

minfer_status cpu_reads(cpu_emit *e, const void *p, size_t bytes)
{
    return touch(e, p, bytes, step_key(e), false);
}
minfer_status cpu_writes(cpu_emit *e, const void *p, size_t bytes)
{
    return touch(e, p, bytes, step_key(e), true);
}
minfer_status cpu_writes_anywhere(cpu_emit *e, const void *p, size_t bytes)
{
    return touch(e, p, bytes, 0, true);
}

float *cpu_value(const cpu_emit *e, mf_id id)
{
    mf_mem m = mf_exec_value(e->x, id, e->dev->base.index);
    return (float *)(void *)((uint8_t *)m.buf + m.offset);
}

void cpu_share(const cpu_worker *w, int64_t n, int64_t unit, int64_t *a, int64_t *b)
{
    int64_t units = (n + unit - 1) / unit;
    *a = units * w->ith / w->nth * unit;
    *b = units * (w->ith + 1) / w->nth * unit;
    if (*a > n) *a = n;
    if (*b > n) *b = n;
}

enum {
    FEATURE_SPLIT = 4096,
    FEATURE_TOKENS = 8
}; /* from how many values on few tokens are divided by features */

cpu_key cpu_key_for(int32_t n, int32_t nt)
{
    return nt <= FEATURE_TOKENS && (int64_t)n * nt >= FEATURE_SPLIT && n % 32 == 0 ? -n : nt;
}

cpu_part cpu_part_of(const cpu_worker *w, cpu_key key, int32_t n, int32_t nt)
{
    int64_t a, b;
    if (key < 0) {
        cpu_share(w, n, 32, &a, &b);
        return (cpu_part){0, nt, (int32_t)a, (int32_t)b};
    }
    cpu_share(w, nt, cpu_act_tokens(nt, w->k->few), &a, &b);
    return (cpu_part){(int32_t)a, (int32_t)b, 0, n};
}

static minfer_status emit_all(cpu_emit *e, mf_id a, mf_id b)
{
    for (mf_id i = a; i < b; i++) {
        const mf_node *n = &e->x->graph->nodes[i];
        bool runs = !n->dead && n->device == e->dev->base.index && n->op != MF_OP_INPUT;
        if (runs && !e->dev->emitters[n->op])
            return mf_fail(e->err, MINFER_ERR_UNSUPPORTED, "node %s: the CPU cannot run %s", n->name,
                           mf_op_table[n->op].name);
        if (runs) MF_TRY(e->dev->emitters[n->op](e, n));
    }
    return MINFER_OK;
}

enum { SHARE_COST = 1 << 18, MOST_SHARES = 16 }; /* per thread */

/* More shares than threads where there is enough to do that taking one costs nothing: then a thread that is
 * slow or was put aside gets fewer, and a step finds in the cache what the step before it has written. */
static uint32_t shares_of(int64_t cost, int32_t threads)
{
    int64_t n = cost / SHARE_COST / threads;
    return threads == 1 ? 1 : (uint32_t)threads * (uint32_t)(n < 1 ? 1 : n > MOST_SHARES ? MOST_SHARES : n);
}

static void link_phase(cpu_program *p, int32_t first, int32_t last, int32_t shares)
{
    const cpu_step *again = NULL;
    for (int32_t i = first; i < last; i++) {
        cpu_step *s = &p->steps[i];
        s->shares = shares;
        if (!s->reads_weights) continue;
        if (!again) again = s;
        s->again = again;
    }
}

/* Tells every product whose weights are read after its own. */
static void link_products(cpu_program *p)
{
    const cpu_step *after = NULL;
    for (int32_t i = 2 * p->n_steps - 1; i >= 0; i--) { /* twice, since the first follows the last */
        cpu_step *s = &p->steps[i % p->n_steps];
        if (!s->reads_weights) continue;
        s->after = after;
        after = s;
    }
}

/* The end of the steps from i on that no barrier divides. */
static int32_t phase_end(const cpu_program *p, int32_t i)
{
    do i++;
    while (i < p->n_steps && !p->steps[i].barrier);
    return i;
}

/* The end of the phases from i on whose steps all give everything to one worker, as few tokens do. */
static int32_t alone_end(const cpu_program *p, int32_t i)
{
    while (i < p->n_steps) {
        int32_t end = phase_end(p, i);
        for (int32_t j = i; j < end; j++)
            if (p->steps[j].key <= 0 || p->steps[j].key > CPU_TILE_SMALL) return i;
        i = end;
    }
    return i;
}

static minfer_status cut_phases(cpu_program *p, int32_t threads, minfer_error *err)
{
    uint32_t share = 0;
    p->phases = mf_arena_array(&p->arena, (size_t)p->n_steps + 1, sizeof *p->phases);
    if (!p->phases) return MF_NOMEM(err);
    for (int32_t i = 0; i < p->n_steps;) {
        int32_t last = alone_end(p, i) > i ? i : phase_end(p, i), alone = alone_end(p, last);
        int64_t cost = 0;
        for (int32_t j = i; j < last; j++) cost += p->steps[j].cost;
        uint32_t n = last == i ? 1 : shares_of(cost, threads);
        link_phase(p, i, last, (int32_t)n);
        p->phases[p->n_phases++] = (cpu_phase){i, last, alone, share, share + n};
        share += n;
        i = alone;
    }
    link_products(p);
    return MINFER_OK;
}

minfer_status cpu_program_make(cpu_device *d, const mf_exec *x, mf_id a, mf_id b, cpu_program **out,
                               minfer_error *err)
{
    cpu_program *p = mf_calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return MF_NOMEM(err);
    cpu_emit e = {.dev = d, .x = x, .first = a, .last = b, .p = p, .err = err};
    minfer_status st = emit_all(&e, a, b);
    if (st == MINFER_OK) st = cut_phases(p, mf_pool_threads(d->pool), err);
    mf_free(p->ranges);
    p->ranges = NULL;
    if (st != MINFER_OK) {
        cpu_program_free(p);
        return st;
    }
    *out = p;
    return MINFER_OK;
}

void cpu_program_free(cpu_program *p)
{
    mf_arena_free(&p->arena);
    mf_free(p->steps);
    mf_free(p);
}

typedef struct {
    cpu_device *dev;
    const cpu_program *p;
    uint8_t *scratch;
    size_t thread_bytes;
    atomic_int failed; /* 1 + the step that met bad data; 0 = none */
    mf_time *slots;    /* NULL: nobody looks at the clock */
    int64_t ended;     /* when thread 0 had nothing left to do */
} running;

/* at, when set, is the clock of the thread that times. */
static void run_steps(running *r, int32_t first, int32_t last, const cpu_worker *w, int64_t *at)
{
    for (int32_t i = first; i < last; i++) {
        const cpu_step *s = &r->p->steps[i];
        if (!s->fn(s, w)) atomic_store(&r->failed, i + 1);
        if (at) *at = mf_time_lap(&r->slots[s->slot], *at);
    }
}

static void run_phase(running *r, const cpu_phase *ph, cpu_worker *w, int64_t *at)
{
    mf_pool *pool = r->dev->pool;
    uint32_t share;
    while (mf_pool_claim(pool, w->thread, ph->end, &share)) {
        w->nth = (int32_t)(ph->end - ph->begin);
        w->ith = (int32_t)(share - ph->begin);
        run_steps(r, ph->first, ph->last, w, at);
        if (!mf_pool_finish(pool, ph->end)) continue;
        w->ith = 0;
        w->nth = 1;
        run_steps(r, ph->last, ph->alone, w, at);
        mf_pool_end_phase(pool, ph->end);
    }
    if (at) *at = mf_time_lap(&r->slots[MF_TIME_BARRIER], *at);
}

static void walk(void *arg, int ith, int nth)
{
    running *r = arg;
    bool timed = r->slots && ith == 0;
    int64_t at = timed ? mf_clock_ns() : 0;
    cpu_worker w = {.thread = ith,
                    .threads = nth,
                    .scratch = r->scratch + (size_t)ith * r->thread_bytes,
                    .scratch_bytes = r->thread_bytes,
                    .k = &r->dev->kernels};
    for (int32_t i = 0; i < r->p->n_phases; i++) run_phase(r, &r->p->phases[i], &w, timed ? &at : NULL);
    if (timed) r->ended = at;
}

/* Steps of one node in a row are one execution of it. */
static bool begins(const cpu_program *p, int32_t i)
{
    if (i == 0) return true;
    const cpu_step *s = &p->steps[i], *last = s - 1;
    return last->node != s->node || last->slot != s->slot;
}

/* What was done, besides the time of it. Awaiting the last thread counts as a barrier. */
static void count_run(const running *r)
{
    mf_time *barrier = &r->slots[MF_TIME_BARRIER];
    mf_time_lap(barrier, r->ended);
    barrier->count += (uint64_t)r->p->n_phases;
    for (int32_t i = 0; i < r->p->n_steps; i++) {
        const cpu_step *s = &r->p->steps[i];
        r->slots[s->slot].count += begins(r->p, i);
        if (s->work) s->work(s, &r->slots[s->slot]);
    }
}

minfer_status cpu_program_run(cpu_device *d, const mf_exec *x, const cpu_program *p, minfer_error *err)
{
    cpu_scratch layout;
    mf_mem m = mf_exec_scratch(x, d->base.index);
    cpu_scratch_layout(d, x->graph, &layout);
    running r = {.dev = d,
                 .p = p,
                 .scratch = (uint8_t *)m.buf + m.offset,
                 .thread_bytes = layout.thread_bytes,
                 .slots = d->base.times ? d->base.times->slot : NULL};
    mf_pool_run(d->pool, walk, &r);
    if (r.failed == 0) {
        if (r.slots) count_run(&r);
        return MINFER_OK;
    }
    const cpu_step *s = &p->steps[r.failed - 1];
    return s->complain(s, err);
}
