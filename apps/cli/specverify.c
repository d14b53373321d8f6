/* `minfer specverify`: what a forward pass over a few tokens costs, all logits wanted, as speculative
 * decoding verifies drafts. The sizes are measured in turn, so that a disturbance meets all of them. */
#include "cli/specverify.h"

#include "cli/bench.h"
#include "cli/commands.h"
#include "common/model.h"
#include "common/output.h"
#include "common/times.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>

static const int32_t standard_sizes[] = {1, 3, 5}, standard_depth[] = {0};

typedef struct list {
    const int32_t *v;
    size_t n;
    int32_t most;
} list;

static list list_of(const app_ints *given, const int32_t *standard, size_t n)
{
    list l = given->n ? (list){given->v, given->n, 0} : (list){standard, n, 0};
    for (size_t i = 0; i < l.n; i++)
        if (l.v[i] > l.most) l.most = l.v[i];
    return l;
}

typedef struct job {
    const app_options *o;
    list sizes, depths;
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session;
    verify_setup setup;
    int32_t *ids;  /* pseudo-random tokens; position i always holds ids[i] */
    float *logits; /* [sizes.most] rows */
    double *ms;    /* [1 + sizes.n][repetitions]; the first line is that of a single token, for all of them */
    size_t n_done;
    minfer_error *err;
} job;

static void free_job(job *j)
{
    minfer_session_free(j->session);
    app_engine_free(j->engine);
    minfer_model_free(j->model);
    mf_free(j->ids);
    mf_free(j->logits);
    mf_free(j->ms);
}

static minfer_status open_engine(job *j, int64_t cells)
{
    app_options sized = *j->o;
    if (cells > j->setup.model.n_ctx)
        return mf_fail(j->err, MINFER_ERR_LIMIT, "%lld tokens are more than the context of the model, %d",
                       (long long)cells, j->setup.model.n_ctx);
    sized.engine.n_ctx = (int32_t)cells;
    if (sized.engine.n_batch < j->sizes.most) sized.engine.n_batch = j->sizes.most; /* one pass each */
    MF_TRY(app_engine_create(&sized, j->model, 1, 1, &j->engine, j->err));
    minfer_engine_get_info(j->engine, &j->setup.engine);
    return minfer_session_create(j->engine, &j->session, j->err);
}

static minfer_status open_all(job *j)
{
    int64_t cells = (int64_t)j->sizes.most + j->depths.most;
    MF_TRY(app_model_open(j->o, app_model_load, &j->model, j->err));
    minfer_model_get_info(j->model, &j->setup.model);
    MF_TRY(open_engine(j, cells));
    size_t row = (size_t)j->setup.engine.n_vocab * sizeof *j->logits;
    j->ids = mf_calloc((size_t)cells, sizeof *j->ids);
    j->logits = mf_calloc((size_t)j->sizes.most, row);
    j->ms = mf_calloc((1 + j->sizes.n) * (size_t)j->o->repetitions, sizeof *j->ms);
    if (!j->ids || !j->logits || !j->ms) return MF_NOMEM(j->err);
    mf_rng rng;
    mf_rng_seed(&rng, 1);
    for (int64_t i = 0; i < cells; i++)
        j->ids[i] = (int32_t)(mf_rng_u64(&rng) % (uint64_t)j->setup.model.n_vocab);
    return MINFER_OK;
}

static minfer_status time_pass(job *j, size_t depth, int32_t n, double *ms)
{
    int64_t start = mf_clock_ns();
    MF_TRY(minfer_session_feed(j->session, j->ids + depth, (size_t)n, j->logits, (size_t)n, j->err));
    *ms = (double)(mf_clock_ns() - start) * 1e-6;
    return minfer_session_rollback(j->session, depth, j->err);
}

/* One round over all sizes; each line of j->ms gets column `at`. */
static minfer_status time_all(job *j, size_t depth, size_t at)
{
    size_t columns = (size_t)j->o->repetitions;
    MF_TRY(time_pass(j, depth, 1, &j->ms[at]));
    for (size_t i = 0; i < j->sizes.n; i++)
        if (j->sizes.v[i] > 1) MF_TRY(time_pass(j, depth, j->sizes.v[i], &j->ms[(i + 1) * columns + at]));
    return MINFER_OK;
}

static double fastest(const double *ms, int32_t n)
{
    double best = ms[0];
    for (int32_t i = 1; i < n; i++)
        if (ms[i] < best) best = ms[i];
    return best;
}

static verify_result summarize(const job *j, size_t i, int32_t depth)
{
    int32_t columns = j->o->repetitions;
    const double *ms = j->sizes.v[i] > 1 ? j->ms + (i + 1) * (size_t)columns : j->ms;
    double sum = 0, squares = 0;
    for (int32_t k = 0; k < columns; k++) sum += ms[k];
    verify_result r = {.n = j->sizes.v[i], .depth = depth, .repetitions = columns, .mean = sum / columns};
    for (int32_t k = 0; k < columns; k++) squares += (ms[k] - r.mean) * (ms[k] - r.mean);
    r.sd = columns > 1 ? sqrt(squares / (columns - 1)) : 0;
    r.cost = fastest(ms, columns) / fastest(j->ms, columns);
    r.amortization = r.n / r.cost;
    r.even = verify_even(r.n, r.cost);
    return r;
}

double verify_even(int32_t n, double cost)
{
    double low = 0, high = 1;
    if (cost > n) return INFINITY;
    for (int step = 0; step < 50; step++) {
        double p = (low + high) / 2, sum = 1, power = 1;
        for (int32_t i = 1; i < n; i++) sum += power *= p;
        *(sum < cost ? &low : &high) = p;
    }
    return high;
}

static minfer_status measure(job *j, int32_t depth)
{
    mf_buf out = {0};
    bool ok = true;
    MF_TRY(minfer_session_feed(j->session, j->ids, (size_t)depth, NULL, 0, j->err));
    MF_TRY(time_all(j, (size_t)depth, 0)); /* does not count: builds graphs, brings weights into memory */
    for (size_t i = 0; i < (size_t)j->o->repetitions; i++) MF_TRY(time_all(j, (size_t)depth, i));
    for (size_t i = 0; i < j->sizes.n && ok; i++) {
        verify_result r = summarize(j, i, depth);
        bool first = j->n_done++ == 0;
        ok = (!first || verify_head(j->o->format, &out)) &&
             verify_row(j->o->format, &j->setup, &r, first, &out);
    }
    MF_TRY(app_out_buf(&out, ok, j->err));
    return minfer_session_rollback(j->session, 0, j->err);
}

static minfer_status measure_all(job *j)
{
    mf_buf out = {0};
    for (size_t i = 0; i < j->depths.n; i++) MF_TRY(measure(j, j->depths.v[i]));
    bool ok = verify_end(j->o->format, &out);
    return app_out_buf(&out, ok, j->err);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    job j = {.o = o,
             .sizes = list_of(&o->pass_tokens, standard_sizes, 3),
             .depths = list_of(&o->bench_depth, standard_depth, 1),
             .err = err};
    minfer_status st = open_all(&j);
    if (st == MINFER_OK) st = measure_all(&j);
    free_job(&j);
    return st;
}

const app_program cli_specverify = {app_engine_check, run};
