/* Thread pool: an epoch announces work, shares are taken from counters, an event tells that a phase is
 * over. Whoever waits spins for a while and then sleeps, so that a thread that waits never keeps the core
 * from the one it waits for: at once when there are more threads than cores, after some microseconds when
 * other programs have taken a core. */
#include "base/pool.h"
#include "base/clock.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define cpu_relax() _mm_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield")
#else
#define cpu_relax() ((void)0)
#endif

enum { SPIN_NS = 60000, SPIN_IDLE_NS = 200000, SPIN_CROWDED_NS = 2000, RELAX = 32 };

/* A counter that threads wait on to change. */
typedef struct {
    _Alignas(64) atomic_uint value;
    atomic_int sleepers;
} event;

struct mf_pool {
    int n;
    int64_t spin_ns, idle_ns;
    pthread_t threads[MF_MAX_THREADS];
    mf_pool_fn *fn;
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    event epoch;                     /* grows by one per run */
    event phase;                     /* grows by one per phase that is over */
    event home;                      /* grows by one when all threads of a run have returned */
    _Alignas(64) atomic_uint done;   /* shares finished */
    _Alignas(64) atomic_uint over;   /* shares of the phases that are over */
    _Alignas(64) atomic_int arrived; /* threads that have returned */
    atomic_bool stop;
    struct {
        _Alignas(64) atomic_uint n;
    } taken[MF_MAX_THREADS]; /* [i]: of shares i, i + threads, i + 2 threads, ..., so many */
};

typedef struct {
    mf_pool *pool;
    int ith;
} worker_arg;

static bool changed(event *e, unsigned from)
{
    return atomic_load_explicit(&e->value, memory_order_acquire) != from;
}

static void sleep_until(mf_pool *p, event *e, unsigned from)
{
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&e->sleepers, 1);
    while (atomic_load(&e->value) == from) pthread_cond_wait(&p->wake, &p->mutex);
    atomic_fetch_sub(&e->sleepers, 1);
    pthread_mutex_unlock(&p->mutex);
}

/* Returns when e is no longer `from`. */
static void await(mf_pool *p, event *e, unsigned from, int64_t spin_ns)
{
    for (int i = 0; i < RELAX; i++) {
        if (changed(e, from)) return;
        cpu_relax();
    }
    for (int64_t end = mf_clock_ns() + spin_ns; mf_clock_ns() < end;)
        for (int i = 0; i < RELAX; i++) {
            if (changed(e, from)) return;
            cpu_relax();
        }
    sleep_until(p, e, from);
}

static void advance(mf_pool *p, event *e)
{
    atomic_fetch_add(&e->value, 1);
    if (atomic_load(&e->sleepers) == 0) return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
}

/* The next share of thread `of`, when it is one before end. */
static bool take(mf_pool *p, unsigned of, uint32_t end, uint32_t *share)
{
    unsigned k = atomic_load_explicit(&p->taken[of].n, memory_order_relaxed);
    while (k * (unsigned)p->n + of < end)
        if (atomic_compare_exchange_weak_explicit(&p->taken[of].n, &k, k + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *share = k * (unsigned)p->n + of;
            return true;
        }
    return false;
}

bool mf_pool_claim(mf_pool *p, int ith, uint32_t end, uint32_t *share)
{
    for (int i = 0; i < p->n; i++)
        if (take(p, (unsigned)((ith + i) % p->n), end, share)) return true;
    for (;;) {
        unsigned seen = atomic_load(&p->phase.value);
        if (atomic_load_explicit(&p->over, memory_order_acquire) >= end) return false;
        await(p, &p->phase, seen, p->spin_ns);
    }
}

bool mf_pool_finish(mf_pool *p, uint32_t end)
{
    return atomic_fetch_add_explicit(&p->done, 1, memory_order_acq_rel) + 1 == end;
}

void mf_pool_end_phase(mf_pool *p, uint32_t end)
{
    atomic_store_explicit(&p->over, end, memory_order_release);
    advance(p, &p->phase);
}

/* The last of a run's threads wakes the others. */
static void all_return(mf_pool *p)
{
    unsigned home = atomic_load(&p->home.value);
    if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->n - 1) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
        advance(p, &p->home);
    } else {
        await(p, &p->home, home, p->spin_ns);
    }
}

static void *worker(void *v)
{
    worker_arg w = *(worker_arg *)v;
    mf_pool *p = w.pool;
    mf_free(v);
    for (unsigned seen = 0;; seen++) {
        await(p, &p->epoch, seen, p->idle_ns);
        if (atomic_load(&p->stop)) return NULL;
        p->fn(p->arg, w.ith, p->n);
        all_return(p);
    }
}

void mf_pool_run(mf_pool *p, mf_pool_fn *fn, void *arg)
{
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store_explicit(&p->over, 0, memory_order_relaxed);
    for (int i = 0; i < p->n; i++) atomic_store_explicit(&p->taken[i].n, 0, memory_order_relaxed);
    if (p->n == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    advance(p, &p->epoch);
    fn(arg, 0, p->n);
    all_return(p);
}

static minfer_status start_worker(mf_pool *p, int ith, minfer_error *err)
{
    worker_arg *w = mf_malloc(sizeof *w);
    if (!w) return MF_NOMEM(err);
    *w = (worker_arg){p, ith};
    int e = pthread_create(&p->threads[ith], NULL, worker, w);
    if (e == 0) return MINFER_OK;
    mf_free(w);
    return mf_fail(err, MINFER_ERR_NOMEM, "cannot start thread %d of %d: %s", ith + 1, p->n, strerror(e));
}

static void stop_workers(mf_pool *p, int n)
{
    atomic_store(&p->stop, true);
    advance(p, &p->epoch);
    for (int i = 1; i < n; i++) pthread_join(p->threads[i], NULL);
}

minfer_status mf_pool_create(int n_threads, mf_pool **out, minfer_error *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > MF_MAX_THREADS)
        return mf_fail(err, MINFER_ERR_ARG, "threads: %d is not in 1..%d", n_threads, MF_MAX_THREADS);
    mf_pool *p = mf_malloc_aligned(sizeof *p);
    if (!p) return MF_NOMEM(err);
    memset(p, 0, sizeof *p);
    p->n = n_threads;
    bool crowded = n_threads > mf_cpu_count();
    p->spin_ns = crowded ? SPIN_CROWDED_NS : SPIN_NS;
    p->idle_ns = crowded ? SPIN_CROWDED_NS : SPIN_IDLE_NS;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    for (int i = 1; i < n_threads; i++) {
        minfer_status st = start_worker(p, i, err);
        if (st != MINFER_OK) {
            stop_workers(p, i);
            p->n = 1;
            mf_pool_free(p);
            return st;
        }
    }
    *out = p;
    return MINFER_OK;
}

void mf_pool_free(mf_pool *p)
{
    if (!p) return;
    if (p->n > 1) stop_workers(p, p->n);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->wake);
    mf_free_aligned(p);
}

int mf_pool_threads(const mf_pool *p)
{
    return p->n;
}
