/* The worker without HTTP: jobs from several threads, clients that leave at any time, and memory that runs
 * out at any allocation, after which the next job is answered. */
#include "server/parts.h"

#include "server/worker.h"

#include <pthread.h>
#include <unistd.h>

enum { SLOTS = 3, CTX = 256 };

typedef struct {
    minfer_model *m;
    minfer_engine *e;
    srv_worker *w;
    srv_stats stats;
} world;

static void open_world(world *w, size_t max_queue, size_t chunk)
{
    minfer_error err = {0};
    minfer_engine_options o;
    *w = (world){0};
    minfer_engine_options_init(&o);
    o.n_ctx = CTX;
    o.n_threads = 1;
    assert_ok(minfer_model_open(data_path("tiny/tiny-qwen2-Q4_K.gguf"), NULL, NULL, &w->m, &err), &err);
    assert_ok(minfer_engine_create(w->m, &o, &w->e, &err), &err);
    srv_worker_options wo = {.n_slots = SLOTS,
                             .max_queue = max_queue,
                             .chunk = chunk,
                             .chunk_busy = chunk / 2,
                             .batch = true,
                             .reuse = true,
                             .pooling = SRV_POOL_MEAN};
    assert_ok(srv_worker_start(w->m, w->e, &wo, &w->stats, &w->w, &err), &err);
}

static void close_world(world *w)
{
    srv_worker_stop(w->w);
    srv_worker_free(w->w);
    minfer_engine_free(w->e);
    minfer_model_free(w->m);
}

/* A job for n_prompt tokens that follow from seed; NULL when memory runs out. */
static srv_job *make_job(uint64_t seed, size_t n_prompt, int32_t n, int32_t max_tokens)
{
    srv_request r = {.endpoint = SRV_CHAT, .max_tokens = max_tokens, .n = n};
    minfer_sampling_init(&r.sampling);
    r.sampling.seed = seed;
    srv_job *j = srv_job_create(&r, 1, (size_t)n);
    if (!j) return NULL;
    j->prompts[0].v = mf_calloc(n_prompt, sizeof(int32_t));
    j->prompts[0].n = n_prompt;
    for (size_t i = 0; j->prompts[0].v && i < n_prompt; i++)
        j->prompts[0].v[i] = (int32_t)(i < 40 ? i : (i * seed) % 200);
    if (j->prompts[0].v) return j;
    srv_job_unref(j);
    return NULL;
}

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool woken;
} sleeper;

static void wake(void *user)
{
    sleeper *s = user;
    pthread_mutex_lock(&s->lock);
    s->woken = true;
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* Submits and waits for the end; the ids of all choices go to out, in the order of choices. Returns the
 * error's status. */
static int answer(world *w, srv_job *j, mf_buf *out)
{
    sleeper s = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    mf_buf texts[4] = {0};
    srv_mail mail = {0};
    srv_error e = {0};
    size_t n_cached;
    bool over = false;
    j->wake = wake;
    j->wake_user = &s;
    assert_int_equal(srv_worker_submit(w->w, j), SRV_ADMITTED);
    while (!over) {
        pthread_mutex_lock(&s.lock);
        while (!s.woken) pthread_cond_wait(&s.news, &s.lock);
        s.woken = false;
        pthread_mutex_unlock(&s.lock);
        srv_job_take(j, &mail, &over, &e, &n_cached);
        for (size_t i = 0; i < mail.n; i++)
            if (out) assert_true(mf_buf_printf(&texts[mail.events[i].choice], "%d ", mail.events[i].id));
    }
    for (size_t i = 0; i < 4; i++) {
        if (texts[i].len) assert_true(mf_buf_append(out, texts[i].data, texts[i].len));
        mf_buf_free(&texts[i]);
    }
    srv_job_leave(j);
    srv_job_unref(j);
    srv_mail_free(&mail);
    return e.status;
}

typedef struct {
    world *w;
    uint64_t seed;
    mf_buf said;
} client;

static void *ask(void *arg)
{
    client *c = arg;
    for (uint64_t k = 0; k < 4; k++) {
        uint64_t seed = c->seed * 4 + k;
        srv_job *j = make_job(seed, 3 + 20 * (seed % 5), 1 + (int32_t)(seed % 3), 5 + (int32_t)(seed % 7));
        assert_int_equal(answer(c->w, j, &c->said), 0);
    }
    return NULL;
}

/* What threads get together is what they get one after the other. */
static void jobs_from_many_threads(void **state)
{
    (void)state;
    enum { CLIENTS = 6 };
    static world w;
    client serial[CLIENTS] = {0}, together[CLIENTS] = {0};
    pthread_t threads[CLIENTS];
    open_world(&w, 64, 16);
    for (size_t i = 0; i < CLIENTS; i++) {
        serial[i] = (client){.w = &w, .seed = i + 1};
        ask(&serial[i]);
    }
    close_world(&w);
    open_world(&w, 64, 32);
    for (size_t i = 0; i < CLIENTS; i++) {
        together[i] = (client){.w = &w, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &together[i]), 0);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        assert_string_equal(together[i].said.data, serial[i].said.data);
        mf_buf_free(&together[i].said);
        mf_buf_free(&serial[i].said);
    }
    close_world(&w);
}

static void wait_idle(world *w)
{
    while (atomic_load(&w->stats.busy) || srv_worker_queued(w->w)) usleep(500);
}

/* Clients leave while they wait, while their prompt is read, and while they are answered. */
static void clients_that_leave(void **state)
{
    (void)state;
    static world w;
    srv_job *jobs[12];
    open_world(&w, 64, 8);
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < 12; i++) {
            jobs[i] = make_job(i + 1, 10 + 15 * i, 1, -1);
            assert_int_equal(srv_worker_submit(w.w, jobs[i]), SRV_ADMITTED);
        }
        usleep((unsigned)round * 700);
        for (size_t i = 0; i < 12; i++) {
            srv_job_leave(jobs[i]);
            srv_worker_stir(w.w);
            srv_job_unref(jobs[i]);
        }
        wait_idle(&w);
    }
    assert_int_equal(answer(&w, make_job(1, 5, 1, 3), NULL), 0);
    close_world(&w);
}

static void the_queue_has_an_end(void **state)
{
    (void)state;
    static world w;
    srv_job *jobs[SLOTS + 2], *over = make_job(9, 5, 1, 1);
    open_world(&w, 2, 8);
    for (size_t i = 0; i < SLOTS + 2; i++) {
        jobs[i] = make_job(i + 1, 200, 1, -1);
        assert_int_equal(srv_worker_submit(w.w, jobs[i]), SRV_ADMITTED);
    }
    assert_int_equal(srv_worker_submit(w.w, over), SRV_QUEUE_FULL);
    srv_worker_drain(w.w);
    assert_int_equal(srv_worker_submit(w.w, over), SRV_QUEUE_CLOSED);
    srv_job_unref(over);
    for (size_t i = 0; i < SLOTS + 2; i++) srv_job_unref(jobs[i]);
    close_world(&w);
}

/* Whichever allocation fails first, and all after it: the job ends, in whatever way, and the next is
 * answered as ever. */
static void memory_runs_out(void **state)
{
    (void)state;
    static world w;
    mf_buf good = {0};
    open_world(&w, 8, 16);
    assert_int_equal(answer(&w, make_job(3, 60, 2, 6), &good), 0);
    for (long n = 1; n < 60; n++) {
        srv_job *j = make_job((uint64_t)n, 50, 2, 6);
        mf_mem_fail_at(n);
        int status = answer(&w, j, NULL);
        mf_mem_fail_at(0);
        assert_true(status == 0 || status == 500);
        mf_buf again = {0};
        assert_int_equal(answer(&w, make_job(3, 60, 2, 6), &again), 0);
        assert_string_equal(again.data, good.data);
        mf_buf_free(&again);
    }
    mf_buf_free(&good);
    close_world(&w);
}

/* Eight answers in a context that holds two: each is what it is alone. */
static void few_cells(void **state)
{
    (void)state;
    enum { N = 8 };
    static world w;
    mf_buf alone[N] = {0}, said[N] = {0};
    srv_job *jobs[N];
    open_world(&w, 64, 16);
    for (size_t i = 0; i < N; i++) assert_int_equal(answer(&w, make_job(i + 1, 90, 1, 60), &alone[i]), 0);
    for (size_t i = 0; i < N; i++) {
        jobs[i] = make_job(i + 1, 90, 1, 60);
        assert_int_equal(srv_worker_submit(w.w, jobs[i]), SRV_ADMITTED);
    }
    wait_idle(&w);
    for (size_t i = 0; i < N; i++) {
        srv_mail mail = {0};
        srv_error e = {0};
        size_t n_cached;
        bool over;
        srv_job_take(jobs[i], &mail, &over, &e, &n_cached);
        assert_true(over);
        for (size_t k = 0; k < mail.n; k++) assert_true(mf_buf_printf(&said[i], "%d ", mail.events[k].id));
        assert_string_equal(said[i].data, alone[i].data);
        srv_mail_free(&mail);
        mf_buf_free(&said[i]);
        mf_buf_free(&alone[i]);
        srv_job_unref(jobs[i]);
    }
    assert_true(atomic_load(&w.stats.parked) > 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_leave),     cmocka_unit_test(few_cells),
        cmocka_unit_test(jobs_from_many_threads), cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(the_queue_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
