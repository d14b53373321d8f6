/* Thread pool: an epoch announces work, a sense-reversing counter is the barrier. Threads that wait long stop
 * spinning: at a barrier they yield, between runs they park on a condition variable. */
#include "base/pool.h"
#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
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

enum { SPIN_BARRIER = 4000, SPIN_IDLE = 20000 };

struct mf_pool {
    int n;
    pthread_t threads[MF_MAX_THREADS];
    mf_pool_fn *fn;
    void *arg;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    _Alignas(64) atomic_uint epoch; /* grows by one per run */
    atomic_int parked;
    atomic_bool stop;
    _Alignas(64) atomic_int arrived; /* at the current barrier */
    atomic_uint phase;               /* grows by one per completed barrier */
};

typedef struct {
    mf_pool *pool;
    int ith;
} worker_arg;

void mf_pool_barrier(mf_pool *p)
{
    if (p->n == 1) return;
    unsigned phase = atomic_load_explicit(&p->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) == p->n - 1) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&p->phase, phase + 1, memory_order_release);
        return;
    }
    for (int spins = 0; atomic_load_explicit(&p->phase, memory_order_acquire) == phase;) {
        if (++spins < SPIN_BARRIER)
            cpu_relax();
        else
            sched_yield();
    }
}

static void park(mf_pool *p, unsigned seen)
{
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->parked, 1);
    while (atomic_load(&p->epoch) == seen) pthread_cond_wait(&p->wake, &p->mutex);
    atomic_fetch_sub(&p->parked, 1);
    pthread_mutex_unlock(&p->mutex);
}

static void *worker(void *v)
{
    worker_arg w = *(worker_arg *)v;
    mf_pool *p = w.pool;
    mf_free(v);
    for (unsigned seen = 0;; seen++) {
        for (int spins = 0; atomic_load_explicit(&p->epoch, memory_order_acquire) == seen; cpu_relax())
            if (++spins == SPIN_IDLE) {
                park(p, seen);
                break;
            }
        if (atomic_load(&p->stop)) return NULL;
        p->fn(p->arg, w.ith, p->n);
        mf_pool_barrier(p);
    }
}

static void announce(mf_pool *p)
{
    atomic_fetch_add(&p->epoch, 1);
    if (atomic_load(&p->parked) == 0) return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
}

void mf_pool_run(mf_pool *p, mf_pool_fn *fn, void *arg)
{
    if (p->n == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    announce(p);
    fn(arg, 0, p->n);
    mf_pool_barrier(p);
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
    announce(p);
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
