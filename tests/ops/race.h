/* Whether a compiled CPU program needs luck: what its steps say they touch, whether that is true, whether
 * every two accesses that could meet in different threads have a barrier between them, and what comes out
 * when the threads run in the worst orders. Shares no code with the compiler's own decision about barriers.
 */
#ifndef MF_TESTS_OPS_RACE_H
#define MF_TESTS_OPS_RACE_H

#include "backends/cpu/device.h"
#include "ops/random_graph.h"

enum { RACE_THREADS = 4, RACE_WHY = 256 };

/* Memory a step says it touches. */
typedef struct race_access {
    int32_t step;
    const uint8_t *lo, *hi;
    cpu_key key;
    bool write;
} race_access;

/* A piece of memory that programs share: the arena without the threads' own scratch, the caches. */
typedef struct race_area {
    uint8_t *p;
    size_t n, at; /* at: in a snapshot */
} race_area;

enum { RACE_AREAS = 1 + 2 * RG_LAYERS };

typedef struct race {
    const random_graph *graph;
    cpu_device *dev;
    mf_device *device; /* the same */
    mf_graph_cache cache;
    mf_cached_graph *g;
    cpu_program *program;
    race_access *log;
    size_t n_log;
    race_area areas[RACE_AREAS];
    int n_areas;
    size_t bytes; /* of a snapshot */
} race;

/* Builds the graph on a CPU device of RACE_THREADS threads and compiles it. Fails the test on errors. */
void race_open(race *r, random_graph *graph, mf_device *cpu);
void race_close(race *r);

/* Two accesses that could meet without a barrier between them: false, and why. */
bool race_barriers_hold(const race *r, char why[RACE_WHY]);

/* Whether each thread of n_threads reads only what its step declares for it, and writes only there. */
bool race_declarations_hold(race *r, int32_t n_threads, char why[RACE_WHY]);

/* Runs the program on one thread of the caller as n_threads would, one after the other between barriers: in
 * the order given, or, with NULL, step by step in a random order. *out: the output and the caches
 * (race_result_bytes), poisoned where nothing was written. */
void race_run(race *r, int32_t n_threads, const int32_t *order, mf_rng *rng, uint8_t *out);
size_t race_result_bytes(const race *r);

#endif
