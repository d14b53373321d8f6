/* Backends: how a device is found, named, fenced and opened. What a device then does for a graph is
 * graph/device.h. */
#ifndef MF_BACKENDS_BACKEND_H
#define MF_BACKENDS_BACKEND_H

#include "graph/device.h"

enum { MF_BACKEND_CPU = 0, MF_BACKEND_METAL = 1, MF_BACKEND_CUDA = 2, MF_BACKEND_COUNT = 3 };

/* What a backend declares it runs: per op a set of types, bit (1 << mf_type). The type of an op is its
 * weight's, its cache's storage format, or else its value's; 0 = the op is not there. `supports` answers from
 * this table (mf_caps_has) and from nothing narrower that a graph could meet. */
typedef struct mf_caps {
    uint32_t types[MF_OP_COUNT];
    bool explicit_windows;
    uint32_t fused_ops; /* bit per build-time fused op */
} mf_caps;

/* The type by which a node is looked up in mf_caps. */
mf_type mf_caps_key(const mf_node *n);
bool mf_caps_has(const mf_caps *c, const mf_node *n);

typedef struct mf_backend_options {
    int32_t n_threads; /* CPU; 0 = mf_cpu_count() */
    int32_t cpu_tier;  /* highest instruction set to use, as cpu_tier; -1 = the best */
    size_t budget;     /* bytes of device memory; 0 = no limit */
} mf_backend_options;

/* A registry row. ids are a file-format contract and only ever appended; identity order and priority order
 * are separate. */
typedef struct mf_backend {
    int32_t id;
    const char *name;
    int32_t priority;
    const mf_caps *caps;                        /* NULL: not compiled in */
    minfer_status (*usable)(minfer_error *why); /* whether a device is here now */
    minfer_status (*open)(const mf_backend_options *o, mf_device **out, minfer_error *err);
} mf_backend;

extern const mf_backend mf_backend_table[MF_BACKEND_COUNT]; /* by id */

/* The backends to use, by descending priority, the CPU always among them. list: names separated by commas, or
 * NULL for all that are usable here. A name is refused when it is unknown, not compiled in, or not usable
 * here, and the message says which of the three. */
minfer_status mf_backend_select(const char *list, const mf_backend *out[MF_BACKEND_COUNT], int32_t *n,
                                minfer_error *err);

/* The same over any table, for tests. */
minfer_status mf_backend_select_from(const mf_backend *table, int32_t n_table, const char *list,
                                     const mf_backend **out, int32_t *n, minfer_error *err);

#endif
