/* The worker's thread: admits jobs, makes steps of tasks, ends them. */
#include "server/worker.h"

#include "base/clock.h"
#include "server/task.h"

#include <string.h>

struct srv_worker {
    const minfer_model *model;
    minfer_engine *engine;
    srv_worker_options o;
    srv_stats *stats;
    srv_queue queue;
    srv_slots slots;
    int32_t n_ctx, n_vocab;
    size_t n_embd;
    srv_task *tasks; /* [n_slots], the oldest first */
    size_t n_tasks;
    srv_job *job;       /* whose choices are being begun; a reference */
    float *logits;      /* [n_slots][n_vocab] */
    float *states;      /* [chunk + n_slots][n_embd], of the tokens that the step feeds for vectors */
    minfer_feed *feeds; /* those for answers, then those for vectors */
    srv_task **fed;     /* whose feeds those are */
    size_t n_feeds, n_answers, n_states;
    pthread_t thread;
    atomic_bool stop;
};

/* ---- from jobs to tasks ---- */

static void refuse_job(srv_job *j, const minfer_error *err)
{
    srv_error e = {0};
    srv_refuse(&e, 500, NULL, NULL, "%s", err->message);
    srv_job_fail(j, &e);
    srv_job_wake(j);
}

static void note_begin(srv_worker *w, srv_job *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->n_prompts; i++) n += j->prompts[i].n;
    j->begun_ns = mf_clock_ns();
    srv_histogram_add(&w->stats->waited, j->begun_ns - j->made_ns);
    atomic_fetch_add(&w->stats->prompt_tokens, n);
}

/* The next choice of the job at hand becomes a task. */
static void begin_choice(srv_worker *w)
{
    minfer_error err = {0};
    srv_job *j = w->job;
    if (j->n_begun == 0) note_begin(w, j);
    atomic_fetch_add(&j->refs, 1);
    minfer_status st = srv_task_open(&w->tasks[w->n_tasks], w->model, j, j->n_begun, w->n_embd, &err);
    if (st == MINFER_OK) {
        w->n_tasks++;
        j->n_begun++;
    } else {
        srv_job_unref(j);
        refuse_job(j, &err);
    }
}

/* Waits for a job only when there is nothing else to do. */
static void admit(srv_worker *w)
{
    while (w->n_tasks < w->o.n_slots) {
        if (w->job && (w->job->n_begun == w->job->n_choices || srv_job_is_over(w->job))) {
            srv_job_unref(w->job);
            w->job = NULL;
        }
        if (!w->job) w->job = srv_queue_pop(&w->queue, w->n_tasks == 0);
        if (!w->job) break;
        begin_choice(w);
    }
    atomic_store(&w->stats->busy, (int)w->n_tasks);
}

/* ---- the end of tasks ---- */

static void note_end(srv_worker *w, const srv_task *t)
{
    const srv_job *j = t->job;
    if (j->n_ended != j->n_choices) return;
    if (j->first_ns) srv_histogram_add(&w->stats->first, j->first_ns - j->made_ns);
    srv_histogram_add(&w->stats->whole, mf_clock_ns() - j->made_ns);
}

/* Takes out what is over or not wanted any more; the others stay in order. */
static void sweep(srv_worker *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_tasks; i++) {
        srv_task *t = &w->tasks[i];
        if (!t->over && srv_task_unwanted(t)) srv_task_end(t);
        srv_job_wake(t->job);
        if (!t->over) {
            w->tasks[kept++] = *t;
            continue;
        }
        if (t->slot) srv_slots_give(&w->slots, t->slot, t->drop);
        note_end(w, t);
        srv_task_close(t);
    }
    if (kept < w->n_tasks)
        for (size_t i = 0; i < kept; i++) w->tasks[i].parked = false;
    w->n_tasks = kept;
    atomic_store(&w->stats->busy, (int)kept);
}

/* ---- sessions of tasks ---- */

static void lose_session(srv_worker *w, srv_task *t)
{
    srv_slots_give(&w->slots, t->slot, true);
    t->slot = NULL;
    t->n_fed = 0;
}

static bool reading_prompt(const srv_task *t)
{
    return t->slot && t->n_fed + 1 < t->n;
}

static size_t common(const srv_task *a, const srv_task *b)
{
    size_t n = a->n < b->n ? a->n : b->n, k = 0;
    while (k < n && a->tokens[k] == b->tokens[k]) k++;
    return k;
}

/* Will an older task, whose prompt is not evaluated yet, soon hold clearly more of t's prompt than there is
 * now? Then t waits and shares it. */
static bool better_later(const srv_worker *w, const srv_task *t)
{
    enum { CLEARLY = 32 };
    if (!w->slots.reuse) return false;
    size_t now = srv_slots_known(&w->slots, t->tokens, t->n);
    for (const srv_task *older = w->tasks; older < t; older++) {
        if (older->parked || (older->slot && !reading_prompt(older))) continue;
        size_t then = common(older, t);
        if (then == t->n) then--;
        if (then > now && (then - now >= CLEARLY || then + 1 == t->n)) return true;
    }
    return false;
}

/* Cells that tasks will take for what is known of them already, and some for what is not. */
static size_t promised(const srv_worker *w)
{
    enum { AHEAD = 32 };
    size_t n = 0;
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i].slot) n += w->tasks[i].n - w->tasks[i].n_fed + AHEAD;
    return n;
}

static void note_known(srv_worker *w, srv_task *t)
{
    bool first = t->choice % (t->job->n_choices / t->job->n_prompts) == 0;
    if (t->counted) return;
    t->counted = true;
    if (!first) return;
    srv_job_count_cached(t->job, t->n_fed);
    atomic_fetch_add(&w->stats->cached_tokens, t->n_fed);
}

/* Gives t a session, if that can be now. */
static void find_slot(srv_worker *w, srv_task *t)
{
    minfer_error err = {0};
    size_t others = promised(w);
    if (t->parked || (!t->alone && better_later(w, t))) return;
    if (others && !srv_slots_room(&w->slots, t->tokens, t->n, others)) return;
    minfer_status st = srv_slots_take(&w->slots, t->tokens, t->n, t->alone, &t->slot, &t->n_fed, &err);
    if (st == MINFER_OK) {
        note_known(w, t);
    } else {
        t->slot = NULL;
        srv_task_fail(t, &err);
    }
}

/* The engine has no cells for a step: free slots give up theirs; then the youngest task, which goes on when
 * another one has ended. A task alone can only be short of cells because of how it shares them. */
static void find_cells(srv_worker *w, const minfer_error *err)
{
    srv_task *youngest = NULL;
    size_t holding = 0;
    if (srv_slots_evict(&w->slots)) return;
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i].slot) youngest = &w->tasks[i], holding++;
    if (!youngest) return;
    if (holding == 1 && youngest->alone) {
        srv_task_fail(youngest, err);
        return;
    }
    lose_session(w, youngest);
    youngest->parked = holding > 1;
    youngest->alone = holding == 1;
    atomic_fetch_add(&w->stats->parked, 1);
}

/* ---- steps ---- */

/* A feed for an answer goes before those for vectors. */
static void add_feed(srv_worker *w, srv_task *t, size_t n)
{
    bool vector = srv_task_wants_vector(t), last = t->n_fed + n == t->n;
    size_t at = vector ? w->n_feeds : w->n_answers, behind = w->n_feeds++ - at;
    memmove(w->feeds + at + 1, w->feeds + at, behind * sizeof *w->feeds);
    memmove(w->fed + at + 1, w->fed + at, behind * sizeof(srv_task *));
    t->rows = vector ? w->states + w->n_states * w->n_embd : w->logits + at * (size_t)w->n_vocab;
    t->n_take = n;
    w->fed[at] = t;
    w->feeds[at] = (minfer_feed){t->slot->session, t->tokens + t->n_fed, n, t->rows, vector ? n : last};
    if (vector)
        w->n_states += n;
    else
        w->n_answers++;
}

/* Prompts share the step's tokens: the oldest takes most of them, and a short one behind it need not wait
 * until it is done. */
static void plan_prompts(srv_worker *w, size_t budget)
{
    size_t waiting = 0;
    for (size_t i = 0; i < w->n_tasks; i++) waiting += reading_prompt(&w->tasks[i]);
    for (size_t i = 0; i < w->n_tasks && budget > 0; i++) {
        srv_task *t = &w->tasks[i];
        if (!reading_prompt(t)) continue;
        size_t most = --waiting && budget > 3 ? budget - budget / 4 : budget;
        size_t n = t->n - t->n_fed < most ? t->n - t->n_fed : most;
        add_feed(w, t, n);
        budget -= n;
    }
}

static void plan(srv_worker *w)
{
    w->n_feeds = w->n_answers = w->n_states = 0;
    for (size_t i = 0; i < w->n_tasks; i++) {
        srv_task *t = &w->tasks[i];
        if (!t->slot) find_slot(w, t);
        if (t->slot && !reading_prompt(t)) add_feed(w, t, 1);
    }
    plan_prompts(w, w->n_feeds ? w->o.chunk_busy : w->o.chunk);
}

/* Feeds are told to the engine together, or one after the other; those for vectors are another graph. */
static minfer_status feed(srv_worker *w, size_t *n_done, minfer_error *err)
{
    for (*n_done = 0; *n_done < w->n_feeds;) {
        bool answers = *n_done < w->n_answers;
        size_t n = !w->o.batch ? 1 : answers ? w->n_answers : w->n_feeds - w->n_answers;
        MF_TRY(
            (answers ? minfer_feed_batch : minfer_feed_batch_states)(w->engine, w->feeds + *n_done, n, err));
        *n_done += n;
    }
    return MINFER_OK;
}

static void take_results(srv_worker *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        srv_task *t = w->fed[i];
        size_t drawn = 0;
        t->n_fed += t->n_take;
        if (srv_task_wants_vector(t))
            srv_task_pool(t, w->n_embd, w->o.pooling);
        else if (t->n_fed == t->n)
            drawn = srv_task_draw(t, w->n_ctx, w->n_vocab);
        atomic_fetch_add(&w->stats->fed_tokens, t->n_take);
        atomic_fetch_add(&w->stats->drawn_tokens, drawn);
    }
}

static void step(srv_worker *w)
{
    minfer_error err = {0};
    size_t n_done;
    int64_t start = mf_clock_ns();
    plan(w);
    if (w->n_feeds == 0) return;
    minfer_status st = feed(w, &n_done, &err);
    take_results(w, n_done);
    if (st == MINFER_ERR_LIMIT)
        find_cells(w, &err);
    else if (st != MINFER_OK)
        for (size_t i = n_done; i < w->n_feeds; i++) srv_task_fail(w->fed[i], &err);
    atomic_fetch_add(&w->stats->steps, 1);
    atomic_fetch_add(&w->stats->step_ns, (unsigned long long)(mf_clock_ns() - start));
}

/* ---- the thread ---- */

static void refuse_rest(srv_worker *w)
{
    srv_error e = {0};
    srv_refuse(&e, 503, NULL, NULL, "the server has ended");
    if (w->job) srv_job_fail(w->job, &e);
    for (size_t i = 0; i < w->n_tasks; i++) srv_job_fail(w->tasks[i].job, &e);
    for (srv_job *j; (j = srv_queue_pop(&w->queue, false));) {
        srv_job_fail(j, &e);
        srv_job_wake(j);
        srv_job_unref(j);
    }
    sweep(w);
    srv_job_unref(w->job);
    w->job = NULL;
}

static void *run(void *arg)
{
    srv_worker *w = arg;
    while (!atomic_load(&w->stop)) {
        admit(w);
        step(w);
        sweep(w);
        if (w->n_tasks == 0 && !w->job && srv_queue_is_closed(&w->queue) && srv_worker_queued(w) == 0) break;
    }
    refuse_rest(w);
    atomic_store(&w->stats->busy, 0);
    return NULL;
}

void srv_worker_free(srv_worker *w)
{
    if (!w) return;
    srv_slots_free(&w->slots);
    srv_queue_free(&w->queue);
    mf_free(w->tasks);
    mf_free(w->feeds);
    mf_free(w->fed);
    mf_free_aligned(w->logits);
    mf_free_aligned(w->states);
    mf_free(w);
}

static float *rows_of(size_t n, size_t width)
{
    size_t size;
    return mf_mul_ok(n * sizeof(float), width, &size) ? mf_malloc_aligned(size) : NULL;
}

static minfer_status prepare(srv_worker *w, minfer_error *err)
{
    minfer_engine_info info;
    minfer_model_info model;
    size_t n = w->o.n_slots;
    minfer_engine_get_info(w->engine, &info);
    minfer_model_get_info(w->model, &model);
    w->n_embd = (size_t)model.n_embd;
    w->n_ctx = info.n_ctx;
    w->n_vocab = info.n_vocab;
    w->tasks = mf_calloc(n, sizeof *w->tasks);
    w->feeds = mf_calloc(n, sizeof *w->feeds);
    w->fed = mf_calloc(n, sizeof(srv_task *));
    w->logits = rows_of(n, (size_t)w->n_vocab);
    w->states = rows_of(n + w->o.chunk, w->n_embd);
    if (!w->tasks || !w->feeds || !w->fed || !w->logits || !w->states) return MF_NOMEM(err);
    MF_TRY(srv_slots_init(&w->slots, w->engine, n, w->o.reuse, err));
    if (pthread_create(&w->thread, NULL, run, w) != 0)
        return mf_fail(err, MINFER_ERR_NOMEM, "the worker's thread could not be made");
    return MINFER_OK;
}

minfer_status srv_worker_start(const minfer_model *m, minfer_engine *e, const srv_worker_options *o,
                               srv_stats *stats, srv_worker **out, minfer_error *err)
{
    *out = NULL;
    srv_worker *w = mf_calloc(1, sizeof *w);
    if (!w) return MF_NOMEM(err);
    w->model = m;
    w->engine = e;
    w->o = *o;
    w->stats = stats;
    srv_queue_init(&w->queue, o->max_queue);
    minfer_status st = prepare(w, err);
    if (st == MINFER_OK)
        *out = w;
    else
        srv_worker_free(w);
    return st;
}

srv_admission srv_worker_submit(srv_worker *w, srv_job *j)
{
    int busy = atomic_load(&w->stats->busy);
    size_t spare = (size_t)busy < w->o.n_slots ? w->o.n_slots - (size_t)busy : 0;
    return srv_queue_push(&w->queue, j, spare);
}

void srv_worker_stir(srv_worker *w)
{
    srv_queue_stir(&w->queue);
}

size_t srv_worker_queued(srv_worker *w)
{
    return srv_queue_length(&w->queue);
}

void srv_worker_drain(srv_worker *w)
{
    srv_queue_close(&w->queue);
}

void srv_worker_stop(srv_worker *w)
{
    atomic_store(&w->stop, true);
    srv_queue_close(&w->queue);
    pthread_join(w->thread, NULL);
}
