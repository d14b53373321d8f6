/* What the graph asks of a device: capabilities, memory, crossing to other devices, running nodes. The graph
 * knows devices only through this table; src/backends/backend.h says how one is found and opened. */
#ifndef MF_GRAPH_DEVICE_H
#define MF_GRAPH_DEVICE_H

#include "graph/ir.h"

typedef struct mf_device mf_device;
typedef struct mf_op_times mf_op_times; /* graph/times.h */
typedef struct mf_exec mf_exec;         /* a graph with its memory, see graph/alloc.h */

enum { MF_MAX_DEVICES = 4 };

/* A place in a device's memory: a buffer of that device and a byte offset. Only the device may look behind
 * buf. */
typedef struct mf_mem {
    void *buf;
    size_t offset;
} mf_mem;

/* Calls marked optional may be NULL. Everything that is "enqueued" happens in the order of the calls on one
 * device. */
typedef struct mf_device_ops {
    /* Whether the node, as it stands in g (shapes, dtypes, weight types, attributes), can run here. Reads
     * metadata only. Also asked of fused nodes that a fusion would make. */
    bool (*supports)(const mf_device *d, const mf_graph *g, const mf_node *n);

    minfer_status (*buffer_alloc)(mf_device *d, size_t bytes, void **buf,
                                  minfer_error *err); /* contents undefined */
    void (*buffer_free)(mf_device *d, void *buf);
    /* Host memory to device memory and back. write: src may be reused on return. read: waits for pending work
     * first. */
    minfer_status (*write)(mf_device *d, mf_mem dst, const void *src, size_t n, minfer_error *err);
    minfer_status (*read)(mf_device *d, mf_mem src, void *dst, size_t n, minfer_error *err);

    /* Enqueues a copy of n bytes to another device's memory; wait(ticket) on the same device returns when it
     * has arrived. */
    minfer_status (*copy_across)(mf_device *d, mf_mem src, mf_device *to, mf_mem dst, size_t n,
                                 uint64_t *ticket, minfer_error *err);
    minfer_status (*wait)(mf_device *d, uint64_t ticket, minfer_error *err);
    /* Enqueues a copy of n bytes within this device's memory; the places may overlap. */
    minfer_status (*move)(mf_device *d, mf_mem dst, mf_mem src, size_t n, minfer_error *err);
    minfer_status (*sync)(mf_device *d, minfer_error *err); /* returns when nothing is pending */

    /* Makes w's bytes known under its name; once more is a no-op. data stays valid until the name is
     * forgotten. */
    minfer_status (*weight_register)(mf_device *d, const mf_weight *w, const void *data, size_t bytes,
                                     minfer_error *err);
    bool (*weight_known)(const mf_device *d, const mf_weight *w);
    void (*weights_forget)(mf_device *d, const char *prefix); /* all names that begin with prefix */

    /* Memory a value needs here besides its own bytes while it lives (the CPU: its quantized form), and
     * memory the graph needs. 0 = none. Optional. */
    size_t (*value_extra)(const mf_device *d, const mf_graph *g, mf_id id);
    size_t (*graph_scratch)(const mf_device *d, const mf_graph *g);

    /* Compiles nodes [a, b) (all of this device; inputs, views and dead nodes among them are skipped) against
     * the addresses x has now. The program is discarded when addresses change. run enqueues it. An error
     * names the node and the values. */
    minfer_status (*prepare)(mf_device *d, const mf_exec *x, mf_id a, mf_id b, void **program,
                             minfer_error *err);
    minfer_status (*run)(mf_device *d, const mf_exec *x, void *program, minfer_error *err);
    void (*discard)(mf_device *d, void *program);

    void (*close)(mf_device *d);
} mf_device_ops;

/* The common head of every device; a backend embeds it as its first member. */
struct mf_device {
    const mf_device_ops *ops;
    const char *name;      /* "cpu", "metal", "cuda" */
    int32_t id;            /* cpu 0, metal 1, cuda 2: a file-format contract */
    int32_t priority;      /* higher is asked first */
    int32_t index;         /* its place in the engine's device set, which nodes name; set by mf_alloc_init */
    size_t budget;         /* bytes its buffers may take together; 0 = no limit */
    bool explicit_windows; /* reads attn_span and kv_map */
    uint32_t fused_ops;    /* bit per build-time fused mf_op it runs */
    mf_op_times *times;    /* where runs count their ops, if the device can; NULL: nobody asks */
};

#endif
