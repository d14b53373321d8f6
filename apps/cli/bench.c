/* `minfer bench`: tokens/s of prefill (a prompt in one go) and of decode (one token after the other), each
 * from an empty context. Times are of the monotonic clock. */
#include "cli/bench.h"

#include "cli/commands.h"
#include "cli/types.h"
#include "common/model.h"
#include "common/output.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>

static const int32_t standard_prompt = 512, standard_gen = 128;

/* The sizes of the user, or the default. */
static const int32_t *sizes(const app_ints *given, const int32_t *standard, size_t *n)
{
    *n = given->n ? given->n : 1;
    return given->n ? given->v : standard;
}

static int32_t most_tokens(const app_options *o)
{
    int32_t most = 0;
    size_t n;
    const int32_t *v = sizes(&o->bench_prompt, &standard_prompt, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i] > most) most = v[i];
    v = sizes(&o->bench_gen, &standard_gen, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i] > most) most = v[i];
    return most;
}

static minfer_status check(const app_options *o, minfer_error *err)
{
    if (most_tokens(o) == 0)
        return mf_fail(err, MINFER_ERR_ARG, "there is nothing to measure: all sizes are 0");
    return app_engine_check(o, err);
}

typedef struct bench {
    const app_options *o;
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session;
    bench_setup setup;
    int32_t *ids;  /* [n_ctx] pseudo-random tokens */
    float *logits; /* one row */
    size_t n_done; /* tests */
    minfer_error *err;
} bench;

static void free_bench(bench *b)
{
    minfer_session_free(b->session);
    minfer_engine_free(b->engine);
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

static minfer_status open_all(bench *b)
{
    const app_options *o = b->o;
    int32_t most = most_tokens(o);
    app_options sized = *o;
    sized.engine.n_ctx = most;
    MF_TRY(app_model_open(o, app_model_load, &b->model, b->err));
    minfer_model_get_info(b->model, &b->setup.model);
    if (most > b->setup.model.n_ctx)
        return mf_fail(b->err, MINFER_ERR_LIMIT, "%d tokens are more than the context of the model, %d", most,
                       b->setup.model.n_ctx);
    MF_TRY(app_engine_create(&sized, b->model, 1, 1, &b->engine, b->err));
    minfer_engine_get_info(b->engine, &b->setup.engine);
    b->setup.type = main_type(b->model, b->setup.model.n_tensors);
    b->setup.n_batch = o->engine.n_batch;
    b->ids = mf_calloc((size_t)most, sizeof *b->ids);
    b->logits = mf_calloc((size_t)b->setup.engine.n_vocab, sizeof *b->logits);
    if (!b->ids || !b->logits) return MF_NOMEM(b->err);
    mf_rng rng;
    mf_rng_seed(&rng, 1);
    for (int32_t i = 0; i < most; i++)
        b->ids[i] = (int32_t)(mf_rng_u64(&rng) % (uint64_t)b->setup.model.n_vocab);
    return minfer_session_create(b->engine, &b->session, b->err);
}

/* One run: the whole prompt at once, or token by token, each with its logits. */
static minfer_status measure(bench *b, const bench_result *r, double *rate)
{
    size_t n = (size_t)(r->n_prompt ? r->n_prompt : r->n_gen), step = r->n_prompt ? n : 1;
    MF_TRY(minfer_session_rollback(b->session, 0, b->err));
    int64_t start = mf_clock_ns();
    for (size_t i = 0; i < n; i += step)
        MF_TRY(minfer_session_feed(b->session, b->ids + i, step, b->logits, 1, b->err));
    int64_t ns = mf_clock_ns() - start;
    *rate = (double)n * 1e9 / (double)(ns > 0 ? ns : 1);
    return MINFER_OK;
}

static void summarize(bench_result *r)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < r->n; i++) sum += r->rates[i];
    r->mean = sum / r->n;
    for (int32_t i = 0; i < r->n; i++) squares += (r->rates[i] - r->mean) * (r->rates[i] - r->mean);
    r->sd = r->n > 1 ? sqrt(squares / (r->n - 1)) : 0;
}

static minfer_status print_row(bench *b, const bench_result *r)
{
    mf_buf out = {0};
    bool first = b->n_done++ == 0, ok = (!first || bench_head(b->o->format, &out)) &&
                                        bench_row(b->o->format, &b->setup, r, first, &out);
    return app_out_buf(&out, ok, b->err);
}

/* A run that does not count builds graphs and brings weights into memory. */
static minfer_status test(bench *b, int32_t n_prompt, int32_t n_gen)
{
    double *rates = mf_calloc((size_t)b->o->repetitions, sizeof *rates), unused;
    bench_result r = {.n_prompt = n_prompt, .n_gen = n_gen, .n = b->o->repetitions, .rates = rates};
    minfer_status st = rates ? measure(b, &r, &unused) : MF_NOMEM(b->err);
    for (int32_t i = 0; i < r.n && st == MINFER_OK; i++) st = measure(b, &r, &rates[i]);
    if (st == MINFER_OK) {
        summarize(&r);
        st = print_row(b, &r);
    }
    mf_free(rates);
    return st;
}

static minfer_status run_tests(bench *b)
{
    size_t n;
    const int32_t *v = sizes(&b->o->bench_prompt, &standard_prompt, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i]) MF_TRY(test(b, v[i], 0));
    v = sizes(&b->o->bench_gen, &standard_gen, &n);
    for (size_t i = 0; i < n; i++)
        if (v[i]) MF_TRY(test(b, 0, v[i]));
    mf_buf out = {0};
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

const cli_command cli_bench = {check, run};
