#include "ops/race.h"

#include "ops/case.h"

/* ---- what steps say ---- */

/* The test program is linked so that the emitters' calls come here first. */
minfer_status __real_cpu_reads(cpu_emit *e, const void *p, size_t bytes);
minfer_status __wrap_cpu_reads(cpu_emit *e, const void *p, size_t bytes);
minfer_status __real_cpu_writes(cpu_emit *e, const void *p, size_t bytes);
minfer_status __wrap_cpu_writes(cpu_emit *e, const void *p, size_t bytes);
minfer_status __real_cpu_writes_anywhere(cpu_emit *e, const void *p, size_t bytes);
minfer_status __wrap_cpu_writes_anywhere(cpu_emit *e, const void *p, size_t bytes);

static struct {
    race_access *v;
    size_t n, cap;
    bool on;
} record;

static minfer_status note(const cpu_emit *e, const void *p, size_t bytes, cpu_key key, bool write)
{
    if (!record.on) return MINFER_OK;
    if (!mf_grow((void **)&record.v, &record.cap, record.n + 1, sizeof *record.v)) return MF_NOMEM(e->err);
    record.v[record.n++] = (race_access){e->p->n_steps - 1, p, (const uint8_t *)p + bytes, key, write};
    return MINFER_OK;
}

static cpu_key key_of(const cpu_emit *e)
{
    return e->p->steps[e->p->n_steps - 1].key;
}

minfer_status __wrap_cpu_reads(cpu_emit *e, const void *p, size_t bytes)
{
    MF_TRY(note(e, p, bytes, key_of(e), false));
    return __real_cpu_reads(e, p, bytes);
}

minfer_status __wrap_cpu_writes(cpu_emit *e, const void *p, size_t bytes)
{
    MF_TRY(note(e, p, bytes, key_of(e), true));
    return __real_cpu_writes(e, p, bytes);
}

minfer_status __wrap_cpu_writes_anywhere(cpu_emit *e, const void *p, size_t bytes)
{
    MF_TRY(note(e, p, bytes, 0, true));
    return __real_cpu_writes_anywhere(e, p, bytes);
}

/* ---- a program and its memory ---- */

static void add_area(race *r, void *p, size_t n)
{
    r->areas[r->n_areas++] = (race_area){p, n, r->bytes};
    r->bytes += n;
}

/* Scratch is planned first: threads' own, then what they share. */
static void find_areas(race *r)
{
    const mf_alloc *a = &r->cache.alloc;
    cpu_scratch layout;
    cpu_scratch_layout(r->dev, &r->g->graph, &layout);
    size_t own = r->g->plan.scratch[0].offset + layout.angles;
    assert_int_equal(r->g->plan.scratch[0].offset, 0);
    add_area(r, (uint8_t *)a->arena[0].buf + own, a->arena[0].size - own);
    for (int32_t i = 0; i < RG_LAYERS; i++) {
        const mf_kv_pair *p = mf_alloc_kv_pair(a, i);
        if (!p) continue;
        add_area(r, p->k, p->bytes);
        add_area(r, p->v, p->bytes);
    }
}

void race_open(race *r, random_graph *graph, mf_device *cpu)
{
    minfer_error err = {0};
    *r = (race){.graph = graph, .dev = (cpu_device *)cpu, .device = cpu};
    mf_assign assign = {.devices = &r->device, .n_devices = 1};
    assert_ok(mf_graph_cache_init(&r->cache, &assign, RG_LAYERS, rg_build, graph, &err), &err);
    assert_ok(mf_graph_cache_get(&r->cache, &graph->params, &r->g, &err), &err);
    assert_ok(mf_alloc_commit(&r->cache.alloc, &r->g->plan, &err), &err);
    assert_ok(rg_register(graph, cpu, &err), &err);
    record.n = 0;
    record.on = true;
    assert_ok(cpu_program_make(r->dev, &r->g->exec, 0, r->g->graph.n_nodes, &r->program, &err), &err);
    record.on = false;
    r->log = record.v;
    r->n_log = record.n;
    find_areas(r);
}

void race_close(race *r)
{
    cpu_program_free(r->program);
    mf_graph_cache_free(&r->cache);
    r->device->ops->weights_forget(r->device, "");
    mf_free(record.v);
    record.v = NULL;
    record.cap = 0;
}

/* ---- parts ---- */

/* Bytes of a range that a thread touches: intervals [lo + i * step, + n) for i < count. */
typedef struct {
    const uint8_t *lo;
    size_t step, n, count;
} part;

static bool is_companion(const race *r, const uint8_t *p)
{
    const uint8_t *arena = r->cache.alloc.arena[0].buf;
    for (mf_id i = 0; i < r->g->plan.n_nodes; i++) {
        const mf_loc *l = &r->g->plan.extra[i];
        if (l->place == MF_PLACE_ARENA && arena + l->offset == p) return true;
    }
    return false;
}

/* Whether a thread's part of the range is known: it is rows of tokens, or columns of features. */
static bool has_parts(const race *r, const race_access *a)
{
    size_t bytes = (size_t)(a->hi - a->lo);
    if (a->key == 0 || is_companion(r, a->lo)) return false;
    return bytes % (a->key > 0 ? (size_t)a->key : (size_t)-a->key * sizeof(float)) == 0;
}

static part part_of(const race *r, const race_access *a, int32_t ith, int32_t nth)
{
    cpu_worker w = {.ith = ith, .nth = nth, .k = &r->dev->kernels};
    size_t bytes = (size_t)(a->hi - a->lo);
    if (a->key > 0) {
        size_t row = bytes / (size_t)a->key;
        cpu_part p = cpu_part_of(&w, a->key, 1, a->key);
        return (part){a->lo + (size_t)p.t0 * row, 0, (size_t)(p.t1 - p.t0) * row, 1};
    }
    size_t row = (size_t)-a->key * sizeof(float);
    cpu_part p = cpu_part_of(&w, a->key, -a->key, (int32_t)(bytes / row));
    return (part){a->lo + (size_t)p.f0 * sizeof(float), row, (size_t)(p.f1 - p.f0) * sizeof(float),
                  bytes / row};
}

static part whole(const race_access *a)
{
    return (part){a->lo, 0, (size_t)(a->hi - a->lo), 1};
}

/* What a thread may touch of a range: its part, or anything. */
static part may_touch(const race *r, const race_access *a, int32_t ith, int32_t nth)
{
    return has_parts(r, a) ? part_of(r, a, ith, nth) : whole(a);
}

static bool meet(const part *a, const part *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++) {
            const uint8_t *x = a->lo + i * a->step, *y = b->lo + k * b->step;
            if (x < y + b->n && y < x + a->n) return true;
        }
    return false;
}

/* ---- barriers ---- */

/* A companion is divided in a way of its own, which one key makes the same for all that touch it under that
 * key. */
static bool same_division(const race_access *a, const race_access *b)
{
    return a->key != 0 && a->key == b->key && a->lo == b->lo && a->hi == b->hi;
}

static bool threads_meet(const race *r, const race_access *a, const race_access *b)
{
    if (a->hi <= b->lo || b->hi <= a->lo || !(a->write || b->write)) return false;
    if (!has_parts(r, a) && same_division(a, b)) return false;
    for (int32_t nth = 2; nth <= RACE_THREADS; nth++)
        for (int32_t u = 0; u < nth; u++)
            for (int32_t v = 0; v < nth; v++) {
                part x = may_touch(r, a, u, nth), y = may_touch(r, b, v, nth);
                if (u != v && meet(&x, &y)) return true;
            }
    return false;
}

static bool barrier_between(const cpu_program *p, int32_t from, int32_t to)
{
    for (int32_t i = from + 1; i <= to; i++)
        if (p->steps[i].barrier) return true;
    return false;
}

bool race_barriers_hold(const race *r, char why[RACE_WHY])
{
    for (size_t i = 0; i < r->n_log; i++)
        for (size_t k = i + 1; k < r->n_log; k++) {
            const race_access *a = &r->log[i], *b = &r->log[k];
            if (barrier_between(r->program, a->step, b->step) || !threads_meet(r, a, b)) continue;
            snprintf(why, RACE_WHY,
                     "step %d (%s, key %d) and step %d (%s, key %d) meet at %zu bytes, no barrier", a->step,
                     r->program->steps[a->step].node->name, a->key, b->step,
                     r->program->steps[b->step].node->name, b->key,
                     (size_t)((a->hi < b->hi ? a->hi : b->hi) - (a->lo > b->lo ? a->lo : b->lo)));
            return false;
        }
    return true;
}

/* ---- memory states ---- */

static void save(const race *r, uint8_t *to)
{
    for (int i = 0; i < r->n_areas; i++) memcpy(to + r->areas[i].at, r->areas[i].p, r->areas[i].n);
}

static void restore(const race *r, const uint8_t *from)
{
    for (int i = 0; i < r->n_areas; i++) memcpy(r->areas[i].p, from + r->areas[i].at, r->areas[i].n);
}

/* Poison everywhere, then inputs and caches. */
static void begin(const race *r)
{
    mf_inputs in = rg_inputs(r->graph);
    for (int i = 0; i < r->n_areas; i++) op_poison(r->areas[i].p, r->areas[i].n);
    for (int i = 1; i < r->n_areas; i++) rg_fill_cache(r->graph, r->areas[i].p, r->areas[i].n);
    for (int i = 0; i < MF_INPUT_COUNT; i++) {
        mf_id id = r->g->graph.inputs[i];
        if (id < 0) continue;
        mf_mem m = mf_exec_value(&r->g->exec, id, 0);
        memcpy((uint8_t *)m.buf + m.offset, in.data[i], in.n[i] * sizeof(int32_t));
    }
}

static bool step_as(race *r, int32_t step, int32_t ith, int32_t nth)
{
    cpu_scratch layout;
    cpu_scratch_layout(r->dev, &r->g->graph, &layout);
    uint8_t *scratch = (uint8_t *)r->cache.alloc.arena[0].buf + (size_t)ith * layout.thread_bytes;
    cpu_worker w = {ith, nth, ith, nth, scratch, layout.thread_bytes, &r->dev->kernels};
    return r->program->steps[step].fn(&r->program->steps[step], &w);
}

/* ---- orders ---- */

static void run_segment(race *r, int32_t from, int32_t to, int32_t nth, const int32_t *order, mf_rng *rng)
{
    int32_t next[RACE_THREADS], left = nth;
    for (int32_t i = 0; i < nth; i++) next[i] = from;
    while (left > 0 && from < to) {
        int32_t i = order ? order[nth - left] : (int32_t)op_below(rng, (uint32_t)nth);
        int32_t stop = order ? to : next[i] + 1;
        if (next[i] == to) continue;
        for (; next[i] < stop; next[i]++) assert_true(step_as(r, next[i], i, nth));
        if (next[i] == to) left--;
    }
}

size_t race_result_bytes(const race *r)
{
    return mf_node_bytes(&r->g->graph.nodes[r->g->graph.output]) + r->bytes - r->areas[0].n;
}

void race_run(race *r, int32_t n_threads, const int32_t *order, mf_rng *rng, uint8_t *out)
{
    begin(r);
    for (int32_t from = 0, to; from < r->program->n_steps; from = to) {
        for (to = from + 1; to < r->program->n_steps && !r->program->steps[to].barrier; to++) {}
        run_segment(r, from, to, n_threads, order, rng);
    }
    mf_mem m = mf_exec_value(&r->g->exec, r->g->graph.output, 0);
    size_t n = mf_node_bytes(&r->g->graph.nodes[r->g->graph.output]);
    memcpy(out, (uint8_t *)m.buf + m.offset, n);
    for (int i = 1; i < r->n_areas; i++)
        memcpy(out + n + r->areas[i].at - r->areas[0].n, r->areas[i].p, r->areas[i].n);
}

/* ---- declarations ---- */

/* Sets mark[i] for the bytes of a snapshot that a thread may read, or write, in a step. */
static void mark_parts(const race *r, int32_t step, int32_t ith, int32_t nth, bool write, uint8_t *mark)
{
    memset(mark, 0, r->bytes);
    for (size_t i = 0; i < r->n_log; i++) {
        const race_access *a = &r->log[i];
        if (a->step != step || a->write != write) continue;
        part p = may_touch(r, a, ith, nth);
        for (int k = 0; k < r->n_areas; k++) {
            const race_area *area = &r->areas[k];
            for (size_t c = 0; c < p.count && p.lo >= area->p && p.lo < area->p + area->n; c++)
                memset(mark + area->at + (size_t)(p.lo - area->p) + c * p.step, 1, p.n);
        }
    }
}

typedef struct {
    uint8_t *before, *after, *meanwhile, *alone, *mark, *poison;
} states;

static bool undeclared(const race *r, int32_t step, int32_t ith, int32_t nth, const char *did,
                       char why[RACE_WHY])
{
    const cpu_step *s = &r->program->steps[step];
    snprintf(why, RACE_WHY, "step %d (%s, key %d): thread %d of %d %s what it does not declare", step,
             s->node->name, s->key, ith, nth, did);
    return false;
}

/* The first byte that thread ith alone has changed to anything but what all threads leave where it may write,
 * or bytes. */
static size_t first_wrong(const race *r, const states *s)
{
    enum { STRIDE = 256 };
    for (size_t from = 0; from < r->bytes; from += STRIDE) {
        size_t to = from + STRIDE < r->bytes ? from + STRIDE : r->bytes;
        if (memcmp(s->alone + from, s->meanwhile + from, to - from) == 0) continue;
        for (size_t i = from; i < to; i++)
            if (s->alone[i] != s->meanwhile[i] && !(s->mark[i] && s->alone[i] == s->after[i])) return i;
    }
    return r->bytes;
}

/* Thread ith alone, in a memory where only what it may read is as it was: it changes only what it may write,
 * to what all threads together leave there. */
static bool thread_holds(race *r, states *s, int32_t step, int32_t ith, int32_t nth, char why[RACE_WHY])
{
    mark_parts(r, step, ith, nth, false, s->mark);
    for (size_t i = 0; i < r->bytes; i++) s->meanwhile[i] = s->mark[i] ? s->before[i] : s->poison[i];
    restore(r, s->meanwhile);
    bool ran = step_as(r, step, ith, nth);
    save(r, s->alone);
    mark_parts(r, step, ith, nth, true, s->mark);
    size_t bad = ran ? first_wrong(r, s) : 0;
    if (ran && bad == r->bytes) return true;
    return undeclared(r, step, ith, nth, !ran || s->mark[bad] ? "read" : "wrote", why);
}

static bool step_holds(race *r, states *s, int32_t step, int32_t nth, char why[RACE_WHY])
{
    save(r, s->before);
    for (int32_t i = 0; i < nth; i++) assert_true(step_as(r, step, i, nth));
    save(r, s->after);
    for (int32_t i = 0; i < nth; i++)
        if (!thread_holds(r, s, step, i, nth, why)) return false;
    restore(r, s->after);
    return true;
}

bool race_declarations_hold(race *r, int32_t n_threads, char why[RACE_WHY])
{
    uint8_t *mem = mf_malloc(6 * r->bytes), *p = mem;
    states s;
    uint8_t **const all[] = {&s.before, &s.after, &s.meanwhile, &s.alone, &s.mark, &s.poison};
    assert_non_null(mem);
    for (size_t i = 0; i < COUNT(all); i++, p += r->bytes) *all[i] = p;
    op_poison(s.poison, r->bytes);
    bool ok = true;
    begin(r);
    for (int32_t i = 0; i < r->program->n_steps && ok; i++) ok = step_holds(r, &s, i, n_threads, why);
    mf_free(mem);
    return ok;
}
