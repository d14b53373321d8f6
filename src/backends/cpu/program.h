/* A program: nodes of one split, compiled to steps. One parallel region runs a whole program. A barrier
 * stands only where a step touches memory that steps since the last barrier touched from other workers; the
 * steps between two barriers are a phase. A phase is divided into shares, and whichever thread is free takes
 * the next: a worker below is a share, not a thread. What cannot be divided is done by the thread that
 * finishes a phase, before the others go on. */
#ifndef MF_BACKENDS_CPU_PROGRAM_H
#define MF_BACKENDS_CPU_PROGRAM_H

#include "backends/cpu/kernels.h"
#include "base/pool.h"
#include "graph/alloc.h"
#include "graph/times.h"

typedef struct cpu_device cpu_device;

/* One share of a phase that runs. */
typedef struct cpu_worker {
    int32_t ith, nth;
    int32_t thread, threads; /* who has it */
    void *scratch;           /* the thread's, scratch_bytes; holds nothing from step to step */
    size_t scratch_bytes;
    const cpu_kernels *k;
} cpu_worker;

/* How a step is divided among threads, as a key: steps with one nonzero key give the same part of a value to
 * the same thread, so they need no barrier between each other. 0: in the step's own way; nt > 0: by tokens;
 * -n < 0: by features of n. */
typedef int32_t cpu_key;

/* The part of [nt tokens x n features] that is a worker's under a key. */
typedef struct cpu_part {
    int32_t t0, t1, f0, f1;
} cpu_part;

typedef struct cpu_quantize_args {
    cpu_act act;
    const float *x;
    size_t ldx;
} cpu_quantize_args;

typedef struct cpu_rows_args { /* y = f(a, b) on nt rows of n values */
    float *y;
    const float *a, *b;   /* b: second operand, weight or bias */
    size_t ldy, lda, ldb; /* floats from token to token; ldb = 0: the same row for all */
    int32_t n, nt;
    float f; /* eps or factor */
    int32_t n_head, head_dim, n_rot;
    bool interleaved;
    const float *cs; /* RoPE: [nt][n_rot] */
    cpu_binary_fn *binary;
} cpu_rows_args;

typedef struct cpu_angles_args {
    float *cs;
    const int32_t *positions;
    double *inv_freq; /* [half], in the program's arena */
    int32_t half, nt;
} cpu_angles_args;

typedef struct cpu_gather_args { /* rows of a weight or of floats */
    float *y;
    const int32_t *ids;
    const uint8_t *rows;
    mf_type type;
    size_t row_bytes;
    int64_t n_rows;
    int32_t n, nt;
} cpu_gather_args;

typedef struct cpu_store_args {
    uint8_t *k, *v;       /* regions */
    const float *xk, *xv; /* [nt][n_kv * head_dim] */
    const int32_t *cells;
    mf_type type;
    size_t row_bytes, head_bytes; /* one cell of one head; all cells of one head */
    int32_t n_kv, head_dim, n_ctx, nt;
} cpu_store_args;

typedef struct cpu_attn_args {
    const float *q;
    float *y;
    size_t ldq, ldy;
    const uint8_t *k, *v;
    mf_type type;
    size_t row_bytes, head_bytes;
    int32_t n_head, n_kv, head_dim, n_ctx, nt;
    float scale;
    mf_window window;
    const int32_t *positions, *spans;
    float *parts;      /* shared partial results when nt is small; NULL: each thread keeps its own */
    int32_t tiles_max; /* ceil(n_ctx / CPU_ATTN_TILE) */
} cpu_attn_args;

typedef struct cpu_permute_args {
    float *y;
    const float *x;
    int64_t shape[4], stride[4]; /* of the output; strides into x */
} cpu_permute_args;

typedef struct cpu_bmm_args {
    float *y;
    const float *a, *b;
    int64_t k, m, n, batch;
} cpu_bmm_args;

typedef struct cpu_step cpu_step;
/* Returns false when this run's data is out of range (an id, a cell); the step has then done nothing with it,
 * and complain, on one thread, says what it was. */
typedef bool cpu_step_fn(const cpu_step *s, const cpu_worker *w);
typedef minfer_status cpu_complain_fn(const cpu_step *s, minfer_error *err);
/* Adds the bytes that one run of the step must read from memory, and its products. */
typedef void cpu_work_fn(const cpu_step *s, mf_time *t);

struct cpu_step {
    cpu_step_fn *fn;
    cpu_complain_fn *complain; /* NULL: cannot fail */
    cpu_work_fn *work;         /* NULL: not counted */
    const mf_node *node;
    int32_t slot; /* of mf_op_times: the node's op, unless the emitter says otherwise */
    bool barrier; /* before this step: it begins a phase */
    cpu_key key;
    int64_t cost;          /* about the values or products it makes; shares are cut by it */
    bool reads_weights;    /* as u.matmul says */
    int32_t shares;        /* of its phase */
    const cpu_step *after; /* of products: the one whose weights are read next, round and round; */
    const cpu_step *again; /* the first of its phase */
    union {
        cpu_quantize_args quantize;
        cpu_matmul matmul;
        cpu_rows_args rows;
        cpu_angles_args angles;
        cpu_gather_args gather;
        cpu_store_args store;
        cpu_attn_args attn;
        cpu_permute_args permute;
        cpu_bmm_args bmm;
    } u;
};

/* Memory a step reads or writes, for the barriers. */
typedef struct cpu_range {
    const uint8_t *lo, *hi;
    cpu_key key;
    bool write;
} cpu_range;

typedef struct cpu_phase {
    int32_t first, last; /* steps [first, last), in shares */
    int32_t alone;       /* steps [last, alone): done by the thread that finishes the last share */
    uint32_t begin, end; /* its shares */
} cpu_phase;

typedef struct cpu_program {
    mf_arena arena;
    cpu_step *steps;
    int32_t n_steps, n_phases;
    size_t cap;
    cpu_phase *phases;                    /* in the arena */
    cpu_range *ranges;                    /* touched since the last barrier, while compiling */
    size_t n_ranges, range_cap, own_from; /* from own_from on: of the step being described */
} cpu_program;

/* What emitters see while compiling. */
typedef struct cpu_emit {
    cpu_device *dev;
    const mf_exec *x;
    mf_id first, last; /* nodes [first, last) */
    cpu_program *p;
    minfer_error *err;
} cpu_emit;

typedef minfer_status cpu_emit_fn(cpu_emit *e, const mf_node *n);

/* Emitters by op; NULL where the CPU has none. */
extern cpu_emit_fn *const cpu_emitters[MF_OP_COUNT];

/* Appends a step. The ranges it reads and writes follow with cpu_reads and cpu_writes, which decide about its
 * barrier. */
minfer_status cpu_push(cpu_emit *e, cpu_step_fn *fn, const mf_node *n, cpu_key key, cpu_step **out);
minfer_status cpu_reads(cpu_emit *e, const void *p, size_t bytes);
minfer_status cpu_writes(cpu_emit *e, const void *p, size_t bytes);
/* Written wherever the data says, whatever the step's key. */
minfer_status cpu_writes_anywhere(cpu_emit *e, const void *p, size_t bytes);

/* Addresses of values as this device sees them. */
float *cpu_value(const cpu_emit *e, mf_id id);
/* The key for element-wise work on nt tokens of n features, and a worker's part under a key (tokens in
 * multiples of the activation tile, features of 32). */
cpu_key cpu_key_for(int32_t n, int32_t nt);
cpu_part cpu_part_of(const cpu_worker *w, cpu_key key, int32_t n, int32_t nt);
/* Contiguous share [*a, *b) of n in units of `unit`. */
void cpu_share(const cpu_worker *w, int64_t n, int64_t unit, int64_t *a, int64_t *b);

minfer_status cpu_program_make(cpu_device *d, const mf_exec *x, mf_id a, mf_id b, cpu_program **out,
                               minfer_error *err);
void cpu_program_free(cpu_program *p);
minfer_status cpu_program_run(cpu_device *d, const mf_exec *x, const cpu_program *p, minfer_error *err);

/* Scratch of a graph: threads' own, then RoPE tables, then shared attention partials. */
typedef struct cpu_scratch {
    size_t thread_bytes; /* each */
    size_t angles, attn; /* offsets */
    size_t total;
} cpu_scratch;
void cpu_scratch_layout(const cpu_device *d, const mf_graph *g, cpu_scratch *s);

/* Weights by name. */
typedef struct cpu_weight {
    char *name;
    mf_type type;
    int64_t dims[2];
    const uint8_t *data;
} cpu_weight;
const cpu_weight *cpu_weight_find(const cpu_device *d, const char *name);
minfer_status cpu_weight_need(cpu_emit *e, const mf_node *n, const mf_weight *w, const cpu_weight **out);

/* The first matmul with quantized weights that reads the value on this device, or -1. All of them share its
 * quantized form. */
mf_id cpu_first_act_reader(const cpu_device *d, const mf_graph *g, mf_id id);

/* The quantized form of value id. The step that makes it is emitted for the first reader; a later program
 * finds it made. */
minfer_status cpu_act_of(cpu_emit *e, const mf_node *reader, mf_id id, cpu_act *act);

#endif
