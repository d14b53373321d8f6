/* What the server counts, and /metrics as Prometheus reads it. Counters may be changed from any thread. */
#ifndef APP_SERVER_STATS_H
#define APP_SERVER_STATS_H

#include "base/mem.h"

#include <stdatomic.h>

enum { SRV_BUCKETS = 14 };

typedef struct srv_histogram { /* seconds; bounds in stats.c */
    atomic_ullong counts[SRV_BUCKETS + 1];
    atomic_ullong sum_ns;
} srv_histogram;

typedef struct srv_stats {
    atomic_ullong replies[6];           /* by the hundreds of their status */
    atomic_ullong left;                 /* requests whose client left before the end */
    atomic_ullong prompt_tokens;        /* of prompts */
    atomic_ullong cached_tokens;        /* of these, not evaluated anew */
    atomic_ullong fed_tokens;           /* evaluated: of prompts and answers */
    atomic_ullong drawn_tokens;         /* of answers */
    atomic_ullong steps, step_ns;       /* forward passes and the time in them, sampling included */
    atomic_ullong parked;               /* answers that lost their cells for a while */
    atomic_int busy;                    /* slots */
    srv_histogram waited, first, whole; /* in the queue; until the first token; until the end */
} srv_stats;

void srv_histogram_add(srv_histogram *h, int64_t ns);

typedef struct srv_gauges { /* what is only known when asked */
    size_t n_slots, n_queued, n_connections;
    const char *state; /* "loading", "ok" or "draining" */
} srv_gauges;
bool srv_stats_body(const srv_stats *s, const srv_gauges *g, mf_buf *out);

#endif
