/* `minfer bench`: tokens/s of prefill (a prompt in one go) and of decode (one token after the other), in a
 * context that is empty or already filled to some depth. Times are of the monotonic clock. */
#include "cli/bench.h"

#include "cli/commands.h"
#include "cli/types.h"
#include "common/model.h"
#include "common/output.h"
#include "common/times.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

/* ---- tests */

/* The sizes of the user, or the default. */
static app_ints sizes(const app_ints *given, int32_t *standard)
{
    return given->n ? *given : (app_ints){.v = standard, .n = 1};
}

/* Calls take for every test, by depth, prefill first; ends at the first failure. */
static minfer_status each_test(const app_options *o, minfer_status (*take)(void *user, bench_test t),
                               void *user)
{
    int32_t standard[] = {512, 128, 0, 1};
    app_ints depths = sizes(&o->bench_depth, &standard[2]);
    app_ints lists[] = {[BENCH_PREFILL] = sizes(&o->bench_prompt, &standard[0]),
                        [BENCH_DECODE] = sizes(&o->bench_gen, &standard[1])};
    app_ints batches[] = {
        [BENCH_PREFILL] = {.v = &standard[3], .n = 1}, [BENCH_DECODE] = sizes(&o->bench_batch, &standard[3])};
    for (size_t d = 0; d < depths.n; d++)
        for (int kind = BENCH_PREFILL; kind <= BENCH_DECODE; kind++)
            for (size_t i = 0; i < lists[kind].n; i++)
                for (size_t k = 0; k < batches[kind].n && lists[kind].v[i]; k++)
                    MF_TRY(take(user, (bench_test){(bench_kind)kind, lists[kind].v[i], depths.v[d],
                                                   batches[kind].v[k]}));
    return MINFER_OK;
}

/* What the largest tests need. */
typedef struct {
    int64_t cells; /* 0: there is no test */
    int32_t batch;
} most;

static minfer_status take_most(void *user, bench_test t)
{
    most *m = user;
    int64_t cells = ((int64_t)t.n + t.depth) * t.batch;
    if (cells > m->cells) m->cells = cells;
    if (t.batch > m->batch) m->batch = t.batch;
    return MINFER_OK;
}

static most most_of(const app_options *o)
{
    most m = {0};
    each_test(o, take_most, &m);
    return m;
}

static minfer_status check(const app_options *o, minfer_error *err)
{
    if (most_of(o).cells == 0)
        return mf_fail(err, MINFER_ERR_ARG, "there is nothing to measure: all sizes are 0");
    return app_engine_check(o, err);
}

/* ---- opening */

typedef struct bench {
    const app_options *o;
    minfer_model *model;
    minfer_engine *engine;
    minfer_session **sessions; /* [n_sessions] */
    minfer_feed *feeds;        /* [n_sessions] */
    int32_t n_sessions;
    bench_setup setup;
    int32_t *ids;  /* [cells] pseudo-random tokens; position i always holds ids[i] */
    float *logits; /* [n_sessions] rows */
    size_t n_done; /* tests */
    minfer_error *err;
} bench;

static void free_bench(bench *b)
{
    for (int32_t i = 0; b->sessions && i < b->n_sessions; i++) minfer_session_free(b->sessions[i]);
    mf_free(b->sessions);
    mf_free(b->feeds);
    app_engine_free(b->engine);
    minfer_model_free(b->model);
    mf_free(b->ids);
    mf_free(b->logits);
}

/* The type of tensors that take the most bytes. */
static const char *main_type(const minfer_model *m, size_t n_tensors)
{
    cli_type types[CLI_MAX_TYPES];
    size_t n = cli_types(m, n_tensors, types), best = 0;
    for (size_t i = 1; i < n; i++)
        if (types[i].bytes > types[best].bytes) best = i;
    return n ? types[best].name : "?";
}

static minfer_status open_engine(bench *b, int32_t cells)
{
    app_options sized = *b->o;
    sized.engine.n_ctx = cells;
    MF_TRY(app_engine_create(&sized, b->model, 1, 1, &b->engine, b->err));
    minfer_engine_get_info(b->engine, &b->setup.engine);
    b->setup.type = main_type(b->model, b->setup.model.n_tensors);
    b->setup.n_batch = b->o->engine.n_batch;
    return MINFER_OK;
}

static minfer_status open_sessions(bench *b, int32_t n)
{
    b->sessions = mf_calloc((size_t)n, sizeof *b->sessions);
    b->feeds = mf_calloc((size_t)n, sizeof *b->feeds);
    if (!b->sessions || !b->feeds) return MF_NOMEM(b->err);
    b->n_sessions = n;
    for (int32_t i = 0; i < n; i++) MF_TRY(minfer_session_create(b->engine, &b->sessions[i], b->err));
    return MINFER_OK;
}

static minfer_status make_data(bench *b, size_t n)
{
    b->ids = mf_calloc(n, sizeof *b->ids);
    b->logits = mf_calloc((size_t)b->setup.engine.n_vocab * (size_t)b->n_sessions, sizeof *b->logits);
    if (!b->ids || !b->logits) return MF_NOMEM(b->err);
    mf_rng rng;
    mf_rng_seed(&rng, 1);
    for (size_t i = 0; i < n; i++) b->ids[i] = (int32_t)(mf_rng_u64(&rng) % (uint64_t)b->setup.model.n_vocab);
    return MINFER_OK;
}

static minfer_status open_all(bench *b)
{
    most m = most_of(b->o);
    MF_TRY(app_model_open(b->o, app_model_load, &b->model, b->err));
    minfer_model_get_info(b->model, &b->setup.model);
    if (m.cells > b->setup.model.n_ctx)
        return mf_fail(b->err, MINFER_ERR_LIMIT, "%lld tokens are more than the context of the model, %d",
                       (long long)m.cells, b->setup.model.n_ctx);
    MF_TRY(open_engine(b, (int32_t)m.cells));
    MF_TRY(open_sessions(b, m.batch));
    MF_TRY(make_data(b, (size_t)m.cells));
    if (strcmp(b->setup.engine.backends, "cpu") != 0) return MINFER_OK;
    return app_limits_measure(b->setup.engine.n_threads, b->setup.engine.cpu_tier,
                              bench_weight_bytes(b->model, &b->setup.model), &b->setup.limits, b->err);
}

/* ---- measuring */

/* Makes the sequences of a test exactly `depth` tokens long, keeping what is there, and the others empty. */
static minfer_status fill(bench *b, const bench_test *t)
{
    size_t depth = (size_t)t->depth;
    for (int32_t i = 0; i < b->n_sessions; i++) {
        size_t keep = i < t->batch ? depth : 0;
        if (minfer_session_length(b->sessions[i]) > keep)
            MF_TRY(minfer_session_rollback(b->sessions[i], keep, b->err));
    }
    for (int32_t i = 0; i < t->batch; i++) {
        size_t have = minfer_session_length(b->sessions[i]);
        MF_TRY(minfer_session_feed(b->sessions[i], b->ids + have, depth - have, NULL, 0, b->err));
    }
    return MINFER_OK;
}

static minfer_status measure(bench *b, const bench_test *t, double *rate)
{
    size_t n = (size_t)t->n, step = t->kind == BENCH_PREFILL ? n : 1, row = (size_t)b->setup.engine.n_vocab;
    MF_TRY(fill(b, t));
    int64_t start = mf_clock_ns();
    for (size_t i = 0; i < n; i += step) {
        for (int32_t k = 0; k < t->batch; k++)
            b->feeds[k] = (minfer_feed){b->sessions[k], b->ids + t->depth + i, step,
                                        b->logits + (size_t)k * row, 1};
        MF_TRY(minfer_feed_batch(b->engine, b->feeds, (size_t)t->batch, b->err));
    }
    int64_t ns = mf_clock_ns() - start;
    *rate = (double)n * t->batch * 1e9 / (double)(ns > 0 ? ns : 1);
    return MINFER_OK;
}

static void summarize(const bench *b, bench_result *r)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < r->n; i++) sum += r->rates[i];
    r->mean = sum / r->n;
    for (int32_t i = 0; i < r->n; i++) squares += (r->rates[i] - r->mean) * (r->rates[i] - r->mean);
    r->sd = r->n > 1 ? sqrt(squares / (r->n - 1)) : 0;
    bench_work work = bench_work_of(b->model, &b->setup, &r->test);
    double runs = r->mean / r->test.n / r->test.batch * 1e-9; /* 10^9 a second */
    r->work = (bench_work){work.bytes * runs, work.products * runs};
}

static minfer_status print_row(bench *b, const bench_result *r)
{
    mf_buf out = {0};
    bool first = b->n_done++ == 0, ok = (!first || bench_head(b->o->format, &out)) &&
                                        bench_row(b->o->format, &b->setup, r, first, &out);
    return app_out_buf(&out, ok, b->err);
}

/* A run that does not count builds graphs and brings weights into memory. */
static minfer_status run_test(void *user, bench_test t)
{
    bench *b = user;
    double *rates = mf_calloc((size_t)b->o->repetitions, sizeof *rates), unused;
    bench_result r = {.test = t, .n = b->o->repetitions, .rates = rates};
    minfer_status st = rates ? measure(b, &t, &unused) : MF_NOMEM(b->err);
    for (int32_t i = 0; i < r.n && st == MINFER_OK; i++) st = measure(b, &t, &rates[i]);
    if (st == MINFER_OK) {
        summarize(b, &r);
        st = print_row(b, &r);
    }
    mf_free(rates);
    return st;
}

static minfer_status run_tests(bench *b)
{
    mf_buf out = {0};
    MF_TRY(each_test(b->o, run_test, b));
    bool ok = bench_end(b->o->format, &out);
    return app_out_buf(&out, ok, b->err);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    bench b = {.o = o, .err = err};
    minfer_status st = open_all(&b);
    if (st == MINFER_OK) st = run_tests(&b);
    free_bench(&b);
    return st;
}

const app_program cli_bench = {check, run};
