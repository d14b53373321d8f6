#include "ops/rig.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "device/test_device.h"
#include "graph/cache.h"

enum { GUARD = 1024 }; /* bytes around every value, and behind every buffer; keeps alignments */

/* ---- devices ---- */

static minfer_status open_cpu(op_device *row, minfer_error *err)
{
    mf_backend_options o = {.n_threads = row->threads, .cpu_tier = row->number};
    if (!cpu_tier_usable((cpu_tier)row->number))
        return mf_fail(err, MINFER_ERR_UNSUPPORTED, "this processor has no %s",
                       cpu_tier_name((cpu_tier)row->number));
    row->caps = mf_cpu_caps;
    return mf_cpu_open(&o, &row->dev, err);
}

/* number: the fused ops it offers. */
static minfer_status open_test(op_device *row, minfer_error *err)
{
    test_device_options o = {.name = "test", .fused_ops = (uint32_t)row->number};
    o.causal_only = o.no_swiglu = row->number == 0;
    MF_TRY(test_device_open(&o, &row->dev, err));
    row->caps = *test_device_caps(row->dev);
    return MINFER_OK;
}

static minfer_status open_backend(op_device *row, minfer_error *err)
{
    const mf_backend *b = &mf_backend_table[row->number];
    mf_backend_options o = {.cpu_tier = -1};
    if (!b->caps) return mf_fail(err, MINFER_ERR_UNSUPPORTED, "not compiled in");
    if (b->usable(err) != MINFER_OK) return MINFER_ERR_UNSUPPORTED;
    row->caps = *b->caps;
    return b->open(&o, &row->dev, err);
}

static op_device rows[] = {
    {.name = "cpu scalar", .open = open_cpu, .number = CPU_TIER_SCALAR, .threads = 1},
    {.name = "cpu scalar, 4 threads", .open = open_cpu, .number = CPU_TIER_SCALAR, .threads = 4},
    {.name = "cpu avx2, 3 threads", .open = open_cpu, .number = CPU_TIER_AVX2, .threads = 3},
    {.name = "cpu avx512, 2 threads", .open = open_cpu, .number = CPU_TIER_AVX512, .threads = 2},
    {.name = "cpu neon, 3 threads", .open = open_cpu, .number = CPU_TIER_NEON, .threads = 3},
    {.name = "test", .open = open_test, .number = TEST_FUSED_ALL},
    {.name = "test, plain and causal", .open = open_test, .number = 0},
    {.name = "metal", .open = open_backend, .number = MF_BACKEND_METAL, .other_bits = true},
    {.name = "cuda", .open = open_backend, .number = MF_BACKEND_CUDA, .other_bits = true},
};

static minfer_status guarded_alloc(mf_device *d, size_t bytes, void **buf, minfer_error *err)
{
    size_t i = 0;
    while (rows[i].dev != d) i++;
    return rows[i].inner->buffer_alloc(d, bytes + GUARD, buf, err);
}

op_device *op_devices_open(size_t *n)
{
    *n = COUNT(rows);
    for (size_t i = 0; i < COUNT(rows); i++) {
        op_device *r = &rows[i];
        minfer_status st = r->open(r, &r->absent);
        if (st == MINFER_ERR_UNSUPPORTED) continue;
        assert_ok(st, &r->absent);
        r->inner = r->dev->ops;
        r->ops = *r->inner;
        r->ops.buffer_alloc = guarded_alloc;
        r->dev->ops = &r->ops;
    }
    assert_non_null(rows[0].dev);
    return rows;
}

void op_devices_close(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].dev) rows[i].dev->ops->close(rows[i].dev);
        rows[i].dev = NULL;
    }
}

minfer_status op_register(op_device *dv, const op_data *d, minfer_error *err)
{
    for (int i = 0; i < d->n_all; i++)
        MF_TRY(dv->dev->ops->weight_register(dv->dev, &d->all[i].w, d->all[i].data, d->all[i].bytes, err));
    return MINFER_OK;
}

void op_forget(op_device *dv)
{
    dv->dev->ops->weights_forget(dv->dev, "");
}

/* ---- a run ---- */

typedef struct slot {
    size_t old, at, bytes; /* offset as planned, offset with guards, most that a value has there */
    bool scratch;
} slot;

typedef struct run {
    op_device *dv;
    const op_case *c;
    const op_data *d;
    op_model model;
    mf_graph_cache cache;
    mf_cached_graph *g;
    slot *slots;
    size_t n_slots;
    uint8_t *seen; /* the arena after the run, but for its scratch */
    char *why;
} run;

static bool wrong(run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(run *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, OP_WHY, fmt, ap);
    va_end(ap);
    return false;
}

static bool done(run *r, minfer_status st, const minfer_error *err)
{
    return st == MINFER_OK || wrong(r, "%s: %s", mf_status_name(st), err->message);
}

/* ---- guards between values ---- */

static void add_slot(run *r, const mf_loc *l, bool scratch)
{
    size_t i = 0;
    if (l->place != MF_PLACE_ARENA || l->bytes == 0) return;
    while (i < r->n_slots && r->slots[i].old < l->offset) i++;
    if (i == r->n_slots || r->slots[i].old != l->offset) {
        memmove(r->slots + i + 1, r->slots + i, (r->n_slots++ - i) * sizeof *r->slots);
        r->slots[i] = (slot){.old = l->offset, .scratch = scratch};
    }
    if (r->slots[i].bytes < l->bytes) r->slots[i].bytes = l->bytes;
}

static size_t moved(const run *r, size_t root, size_t offset)
{
    size_t i = 0;
    while (r->slots[i].old != root) i++;
    return offset - root + r->slots[i].at;
}

/* Moves values apart. A view's offset lies within its root's slot. */
static void spread(run *r)
{
    mf_plan *p = &r->g->plan;
    const mf_graph *g = &r->g->graph;
    r->slots = mf_calloc(2 * (size_t)p->n_nodes + 2, sizeof *r->slots);
    size_t *root = mf_calloc((size_t)p->n_nodes, sizeof *root);
    assert_non_null(r->slots);
    assert_non_null(root);
    for (mf_id i = 0; i < p->n_nodes; i++) {
        root[i] = p->value[mf_graph_root(g, i)].offset;
        if (mf_graph_root(g, i) == i) add_slot(r, &p->value[i], false);
        add_slot(r, &p->extra[i], false);
    }
    add_slot(r, &p->scratch[0], true);
    for (size_t i = 0; i < r->n_slots; i++) r->slots[i].at = r->slots[i].old + (i + 1) * GUARD;
    for (mf_id i = 0; i < p->n_nodes; i++) {
        if (p->value[i].place == MF_PLACE_ARENA) p->value[i].offset = moved(r, root[i], p->value[i].offset);
        if (p->extra[i].bytes) p->extra[i].offset = moved(r, p->extra[i].offset, p->extra[i].offset);
    }
    if (p->scratch[0].bytes) p->scratch[0].offset = moved(r, p->scratch[0].offset, p->scratch[0].offset);
    p->arena_bytes[0] += (r->n_slots + 1) * GUARD;
    mf_free(root);
}

/* The poison of a place: that of a buffer from its beginning. */
static const uint8_t *poison(size_t bytes)
{
    static uint8_t *p;
    static size_t have;
    if (bytes > have) {
        mf_free(p);
        have = bytes + bytes / 2;
        p = mf_malloc(have);
        assert_non_null(p);
        op_poison(p, have);
    }
    return p;
}

/* Bytes [from, to) of the arena that are not the inside of the scratch: all of a small one, the ends of a
 * large one, which would take longer than the case. */
typedef bool span_fn(run *r, size_t from, size_t to);

static bool each_span(run *r, span_fn *f)
{
    enum { ENDS = 1 << 14 };
    size_t from = 0, end = r->cache.alloc.arena[0].size + GUARD;
    for (size_t i = 0; i < r->n_slots; i++) {
        const slot *s = &r->slots[i];
        if (!s->scratch || s->bytes <= 2 * ENDS || r->c->op == MF_OP_ATTN) continue;
        if (!f(r, from, s->at + ENDS)) return false;
        from = s->at + s->bytes - ENDS;
    }
    return f(r, from, end);
}

static bool poison_span(run *r, size_t from, size_t to)
{
    minfer_error err = {0};
    mf_mem at = {r->cache.alloc.arena[0].buf, from};
    return done(r, r->dv->ops.write(r->dv->dev, at, poison(to) + from, to - from, &err), &err);
}

static bool read_span(run *r, size_t from, size_t to)
{
    minfer_error err = {0};
    mf_mem at = {r->cache.alloc.arena[0].buf, from};
    return done(r, r->dv->ops.read(r->dv->dev, at, r->seen + from, to - from, &err), &err);
}

static const char *owner(const run *r, size_t at)
{
    const mf_plan *p = &r->g->plan;
    for (mf_id i = r->g->graph.n_nodes; i-- > 0;)
        if (p->value[i].place == MF_PLACE_ARENA && p->value[i].offset == at) return r->g->graph.nodes[i].name;
    return "something";
}

static bool check_gaps(run *r)
{
    size_t from = 0, end = r->cache.alloc.arena[0].size + GUARD;
    for (size_t i = 0; i <= r->n_slots; i++) {
        size_t to = i < r->n_slots ? r->slots[i].at : end, bad = op_first_unpoisoned(r->seen, from, to);
        if (bad < to && bad - from < to - bad && i > 0)
            return wrong(r, "byte %zu behind %s was written", bad - from, owner(r, r->slots[i - 1].at));
        if (bad < to)
            return wrong(r, "%zu bytes before %s were written", to - bad,
                         i < r->n_slots ? owner(r, r->slots[i].at) : "the end");
        if (i < r->n_slots) from = r->slots[i].at + r->slots[i].bytes;
    }
    return true;
}

/* Sources that other nodes could still read must be as they were gathered. */
static bool check_kept(run *r)
{
    for (int i = 0; i < r->model.n_kept; i++) {
        const mf_loc *l = &r->g->plan.value[r->model.kept[i]];
        size_t row = (size_t)r->model.kept_of[i]->w.dims[0] * sizeof(float);
        for (int32_t t = 0; t < r->c->nt; t++)
            if (memcmp(r->seen + l->offset + (size_t)t * row, op_row(r->d, r->model.kept_of[i], t), row) != 0)
                return wrong(r, "source %s was written at token %d", r->model.kept_of[i]->name, t);
    }
    return true;
}

/* ---- the cache ---- */

static bool fill_cache(run *r)
{
    const mf_kv_pair *p = mf_alloc_kv_pair(&r->cache.alloc, OP_LAYER);
    minfer_error err = {0};
    size_t n = r->d->cache_bytes;
    for (int i = 0; p && i < 2; i++) {
        mf_mem at = {i ? p->v : p->k, 0}, behind = {at.buf, n};
        if (p->bytes != n) return wrong(r, "a region has %zu bytes, not %zu", p->bytes, n);
        if (!done(r, r->dv->ops.write(r->dv->dev, at, r->d->cache[i], n, &err), &err) ||
            !done(r, r->dv->ops.write(r->dv->dev, behind, poison(n + GUARD) + n, GUARD, &err), &err))
            return false;
    }
    return true;
}

static bool read_cache(run *r, op_result *out)
{
    const mf_kv_pair *p = mf_alloc_kv_pair(&r->cache.alloc, OP_LAYER);
    minfer_error err = {0};
    size_t n = r->d->cache_bytes;
    for (int i = 0; p && i < 2; i++) {
        mf_mem at = {i ? p->v : p->k, 0};
        out->cache[i] = mf_malloc(n + GUARD);
        assert_non_null(out->cache[i]);
        if (!done(r, r->dv->ops.read(r->dv->dev, at, out->cache[i], n + GUARD, &err), &err)) return false;
        if (op_first_unpoisoned(out->cache[i], n, n + GUARD) < n + GUARD)
            return wrong(r, "something was written behind the %c cache", i ? 'V' : 'K');
    }
    return true;
}

/* ---- all of it ---- */

static mf_inputs inputs_of(const run *r)
{
    const op_data *d = r->d;
    size_t n = (size_t)r->c->nt;
    return (mf_inputs){.data = {d->ids, d->positions, d->cells, NULL, d->window, d->window},
                       .n = {n, n, n, 0, 2 * n, 8 * n}};
}

static bool build(run *r)
{
    mf_assign assign = {.devices = &r->dv->dev, .n_devices = 1};
    mf_graph_params p = op_params(r->c);
    minfer_error err = {0};
    return done(r, op_register(r->dv, r->d, &err), &err) &&
           done(r, mf_graph_cache_init(&r->cache, &assign, OP_LAYERS, op_build, &r->model, &err), &err) &&
           done(r, mf_graph_cache_get(&r->cache, &p, &r->g, &err), &err);
}

static bool prepare(run *r)
{
    minfer_error err = {0};
    spread(r);
    if (!done(r, mf_alloc_commit(&r->cache.alloc, &r->g->plan, &err), &err)) return false;
    r->seen = mf_malloc(r->cache.alloc.arena[0].size + GUARD);
    assert_non_null(r->seen);
    return each_span(r, poison_span) && fill_cache(r);
}

static bool execute(run *r, op_result *out)
{
    mf_inputs in = inputs_of(r);
    minfer_error err = {0};
    mf_id id = r->g->graph.output;
    if (id >= 0) {
        out->bytes = mf_node_bytes(&r->g->graph.nodes[id]);
        out->out = mf_malloc(out->bytes);
        assert_non_null(out->out);
    }
    out->n_fused = r->g->n_fused;
    return done(r, mf_graph_cache_run(&r->cache, r->g, &in, out->out, &err), &err);
}

/* Memory is inspected after a run that failed, too. */
static bool run_and_inspect(run *r, op_result *out)
{
    char error[OP_WHY];
    r->why[0] = 0;
    bool ran = execute(r, out);
    memcpy(error, r->why, sizeof error);
    bool clean = each_span(r, read_span) && check_gaps(r) && (!ran || check_kept(r)) && read_cache(r, out);
    if (clean && !ran) memcpy(r->why, error, sizeof error);
    return clean && ran;
}

bool op_run_case(op_device *dv, const op_case *c, const op_data *d, bool plain, op_result *out,
                 char why[OP_WHY])
{
    run r = {.dv = dv, .c = c, .d = d, .model = {.c = c, .d = d, .plain = plain}, .why = why};
    *out = (op_result){0};
    bool ok = build(&r) && prepare(&r) && run_and_inspect(&r, out);
    mf_graph_cache_free(&r.cache);
    op_forget(dv);
    mf_free(r.slots);
    mf_free(r.seen);
    return ok;
}

void op_result_free(op_result *r)
{
    mf_free(r->out);
    mf_free(r->cache[0]);
    mf_free(r->cache[1]);
    *r = (op_result){0};
}
