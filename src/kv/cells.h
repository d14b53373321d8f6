/* Cells: which sequence's keys and values lie in which rows of the cache. A sequence is up to MF_KV_SPANS
 * runs of cells in sequence order; cells may be shared by sequences, and what is shared is never written.
 * Owns the tables, not the cache itself: a move of rows is asked of the owner. */
#ifndef MF_KV_CELLS_H
#define MF_KV_CELLS_H

#include "base/mem.h"

enum { MF_KV_SPANS = 4 }; /* what a kv_map window holds */

typedef struct mf_kv_span {
    int32_t cell, len;
} mf_kv_span;

typedef struct mf_kv_seq {
    mf_kv_span spans[MF_KV_SPANS]; /* none is empty */
    int32_t n_spans;
    int32_t n;     /* cells in use: the length of the sequence */
    int32_t spare; /* cells reserved behind the last span, this sequence's alone */
} mf_kv_seq;

/* Copies rows [from, from + n) to [to, to + n) in every layer; they may overlap. After a failure the rows'
 * contents are lost. */
typedef minfer_status mf_kv_move_fn(void *user, int32_t from, int32_t to, int32_t n, minfer_error *err);

typedef struct mf_kv_cells {
    int32_t n;
    int32_t *refs; /* [n] sequences that hold the cell */
    mf_kv_seq **seqs;
    size_t n_seqs, cap_seqs;
    mf_kv_move_fn *move;
    void *user;
    bool lost; /* a move failed: nothing can be relied on any more */
} mf_kv_cells;

minfer_status mf_kv_cells_init(mf_kv_cells *c, int32_t n, mf_kv_move_fn *move, void *user, minfer_error *err);
void mf_kv_cells_free(mf_kv_cells *c);

/* Enters an empty sequence; q stays where it is until it is closed. */
minfer_status mf_kv_open(mf_kv_cells *c, mf_kv_seq *q, minfer_error *err);
void mf_kv_close(mf_kv_cells *c, mf_kv_seq *q);

/* Lengthens q by n >= 0 cells that no other sequence holds. First fit: where the sequence ends; else in the
 * first gap that holds what q alone owns at its end and the new cells, which moves that; else in the first
 * gap that holds the new cells; else all sequences are packed to the front and q's end behind them.
 * MINFER_ERR_LIMIT when fewer than n cells are unused, or they would be a fifth run and do not hold a copy of
 * the fourth; q is then as it was, though cells may have moved. */
minfer_status mf_kv_extend(mf_kv_cells *c, mf_kv_seq *q, int32_t n, minfer_error *err);

/* Keeps the first n cells of q. */
void mf_kv_truncate(mf_kv_cells *c, mf_kv_seq *q, int32_t n);

/* Takes cells [from, to) of q out. Where that would make a fifth span, what lies behind in its run moves up;
 * if others hold cells of that, MINFER_ERR_LIMIT, and nothing has changed. */
minfer_status mf_kv_remove(mf_kv_cells *c, mf_kv_seq *q, int32_t from, int32_t to, minfer_error *err);

/* The empty sequence q becomes the first n cells of src, shared. */
void mf_kv_share(mf_kv_cells *c, mf_kv_seq *q, const mf_kv_seq *src, int32_t n);

/* The cell of place i, 0 <= i < q->n. */
int32_t mf_kv_cell(const mf_kv_seq *q, int32_t i);
/* The first n cells of q as spans in sequence order, empty ones behind. */
void mf_kv_window(const mf_kv_seq *q, int32_t n, mf_kv_span out[MF_KV_SPANS]);

/* Cells that no sequence uses (reserved ones count as unused, for packing frees them). */
int32_t mf_kv_unused(const mf_kv_cells *c);

#endif
