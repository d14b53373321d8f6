/* The queue between transport and worker: jobs in the order they came. Owns a reference to each job in it. */
#ifndef APP_SERVER_QUEUE_H
#define APP_SERVER_QUEUE_H

#include "server/job.h"

typedef struct srv_queue {
    pthread_mutex_t lock;
    pthread_cond_t news; /* a job came, a client left, or the queue was closed */
    srv_job *head, **tail;
    size_t n, limit;
    bool closed;
} srv_queue;

typedef enum srv_admission { SRV_ADMITTED, SRV_QUEUE_FULL, SRV_QUEUE_CLOSED } srv_admission;

void srv_queue_init(srv_queue *q, size_t limit);
void srv_queue_free(srv_queue *q);

/* Takes a reference of its own when it admits. spare: jobs beyond the limit that the worker can begin at once
 * do not count. */
srv_admission srv_queue_push(srv_queue *q, srv_job *j, size_t spare);
/* The oldest job, whose reference goes to the caller; jobs whose clients have left are let go on the way.
 * NULL: none. wait: until there is one, or news of another kind. */
srv_job *srv_queue_pop(srv_queue *q, bool wait);
/* Somebody left: lets go of the jobs that nobody waits for, and wakes the worker. */
void srv_queue_stir(srv_queue *q);
/* Admits no more jobs; those that wait stay. */
void srv_queue_close(srv_queue *q);
bool srv_queue_is_closed(srv_queue *q);
size_t srv_queue_length(srv_queue *q);

#endif
