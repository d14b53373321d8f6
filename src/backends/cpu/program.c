/* Compiling nodes to steps, deciding about barriers, running. */
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
    **out = (cpu_step){.fn = fn, .node = n, .slot = (int32_t)n->op, .key = key};
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
    cpu_share(w, nt, cpu_act_tokens(nt), &a, &b);
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

minfer_status cpu_program_make(cpu_device *d, const mf_exec *x, mf_id a, mf_id b, cpu_program **out,
                               minfer_error *err)
{
    cpu_program *p = mf_calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return MF_NOMEM(err);
    cpu_emit e = {.dev = d, .x = x, .first = a, .last = b, .p = p, .err = err};
    minfer_status st = emit_all(&e, a, b);
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
    int64_t ended;     /* timed: when thread 0 had done its part */
} running;

static cpu_worker worker_of(running *r, int ith, int nth)
{
    return (cpu_worker){ith, nth, r->scratch + (size_t)ith * r->thread_bytes, r->thread_bytes,
                        &r->dev->kernels};
}

static void walk(void *arg, int ith, int nth)
{
    running *r = arg;
    cpu_worker w = worker_of(r, ith, nth);
    for (int32_t i = 0; i < r->p->n_steps; i++) {
        const cpu_step *s = &r->p->steps[i];
        if (s->barrier) mf_pool_barrier(r->dev->pool);
        if (!s->fn(s, &w)) atomic_store(&r->failed, i + 1);
    }
}

/* Steps of one node in a row are one execution of it. */
static bool begins(const cpu_program *p, int32_t i)
{
    if (i == 0) return true;
    const cpu_step *s = &p->steps[i], *last = s - 1;
    return last->node != s->node || last->slot != s->slot;
}

/* The same for thread 0, which looks at the clock between steps. */
static void walk_timed(void *arg, int ith, int nth)
{
    running *r = arg;
    mf_time *slots = r->dev->base.times->slot;
    if (ith > 0) {
        walk(arg, ith, nth);
        return;
    }
    cpu_worker w = worker_of(r, ith, nth);
    int64_t at = mf_clock_ns();
    for (int32_t i = 0; i < r->p->n_steps; i++) {
        const cpu_step *s = &r->p->steps[i];
        if (s->barrier) {
            mf_pool_barrier(r->dev->pool);
            slots[MF_TIME_BARRIER].count++;
            at = mf_time_lap(&slots[MF_TIME_BARRIER], at);
        }
        if (!s->fn(s, &w))
            atomic_store(&r->failed, i + 1);
        else if (s->work)
            s->work(s, &slots[s->slot]);
        slots[s->slot].count += begins(r->p, i);
        at = mf_time_lap(&slots[s->slot], at);
    }
    r->ended = at;
}

/* Starting the threads and awaiting the last one count as a barrier. */
static void run_timed(running *r)
{
    mf_time *barrier = &r->dev->base.times->slot[MF_TIME_BARRIER];
    mf_pool_run(r->dev->pool, walk_timed, r);
    barrier->count++;
    mf_time_lap(barrier, r->ended);
}

minfer_status cpu_program_run(cpu_device *d, const mf_exec *x, const cpu_program *p, minfer_error *err)
{
    cpu_scratch layout;
    mf_mem m = mf_exec_scratch(x, d->base.index);
    cpu_scratch_layout(d, x->graph, &layout);
    running r = {
        .dev = d, .p = p, .scratch = (uint8_t *)m.buf + m.offset, .thread_bytes = layout.thread_bytes};
    if (d->base.times)
        run_timed(&r);
    else
        mf_pool_run(d->pool, walk, &r);
    if (r.failed == 0) return MINFER_OK;
    const cpu_step *s = &p->steps[r.failed - 1];
    return s->complain(s, err);
}
