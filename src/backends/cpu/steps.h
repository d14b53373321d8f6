/* The emitters, by family. */
#ifndef MF_BACKENDS_CPU_STEPS_H
#define MF_BACKENDS_CPU_STEPS_H

#include "backends/cpu/program.h"
#include "base/mathfn.h"

cpu_emit_fn cpu_emit_add, cpu_emit_mul, cpu_emit_swiglu, cpu_emit_silu, cpu_emit_scale, cpu_emit_norm,
    cpu_emit_softmax, cpu_emit_rope, cpu_emit_get_rows, cpu_emit_store; /* steps_rows.c */
cpu_emit_fn cpu_emit_matmul, cpu_emit_permute, cpu_emit_batch_matmul;   /* steps_matmul.c */
cpu_emit_fn cpu_emit_attn;                                              /* steps_attn.c */

/* cpu_reads and cpu_writes over a node's whole value. */
minfer_status cpu_reads_value(cpu_emit *e, mf_id id);
minfer_status cpu_writes_value(cpu_emit *e, mf_id id);

/* inv[n_rot / 2]: the frequencies of a rotation, factors and scaling applied. */
minfer_status cpu_rope_frequencies(cpu_emit *e, const mf_node *n, const mf_attr_rope *r, double *inv);

/* Bytes of the shared partial results of an attention node; 0 when its threads keep their own. */
size_t cpu_attn_shared_bytes(const mf_node *n);
/* Bytes a thread needs for the partial results of its own rows. */
size_t cpu_attn_thread_bytes(const mf_node *n);

#endif
