/* A case of the op matrix: an op with its types and shapes, and the seeded data that goes with it. Owns the
 * data; building graphs is graph.h, what must come out is want.h. */
#ifndef MF_TESTS_OPS_CASE_H
#define MF_TESTS_OPS_CASE_H

#include "graph/ir.h"
#include "support/sanitized.h"
#include "support/support.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* What the activations of a case look like. */
typedef enum op_style {
    STYLE_PLAIN,      /* uniform in [-2, 2) */
    STYLE_WIDE,       /* magnitudes 2^-30 .. 2^8, every eighth a zero of either sign or denormal */
    STYLE_SPIKES,     /* small values, blocks of zeros, and outliers of a few hundred */
    STYLE_HOT,        /* all 30: dot products that no half float holds */
    STYLE_NOT_FINITE, /* plain, with an infinity or a NaN in places */
    STYLE_COUNT,
} op_style;

/* Positions and windows of a case. */
typedef enum op_run {
    RUN_TOGETHER, /* consecutive positions; spans begin at one cell and grow */
    RUN_APART,    /* any positions and spans */
} op_run;

/* Fields that an op does not use are 0. */
typedef struct op_case {
    mf_op op;
    mf_type type;   /* by which the op is looked up among a device's capabilities */
    mf_type second; /* fused ops: of the other weights */
    mf_type cache;  /* storage format of the ops that read or write a cache */
    mf_attn_kind kind;
    mf_window window;
    op_run run;
    op_style style;
    int32_t n, nt, rows;                     /* features, tokens, rows of the weight */
    int32_t n_head, n_kv, head_dim, n_rot;   /* heads */
    int32_t n_ctx, filled;                   /* cells of the cache; of those, how many tokens may see */
    int64_t shape[4], to[4], offset;         /* source shape; VIEW and RESHAPE: requested shape, offset */
    int32_t axes[4];                         /* PERMUTE */
    float factor;                            /* SCALE, eps of norms, freq_scale of ROPE */
    bool interleaved, factors, bias, gather; /* gather: GET_ROWS of a value; bias: a weight as operand */
    bool is_v;                               /* KVCACHE_LOAD: V */
    bool in_place; /* the op is the only reader of its sources; else they must stay as they were */
    int variant;   /* further forms of an op, see graph.c */
} op_case;

/* A weight with its bytes. */
typedef struct op_operand {
    char name[16];
    mf_weight w;
    void *data;
    size_t bytes;
} op_operand;

enum { OP_MAX_OPERANDS = 12, OP_LAYER = 1, OP_LAYERS = 2, OP_LOAD_ROWS = 8 };

/* Everything a case reads. Activations x, y, z are rows of F32 weights: token t's is row ids[t]. */
typedef struct op_data {
    op_operand all[OP_MAX_OPERANDS];
    int n_all;
    op_operand *x, *y, *z, *w[3], *b[3], *norm[2], *factors;
    int32_t *ids, *positions, *cells; /* [nt] */
    int32_t *window;                  /* [2 nt] or [8 nt] */
    mf_attr_kv kv;
    uint8_t *cache[2]; /* K and V before the run: [n_kv][n_ctx] rows of head_dim values */
    size_t cache_bytes, row_bytes;
} op_data;

/* One line that tells every field in use. */
void op_case_name(const op_case *c, char *name, size_t size);

/* Data from the case's name and the seed. Fails the test when memory is short. */
void op_data_make(const op_case *c, uint64_t seed, op_data *d);
void op_data_free(op_data *d);

/* Token t's row of an activation. */
const float *op_row(const op_data *d, const op_operand *o, int32_t t);

/* Whether the op works on a layer's cache, and whether it writes the case's cells. */
bool op_has_cache(mf_op op);
bool op_stores(mf_op op);

/* What lies where nothing has been written: NaN as float and as half, negative as an integer, another at
 * every place. */
void op_poison(uint8_t *p, size_t bytes);
/* The first of bytes [from, to) that no longer is the poison of its place, or to. */
size_t op_first_unpoisoned(const uint8_t *p, size_t from, size_t to);

static inline uint32_t op_below(mf_rng *r, uint32_t n)
{
    return (uint32_t)((mf_rng_u64(r) >> 32) % n);
}

#endif
