/* The queue. */
#include "server/queue.h"

void srv_queue_init(srv_queue *q, size_t limit)
{
    *q = (srv_queue){.limit = limit};
    q->tail = &q->head;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->news, NULL);
}

static srv_job *take_head(srv_queue *q)
{
    srv_job *j = q->head;
    q->head = j->next;
    if (!q->head) q->tail = &q->head;
    j->next = NULL;
    q->n--;
    return j;
}

void srv_queue_free(srv_queue *q)
{
    while (q->head) srv_job_unref(take_head(q));
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->news);
}

/* Jobs of clients that have left, wherever they stand. */
static void purge(srv_queue *q)
{
    for (srv_job **at = &q->head; *at;) {
        srv_job *j = *at;
        if (!atomic_load(&j->left)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        if (!*at) q->tail = at;
        q->n--;
        srv_job_unref(j);
    }
}

srv_admission srv_queue_push(srv_queue *q, srv_job *j, size_t spare)
{
    srv_admission a = SRV_ADMITTED;
    pthread_mutex_lock(&q->lock);
    purge(q);
    if (q->closed)
        a = SRV_QUEUE_CLOSED;
    else if (q->n >= q->limit + spare)
        a = SRV_QUEUE_FULL;
    if (a == SRV_ADMITTED) {
        atomic_fetch_add(&j->refs, 1);
        *q->tail = j;
        q->tail = &j->next;
        q->n++;
        pthread_cond_signal(&q->news);
    }
    pthread_mutex_unlock(&q->lock);
    return a;
}

srv_job *srv_queue_pop(srv_queue *q, bool wait)
{
    pthread_mutex_lock(&q->lock);
    purge(q);
    if (wait && !q->head && !q->closed) pthread_cond_wait(&q->news, &q->lock);
    purge(q);
    srv_job *j = q->head ? take_head(q) : NULL;
    pthread_mutex_unlock(&q->lock);
    return j;
}

void srv_queue_stir(srv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    purge(q);
    pthread_cond_signal(&q->news);
    pthread_mutex_unlock(&q->lock);
}

void srv_queue_close(srv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_signal(&q->news);
    pthread_mutex_unlock(&q->lock);
}

bool srv_queue_is_closed(srv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}

size_t srv_queue_length(srv_queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->n;
    pthread_mutex_unlock(&q->lock);
    return n;
}
