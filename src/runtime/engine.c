/* Opening devices, registering weights, forward passes. */
#include "runtime/engine.h"

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels.h"
#include "graph/export.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_CTX = 4096, DEFAULT_BATCH = 512, MAX_BATCH = 1 << 16 };

void minfer_engine_options_init(minfer_engine_options *o)
{
    *o = (minfer_engine_options){.gpu_layers = -1};
}

static minfer_status tier_of(const char *name, int32_t *tier, minfer_error *err)
{
    char built[64] = "";
    *tier = -1;
    if (!name) return MINFER_OK;
    for (cpu_tier t = 0; t < CPU_TIER_COUNT; t++) {
        size_t n = strlen(built);
        if (!cpu_tier_built(t)) continue;
        if (strcmp(name, cpu_tier_name(t)) == 0) *tier = (int32_t)t;
        snprintf(built + n, sizeof built - n, "%s%s", n ? ", " : "", cpu_tier_name(t));
    }
    if (*tier >= 0) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_ARG, "CPU tier '%.40s' is not one of this build (%s)", name, built);
}

static void close_devices(mf_device *const *devices, int32_t n)
{
    for (int32_t i = 0; i < n; i++) devices[i]->ops->close(devices[i]);
}

minfer_status minfer_engine_options_check(const minfer_engine_options *o, minfer_error *err)
{
    const mf_backend *rows[MF_BACKEND_COUNT];
    int32_t n_rows, tier;
    MF_TRY(tier_of(o->cpu_tier, &tier, err));
    if (o->n_threads < 0) return mf_fail(err, MINFER_ERR_ARG, "threads: %d is negative", o->n_threads);
    if (o->n_ctx < 0) return mf_fail(err, MINFER_ERR_ARG, "context: %d is negative", o->n_ctx);
    if (o->n_batch < 0 || o->n_batch > MAX_BATCH)
        return mf_fail(err, MINFER_ERR_ARG, "batch: %d is not in 1..%d", o->n_batch, MAX_BATCH);
    return mf_backend_select(o->backends, rows, &n_rows, err);
}

static minfer_status open_devices(const minfer_engine_options *o, mf_engine_devices *on, minfer_error *err)
{
    const mf_backend *rows[MF_BACKEND_COUNT];
    mf_backend_options bo = {.n_threads = o->n_threads};
    int32_t n_rows;
    MF_TRY(tier_of(o->cpu_tier, &bo.cpu_tier, err));
    MF_TRY(mf_backend_select(o->backends, rows, &n_rows, err));
    for (int32_t i = 0; i < n_rows; i++) {
        bo.budget = rows[i]->id == MF_BACKEND_CPU ? 0 : (size_t)o->gpu_budget;
        minfer_status st = rows[i]->open(&bo, &on->devices[i], err);
        if (st != MINFER_OK) {
            close_devices(on->devices, i);
            return st;
        }
    }
    on->n = n_rows;
    return MINFER_OK;
}

static mf_type cache_format(minfer_cache_type t)
{
    return t == MINFER_CACHE_F32 ? MF_TYPE_F32 : t == MINFER_CACHE_Q8_0 ? MF_TYPE_Q8_0 : MF_TYPE_F16;
}

/* As users write it. */
static const char *cache_name(mf_type format)
{
    return format == MF_TYPE_F32 ? "f32" : format == MF_TYPE_Q8_0 ? "q8_0" : "f16";
}

/* A row of the cache is a head; packed formats hold whole blocks. */
static minfer_status check_cache(const minfer_engine *e, minfer_error *err)
{
    int32_t dim = e->model->bound->hp.head_dim,
            block = mf_type_get((uint32_t)e->base.kv_format)->block_values;
    if (dim % block == 0) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_UNSUPPORTED,
                   "cache type %s packs blocks of %d values, the heads of %s have %d: use f16 or f32",
                   cache_name(e->base.kv_format), block, mf_gguf_path(e->model->gguf), dim);
}

static void set_sizes(minfer_engine *e, const minfer_engine_options *o)
{
    int32_t trained = e->model->bound->hp.n_ctx;
    e->n_ctx = o->n_ctx ? o->n_ctx : DEFAULT_CTX;
    if (e->n_ctx > trained) e->n_ctx = trained;
    e->n_batch = o->n_batch ? o->n_batch : DEFAULT_BATCH;
    if (e->n_batch > e->n_ctx) e->n_batch = e->n_ctx;
}

/* Build-time fused ops that a device other than the last (the CPU) offers. */
static uint32_t gpu_ops(const minfer_engine *e)
{
    uint32_t ops = 0;
    for (int32_t i = 0; i + 1 < e->n_devices; i++) ops |= e->devices[i]->fused_ops;
    return ops;
}

static void describe(minfer_engine *e)
{
    size_t n = 0;
    for (int32_t i = 0; i < e->n_devices; i++) {
        int w = snprintf(e->backends + n, sizeof e->backends - n, "%s%s", i ? "," : "", e->devices[i]->name);
        if (w > 0 && n + (size_t)w < sizeof e->backends) n += (size_t)w;
    }
    const mf_device *cpu = e->devices[e->n_devices - 1];
    if (cpu->id == MF_BACKEND_CPU) {
        snprintf(e->tier, sizeof e->tier, "%s", mf_cpu_tier(cpu));
        e->n_threads = mf_cpu_threads(cpu);
    }
}

static minfer_status make_rows(minfer_engine *e, minfer_error *err)
{
    size_t n = (size_t)e->n_batch;
    int32_t *p = mf_calloc(n, 12 * sizeof *p);
    if (!p) return MF_NOMEM(err);
    e->rows = (mf_rows){
        .ids = p, .positions = p + n, .cells = p + 2 * n, .tail = p + 3 * n, .window = p + 4 * n};
    return MINFER_OK;
}

static minfer_status move_cells(void *user, int32_t from, int32_t to, int32_t n, minfer_error *err)
{
    return mf_alloc_kv_move(&((minfer_engine *)user)->graphs.alloc, from, to, n, err);
}

static minfer_status setup(minfer_engine *e, const minfer_engine_options *o, const mf_engine_devices *on,
                           minfer_error *err)
{
    if (!e->model->bound)
        return mf_fail(err, MINFER_ERR_STATE, "%s: was opened without its weights",
                       mf_gguf_path(e->model->gguf));
    MF_TRY(minfer_engine_options_check(o, err));
    set_sizes(e, o);
    e->trace = o->trace;
    e->trace_user = o->trace_user;
    if (o->op_timing) e->times = mf_calloc(1, sizeof *e->times);
    if (o->op_timing && !e->times) return MF_NOMEM(err);
    e->base = (mf_graph_params){.n_ctx = e->n_ctx,
                                .flash_attn = !o->no_flash_attn,
                                .fuse_qkv = !o->no_fuse_qkv,
                                .fuse_ffn = !o->no_fuse_ffn,
                                .kv_format = cache_format(o->cache_type),
                                .gpu_ops = gpu_ops(e),
                                .gpu_layers = o->gpu_layers,
                                .weights_version = 1};
    MF_TRY(check_cache(e, err));
    MF_TRY(make_rows(e, err));
    MF_TRY(mf_kv_cells_init(&e->kv, e->n_ctx, move_cells, e, err));
    for (int32_t i = 0; i < e->n_devices; i++) MF_TRY(mf_model_register(e->model->bound, e->devices[i], err));
    mf_assign assign = {.devices = e->devices, .n_devices = e->n_devices, .wish = on->wish, .user = on->user};
    MF_TRY(mf_graph_cache_init(&e->graphs, &assign, e->model->bound->hp.n_layer, mf_model_build,
                               e->model->bound, err));
    e->graphs.fuse = !o->no_fuse;
    describe(e);
    return MINFER_OK;
}

/* A graph of one token tells now whether this model, cache type and device set go together. */
static minfer_status probe(minfer_engine *e, minfer_error *err)
{
    mf_graph_params p = mf_engine_params(e, 1, 1, MF_WINDOW_CAUSAL);
    mf_cached_graph *g;
    return mf_graph_cache_get(&e->graphs, &p, &g, err);
}

minfer_status mf_engine_create_on(const minfer_model *m, const minfer_engine_options *o,
                                  const mf_engine_devices *on, minfer_engine **out, minfer_error *err)
{
    minfer_engine *e = mf_calloc(1, sizeof *e);
    *out = NULL;
    if (!e) {
        close_devices(on->devices, on->n);
        return MF_NOMEM(err);
    }
    e->model = m;
    e->n_devices = on->n;
    memcpy(e->devices, on->devices, sizeof e->devices);
    minfer_status st = setup(e, o, on, err);
    if (st == MINFER_OK) st = probe(e, err);
    if (st != MINFER_OK) {
        minfer_engine_free(e);
        return st;
    }
    *out = e;
    return MINFER_OK;
}

minfer_status minfer_engine_create(const minfer_model *m, const minfer_engine_options *o, minfer_engine **out,
                                   minfer_error *err)
{
    mf_engine_devices on = {0};
    minfer_engine_options defaults;
    *out = NULL;
    minfer_engine_options_init(&defaults);
    if (!o) o = &defaults;
    MF_TRY(minfer_engine_options_check(o, err));
    MF_TRY(open_devices(o, &on, err));
    return mf_engine_create_on(m, o, &on, out, err);
}

void minfer_engine_free(minfer_engine *e)
{
    if (!e) return;
    mf_graph_cache_free(&e->graphs);
    close_devices(e->devices, e->n_devices);
    mf_kv_cells_free(&e->kv);
    mf_free(e->rows.ids);
    mf_free(e->times);
    mf_free(e);
}

void minfer_engine_get_info(const minfer_engine *e, minfer_engine_info *out)
{
    *out = (minfer_engine_info){.n_ctx = e->n_ctx,
                                .n_threads = e->n_threads,
                                .n_ctx_unused = mf_kv_unused(&e->kv),
                                .n_vocab = e->model->bound->hp.n_vocab,
                                .backends = e->backends,
                                .cpu_tier = e->tier,
                                .cache_type = cache_name(e->base.kv_format),
                                .graphs_built = e->graphs.n_built,
                                .graphs_reused = e->graphs.n_reused};
}

mf_graph_params mf_engine_params(const minfer_engine *e, int32_t n_tokens, int32_t n_out, mf_window window)
{
    mf_graph_params p = e->base;
    p.n_tokens = n_tokens;
    p.n_out = n_out;
    p.kind = n_tokens == 1 ? MF_GRAPH_DECODE : MF_GRAPH_PREFILL;
    p.explicit_span = window != MF_WINDOW_CAUSAL;
    p.kv_map = window == MF_WINDOW_MAP;
    return p;
}

static void tell_trace(const minfer_engine *e, mf_cached_graph *g)
{
    mf_buf text = {0};
    if (!e->trace || g->traced) return;
    g->traced = true;
    if (mf_sched_trace(&g->sched, &g->exec, &text)) e->trace(e->trace_user, text.data);
    mf_buf_free(&text);
}

/* The graph for a pass; t, when set, counts the time of that. */
static minfer_status find_graph(minfer_engine *e, const mf_graph_params *p, mf_pass_times *t,
                                mf_cached_graph **out, minfer_error *err)
{
    int64_t start = t ? mf_clock_ns() : 0;
    MF_TRY(mf_graph_cache_get(&e->graphs, p, out, err));
    tell_trace(e, *out);
    (*out)->sched.times = t ? &t->steps : NULL;
    if (t) {
        t->plan.count++;
        mf_time_lap(&t->plan, start);
    }
    return MINFER_OK;
}

static minfer_status forward(minfer_engine *e, const mf_graph_params *p, mf_pass_times *t,
                             mf_cached_graph **out, minfer_error *err)
{
    size_t nt = (size_t)p->n_tokens;
    MF_TRY(find_graph(e, p, t, out, err));
    mf_inputs in = {.data = {[MF_INPUT_TOKEN_IDS] = e->rows.ids,
                             [MF_INPUT_POSITIONS] = e->rows.positions,
                             [MF_INPUT_CELLS] = e->rows.cells,
                             [MF_INPUT_TAIL_IDS] = e->rows.tail,
                             [MF_INPUT_ATTN_SPAN] = e->rows.window,
                             [MF_INPUT_KV_MAP] = e->rows.window},
                    .n = {[MF_INPUT_TOKEN_IDS] = nt,
                          [MF_INPUT_POSITIONS] = nt,
                          [MF_INPUT_CELLS] = nt,
                          [MF_INPUT_TAIL_IDS] = (size_t)p->n_out,
                          [MF_INPUT_ATTN_SPAN] = 2 * nt,
                          [MF_INPUT_KV_MAP] = 8 * nt}};
    return mf_graph_cache_run(&e->graphs, *out, &in, NULL, err);
}

minfer_status mf_engine_forward(minfer_engine *e, const mf_pass *pass, mf_cached_graph **out,
                                minfer_error *err)
{
    mf_graph_params p = mf_engine_params(e, pass->n, pass->n_out, pass->window);
    mf_pass_times *t = mf_times_begin(e->times, e->devices, e->n_devices, pass->n);
    p.states = pass->states;
    if (!t) return forward(e, &p, NULL, out, err);
    int64_t start = mf_clock_ns();
    minfer_status st = forward(e, &p, t, out, err);
    t->pass.count++;
    mf_time_lap(&t->pass, start);
    return st;
}

void minfer_engine_times(const minfer_engine *e, minfer_time_fn *fn, void *user)
{
    if (!e->times) return;
    mf_times_tell(&e->times->prefill, false, e->devices, e->n_devices, fn, user);
    mf_times_tell(&e->times->decode, true, e->devices, e->n_devices, fn, user);
}

minfer_status minfer_engine_graph(minfer_engine *e, int32_t n_tokens, minfer_graph_format format, char **text,
                                  size_t *n, minfer_error *err)
{
    mf_buf out = {0};
    mf_cached_graph *g;
    *text = NULL;
    if (n_tokens < 1 || n_tokens > e->n_batch)
        return mf_fail(err, MINFER_ERR_ARG, "a graph of %d tokens; 1 to %d are possible", n_tokens,
                       e->n_batch);
    mf_graph_params p = mf_engine_params(e, n_tokens, 1, MF_WINDOW_CAUSAL);
    MF_TRY(mf_graph_cache_get(&e->graphs, &p, &g, err));
    mf_export x = {&g->graph, e->devices, e->model->name[0] ? e->model->name : e->model->arch, p.kind};
    minfer_status st = MINFER_OK;
    if (format == MINFER_GRAPH_JSON)
        st = mf_export_json(&x, &out, err);
    else if (!mf_export_dot(&x, &out))
        st = MF_NOMEM(err);
    if (st != MINFER_OK) {
        mf_buf_free(&out);
        return st;
    }
    *text = out.data;
    *n = out.len;
    return MINFER_OK;
}
