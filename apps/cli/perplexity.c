/* `minfer perplexity`: how well a model predicts a text. The text is cut into windows, each evaluated from an
 * empty context; the last predictions of a window count, those that have seen the most. The same rows of
 * logits can be stored, and compared with stored ones. */
#include "cli/perplexity.h"

#include "cli/commands.h"
#include "common/model.h"
#include "common/prompt.h"
#include "common/term.h"
#include "common/times.h"

#include "base/clock.h"
#include "base/filemap.h"

#include <stdlib.h>
#include <string.h>

static const char *text_path(const app_options *o)
{
    return o->words.n ? o->words.v[0] : o->file;
}

static minfer_status check(const app_options *o, minfer_error *err)
{
    if (o->words.n > 1)
        return mf_fail(err, MINFER_ERR_ARG, "perplexity: unexpected argument '%.60s'", o->words.v[1]);
    if (o->words.n && o->file)
        return mf_fail(err, MINFER_ERR_ARG, "the text is given twice: by -f and by the name after MODEL");
    if (!text_path(o) && !o->kl)
        return mf_fail(err, MINFER_ERR_ARG, "perplexity needs a text: a file's name after MODEL, or -f FILE");
    if (o->kl && (o->engine.n_ctx || o->stride))
        return mf_fail(err, MINFER_ERR_ARG, "%s: the windows are those of the stored logits (--kl)",
                       o->stride ? "--stride" : "--n-ctx");
    if (o->save_logits && strcmp(o->save_logits, "-") == 0)
        return mf_fail(err, MINFER_ERR_ARG, "--save-logits -: stdout is taken by the results");
    if (o->stride && o->engine.n_ctx && o->stride >= o->engine.n_ctx)
        return mf_fail(err, MINFER_ERR_ARG, "--stride %d: a window of %d tokens has %d predictions",
                       o->stride, o->engine.n_ctx, o->engine.n_ctx - 1);
    return app_engine_check(o, err);
}

typedef struct job {
    const app_options *o;
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session;
    ppl_setup setup;
    int32_t *text_ids; /* minfer_free */
    size_t n_text_ids;
    mf_filemap map;
    app_logits stored; /* into map */
    app_file save;
    const int32_t *ids; /* the tokens of the windows */
    int32_t *window;    /* [n_ctx] */
    float *rows;        /* [chunk][n_vocab] */
    size_t chunk;
    ppl_result result;
    minfer_error *err;
} job;

static void free_job(job *j)
{
    minfer_session_free(j->session);
    app_engine_free(j->engine);
    minfer_free(j->text_ids);
    minfer_model_free(j->model);
    mf_filemap_close(&j->map);
    mf_free(j->window);
    mf_free(j->rows);
    mf_free(j->result.divergences);
}

/* ---- windows */

enum { DEFAULT_CTX = 4096, LEAST_CTX = 3 };

/* BOS where the model asks for it, else -1. */
static minfer_status bos_of(job *j, int32_t *bos)
{
    int32_t *ids;
    size_t n;
    MF_TRY(minfer_tokenize(j->model, "", 0, MINFER_TOKENIZE_BOS, &ids, &n, j->err));
    *bos = n ? ids[0] : -1;
    minfer_free(ids);
    return MINFER_OK;
}

/* The second half of each window counts, as in llama.cpp's tool; with --stride so many at its end that every
 * token counts once. */
static minfer_status cut_text(job *j, app_windows *w)
{
    const app_options *o = j->o;
    size_t n = j->n_text_ids;
    int32_t trained = j->setup.model.n_ctx;
    w->n_ctx = o->engine.n_ctx ? o->engine.n_ctx : DEFAULT_CTX < trained ? DEFAULT_CTX : trained;
    if (!o->engine.n_ctx && n < (size_t)w->n_ctx) w->n_ctx = n < LEAST_CTX ? LEAST_CTX : (int32_t)n;
    w->stride = o->stride ? o->stride : w->n_ctx;
    w->counted = o->stride ? o->stride : w->n_ctx - w->n_ctx / 2 - 1;
    if (w->n_ctx < LEAST_CTX)
        return mf_fail(j->err, MINFER_ERR_ARG, "--n-ctx %d: a window has %d tokens at least", w->n_ctx,
                       LEAST_CTX);
    if (n < (size_t)w->n_ctx)
        return mf_fail(j->err, MINFER_ERR_ARG, "the text's tokens, %zu, do not fill a window of %d", n,
                       w->n_ctx);
    if (w->counted >= w->n_ctx)
        return mf_fail(j->err, MINFER_ERR_ARG, "--stride %d: a window of %d tokens has %d predictions",
                       w->stride, w->n_ctx, w->n_ctx - 1);
    size_t windows = (n - (size_t)w->n_ctx) / (size_t)w->stride + 1;
    w->n = windows < INT32_MAX ? (int32_t)windows : INT32_MAX;
    j->ids = j->text_ids;
    return bos_of(j, &w->bos);
}

/* The windows of the stored logits; the text, where one is given, must be theirs. */
static minfer_status take_windows(job *j, app_windows *w)
{
    const int32_t *stored = j->stored.ids;
    *w = j->stored.windows;
    size_t n = app_windows_tokens(w), same = 0;
    j->ids = stored;
    if (!j->text_ids) return MINFER_OK;
    while (same < n && same < j->n_text_ids && j->text_ids[same] == stored[same]) same++;
    if (same == n) return MINFER_OK;
    if (same == j->n_text_ids)
        return mf_fail(j->err, MINFER_ERR_ARG, "%s: the logits are of %zu tokens, the text has %zu", j->o->kl,
                       n, same);
    return mf_fail(j->err, MINFER_ERR_ARG, "%s: token %zu is %d, that of the text is %d", j->o->kl, same,
                   stored[same], j->text_ids[same]);
}

static minfer_status plan(job *j)
{
    app_windows *w = &j->setup.windows;
    MF_TRY(j->o->kl ? take_windows(j, w) : cut_text(j, w));
    if (j->o->windows && w->n > j->o->windows) w->n = j->o->windows;
    if (w->n_ctx > j->setup.model.n_ctx)
        return mf_fail(j->err, MINFER_ERR_LIMIT,
                       "windows of %d tokens are more than the context of the model, %d", w->n_ctx,
                       j->setup.model.n_ctx);
    if (j->o->verbose)
        app_note("%d windows of %d tokens, %d apart, the last %d predictions of each count", w->n, w->n_ctx,
                 w->stride, w->counted);
    return MINFER_OK;
}

/* ---- opening */

static minfer_status open_stored(job *j)
{
    const char *path = j->o->kl;
    if (!path) return MINFER_OK;
    MF_TRY(mf_filemap_open(path, &j->map, j->err));
    minfer_status st = app_logits_parse(j->map.data, j->map.size, &j->stored, j->err);
    return st == MINFER_OK ? st : mf_fail_prefix(j->err, st, "%s", path);
}

static minfer_status open_model(job *j)
{
    const char *text = text_path(j->o);
    MF_TRY(app_model_open(j->o, app_model_load, &j->model, j->err));
    minfer_model_get_info(j->model, &j->setup.model);
    j->setup.text = text;
    j->setup.base = j->o->kl;
    if (!text) return MINFER_OK;
    return app_text_ids(j->o, j->model, NULL, text, &j->text_ids, &j->n_text_ids, j->err);
}

static minfer_status open_engine(job *j)
{
    app_options sized = *j->o;
    sized.engine.n_ctx = j->setup.windows.n_ctx;
    MF_TRY(app_engine_create(&sized, j->model, 1, 1, &j->engine, j->err));
    minfer_engine_get_info(j->engine, &j->setup.engine);
    if (j->o->kl && j->stored.n_vocab != j->setup.engine.n_vocab)
        return mf_fail(j->err, MINFER_ERR_ARG, "%s: rows of %d logits, the model's have %d", j->o->kl,
                       j->stored.n_vocab, j->setup.engine.n_vocab);
    return minfer_session_create(j->engine, &j->session, j->err);
}

enum { ROW_BYTES = 1 << 26 }; /* of logits in memory at once */

static minfer_status open_memory(job *j)
{
    const app_windows *w = &j->setup.windows;
    size_t row = (size_t)j->setup.engine.n_vocab * sizeof(float), counted = (size_t)w->counted;
    j->chunk = ROW_BYTES / row ? ROW_BYTES / row : 1;
    if (j->chunk > counted) j->chunk = counted;
    j->window = mf_calloc((size_t)w->n_ctx, sizeof *j->window);
    j->rows = mf_calloc(j->chunk, row);
    if (j->o->kl) j->result.divergences = mf_calloc((size_t)w->n * counted, sizeof(double));
    return j->window && j->rows && (!j->o->kl || j->result.divergences) ? MINFER_OK : MF_NOMEM(j->err);
}

static minfer_status open_save(job *j)
{
    app_logits l = {.windows = j->setup.windows, .n_vocab = j->setup.engine.n_vocab, .ids = j->ids};
    return j->o->save_logits ? app_logits_begin(&j->save, &l, j->err) : MINFER_OK;
}

/* ---- measuring */

static void compare(job *j, const cli_row *r, const cli_row *stored, int32_t id)
{
    ppl_result *sum = &j->result;
    double here = cli_row_surprise(r, id), there = cli_row_surprise(stored, id),
           divergence = cli_row_divergence(stored, r);
    sum->divergences[sum->divergence.n] = divergence;
    cli_mean_add(&sum->divergence, divergence);
    cli_mean_add(&sum->stored_surprise, there);
    cli_mean_add(&sum->more, here - there);
    cli_mean_add(&sum->same, r->best == stored->best);
}

/* Row i of window k, which predicts token id. */
static minfer_status score(job *j, const float *logits, int32_t k, size_t i, int32_t id)
{
    size_t n = (size_t)j->setup.engine.n_vocab;
    cli_row r, stored;
    if (!cli_row_read(logits, n, &r))
        return mf_fail(j->err, MINFER_ERR_FORMAT, "window %d, prediction %zu: a logit is infinite or NaN",
                       k + 1, i);
    if (j->o->kl) {
        const float *row = j->stored.rows + ((size_t)k * (size_t)j->setup.windows.counted + i) * n;
        if (!cli_row_read(row, n, &stored))
            return mf_fail(j->err, MINFER_ERR_FORMAT,
                           "%s: window %d, prediction %zu: a logit is infinite or NaN", j->o->kl, k + 1, i);
        compare(j, &r, &stored, id);
    }
    cli_mean_add(&j->result.surprise, cli_row_surprise(&r, id));
    return MINFER_OK;
}

static minfer_status feed(job *j, size_t at, size_t n, size_t n_rows)
{
    int64_t start = mf_clock_ns();
    if (n) MF_TRY(minfer_session_feed(j->session, j->window + at, n, j->rows, n_rows, j->err));
    j->result.ns += mf_clock_ns() - start;
    j->result.n_fed += n;
    return MINFER_OK;
}

/* The last token of a window is predicted, but predicts nothing, and so is not fed. */
static minfer_status evaluate(job *j, int32_t k)
{
    const app_windows *w = &j->setup.windows;
    size_t n_ctx = (size_t)w->n_ctx, counted = (size_t)w->counted, first = n_ctx - 1 - counted,
           n_vocab = (size_t)j->setup.engine.n_vocab;
    memcpy(j->window, j->ids + (size_t)k * (size_t)w->stride, n_ctx * sizeof *j->window);
    if (w->bos >= 0) j->window[0] = w->bos;
    MF_TRY(minfer_session_rollback(j->session, 0, j->err));
    MF_TRY(feed(j, 0, first, 0));
    for (size_t done = 0, take; done < counted; done += take) {
        take = counted - done < j->chunk ? counted - done : j->chunk;
        MF_TRY(feed(j, first + done, take, take));
        for (size_t i = 0; i < take; i++)
            MF_TRY(score(j, j->rows + i * n_vocab, k, done + i, j->window[first + done + i + 1]));
        if (j->o->save_logits)
            MF_TRY(app_file_write(&j->save, j->rows, take * n_vocab * sizeof *j->rows, j->err));
    }
    j->result.n++;
    return MINFER_OK;
}

static minfer_status tell_row(job *j)
{
    mf_buf out = {0};
    bool first = j->result.n == 1, ok = (!first || ppl_head(j->o->format, &j->setup, &out)) &&
                                        ppl_row(j->o->format, &j->setup, &j->result, first, &out);
    return app_out_buf(&out, ok, j->err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static minfer_status tell_result(job *j)
{
    mf_buf out = {0};
    ppl_result *r = &j->result;
    if (r->divergences) qsort(r->divergences, (size_t)r->divergence.n, sizeof(double), by_value);
    bool ok = ppl_end(j->o->format, &j->setup, r, &out);
    return app_out_buf(&out, ok, j->err);
}

static minfer_status measure(job *j)
{
    for (int32_t k = 0; k < j->setup.windows.n; k++) {
        MF_TRY(evaluate(j, k));
        MF_TRY(tell_row(j));
    }
    return tell_result(j);
}

static minfer_status run_job(job *j)
{
    MF_TRY(open_stored(j));
    MF_TRY(open_model(j));
    MF_TRY(plan(j));
    MF_TRY(open_engine(j));
    MF_TRY(open_memory(j));
    MF_TRY(open_save(j));
    return measure(j);
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    job j = {.o = o, .err = err, .save = {.fd = -1}};
    minfer_status st = o->save_logits ? app_file_create(&j.save, o->save_logits, err) : MINFER_OK;
    if (st == MINFER_OK) st = run_job(&j);
    if (o->save_logits) {
        minfer_status closed = app_file_close(&j.save, st == MINFER_OK, err);
        if (st == MINFER_OK) st = closed;
    }
    free_job(&j);
    return st;
}

const app_program cli_perplexity = {check, run};
