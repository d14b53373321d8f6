/* Attention: windows of tokens to tiles of 256 cells, tiles to partial results, partial results to rows.
 *
 * Work is cut by groups: runs of tokens whose windows begin at the same cell and never shrink share the tiles
 * of a KV head, so one pass over K and V serves many query rows. With few tokens, tiles are spread over
 * threads and a second step merges; with many, a thread does all tiles of its rows and merges at once. Both
 * give the same bits, because every tile is reduced on its own and merged in tile order. */
#include "backends/cpu/device.h"
#include "backends/cpu/steps.h"

#include <string.h>

enum {
    SHARED_TOKENS = 16, /* up to here tiles are spread over threads */
    MAX_ROWS = 48,      /* query rows a thread takes through the tiles together */
    MAX_SPANS = 4,
};

typedef struct {
    int32_t n; /* spans */
    int32_t cell[MAX_SPANS], len[MAX_SPANS];
    int32_t total; /* cells of all spans */
} window;

static bool window_of(const cpu_attn_args *a, int32_t t, window *w)
{
    *w = (window){.n = 1};
    if (a->window == MF_WINDOW_CAUSAL) {
        w->len[0] = a->positions[t] < INT32_MAX ? a->positions[t] + 1 : 0;
    } else if (a->window == MF_WINDOW_SPAN) {
        w->cell[0] = a->spans[2 * t];
        w->len[0] = a->spans[2 * t + 1] - w->cell[0];
    } else {
        w->n = MAX_SPANS;
        for (int i = 0; i < MAX_SPANS; i++) {
            w->cell[i] = a->spans[8 * t + 2 * i];
            w->len[i] = a->spans[8 * t + 2 * i + 1];
        }
    }
    for (int i = 0; i < w->n; i++) {
        if (w->len[i] < 0 || w->cell[i] < 0 || w->len[i] > a->n_ctx - w->cell[i]) return false;
        w->total += w->len[i];
    }
    return w->total > 0 && w->total <= a->n_ctx;
}

/* Whether token t + 1's window continues t's: the same first cells, and at least as many. Windows of several
 * spans stand alone. */
static bool extends(const window *a, const window *b)
{
    return a->n == 1 && b->n == 1 && a->cell[0] == b->cell[0] && b->len[0] >= a->len[0];
}

/* The group that begins at token t: *end is its end, at most max tokens on; w becomes the window of its last
 * token. */
static bool group_at(const cpu_attn_args *a, int32_t t, int32_t max, int32_t *end, window *w)
{
    window next;
    if (!window_of(a, t, w)) return false;
    for (*end = t + 1; *end < a->nt && *end - t < max; (*end)++) {
        if (!window_of(a, *end, &next)) return false;
        if (!extends(w, &next)) break;
        *w = next;
    }
    return true;
}

static int32_t group_rows(const cpu_attn_args *a)
{
    return a->n_head / a->n_kv;
}
static size_t part_floats(int32_t head_dim)
{
    return 2 + (size_t)head_dim;
}
static int32_t tiles_of(int32_t cells)
{
    return (cells + CPU_ATTN_TILE - 1) / CPU_ATTN_TILE;
}

/* Cells [from, from + n) of the window, counted in sequence order: in place when they lie together, else
 * copied to buf (K, then V). */
static void tile_cells(const cpu_attn_args *a, const window *w, int32_t head, int32_t from, int32_t n,
                       uint8_t *buf, const uint8_t **k, const uint8_t **v)
{
    size_t base = (size_t)head * a->head_bytes, copied = 0;
    int32_t i = 0, skip = from, done = 0;
    while (skip >= w->len[i]) skip -= w->len[i++];
    if (w->len[i] - skip >= n) {
        size_t at = base + (size_t)(w->cell[i] + skip) * a->row_bytes;
        *k = a->k + at;
        *v = a->v + at;
        return;
    }
    *k = buf;
    *v = buf + CPU_ATTN_TILE * a->row_bytes;
    for (; done < n; skip = 0, i++) {
        int32_t take = w->len[i] - skip < n - done ? w->len[i] - skip : n - done;
        size_t at = base + (size_t)(w->cell[i] + skip) * a->row_bytes, bytes = (size_t)take * a->row_bytes;
        memcpy(buf + copied, a->k + at, bytes);
        memcpy(buf + CPU_ATTN_TILE * a->row_bytes + copied, a->v + at, bytes);
        copied += bytes;
        done += take;
    }
}

/* The rows of tokens [t0, t1) and query heads [h0, h1) of one KV head: their windows only grow. */
typedef struct {
    const float *q[MAX_ROWS];
    int32_t len[MAX_ROWS]; /* cells each sees */
    int32_t token[MAX_ROWS], head[MAX_ROWS];
    int32_t n;
} rows;

static void rows_of(const cpu_attn_args *a, int32_t t0, int32_t t1, int32_t h0, int32_t h1, rows *r)
{
    r->n = 0;
    for (int32_t t = t0; t < t1; t++) {
        window w;
        window_of(a, t, &w);
        for (int32_t h = h0; h < h1; h++, r->n++) {
            r->q[r->n] = a->q + (size_t)t * a->ldq + (size_t)h * (size_t)a->head_dim;
            r->len[r->n] = w.total;
            r->token[r->n] = t;
            r->head[r->n] = h;
        }
    }
}

enum { FEW_ROWS = 16, VALUES_AHEAD = 8192 };

/* With few rows a tile is read once, its values after its keys: they are asked for meanwhile. */
static void prefetch_values(const uint8_t *v, size_t bytes)
{
    for (size_t i = 0; i < bytes && i < VALUES_AHEAD; i += 64) __builtin_prefetch(v + i, 0, 2);
}

/* Tile `tile` of window w against the rows that reach it (the last ones); row i's partial result goes to part
 * + i * part_floats. */
static void tile_run(const cpu_attn_args *a, const cpu_worker *wk, const window *w, const rows *r,
                     int32_t kv_head, int32_t tile, uint8_t *buf, float *part)
{
    int32_t from = tile * CPU_ATTN_TILE, n[MAX_ROWS], first = 0;
    while (r->len[first] <= from) first++;
    for (int32_t i = first; i < r->n; i++)
        n[i] = r->len[i] - from < CPU_ATTN_TILE ? r->len[i] - from : CPU_ATTN_TILE;
    const uint8_t *k, *v;
    tile_cells(a, w, kv_head, from, n[r->n - 1], buf, &k, &v);
    cpu_attn_tile args = {.head_dim = a->head_dim,
                          .rows = r->n - first,
                          .scale = a->scale,
                          .kv_type = a->type,
                          .k = k,
                          .v = v,
                          .cell_bytes = a->row_bytes,
                          .q = r->q + first,
                          .n = n + first,
                          .part = part + (size_t)first * part_floats(a->head_dim)};
    if (r->n <= FEW_ROWS) prefetch_values(v, (size_t)n[r->n - 1] * a->row_bytes);
    wk->k->attn_tile(&args);
}

static float *out_row(const cpu_attn_args *a, const rows *r, int32_t i)
{
    return a->y + (size_t)r->token[i] * a->ldy + (size_t)r->head[i] * (size_t)a->head_dim;
}

/* ---- many tokens: a thread takes its rows through all tiles
 * ------------------------------------------------------ */

static int32_t rows_that_fit(const cpu_attn_args *a, size_t bytes, size_t copy)
{
    size_t row = (size_t)a->tiles_max * part_floats(a->head_dim) * sizeof(float), n = (bytes - copy) / row;
    return n > MAX_ROWS ? MAX_ROWS : (int32_t)n;
}

static void rows_run(const cpu_attn_args *a, const cpu_worker *wk, const window *w, const rows *r,
                     int32_t kv_head)
{
    size_t copy = 2 * CPU_ATTN_TILE * a->row_bytes, pf = part_floats(a->head_dim), stride = (size_t)r->n * pf;
    uint8_t *buf = wk->scratch;
    float *part = (float *)(void *)(buf + mf_align_up(copy, 64));
    int32_t tiles = tiles_of(w->total);
    for (int32_t i = 0; i < tiles; i++) tile_run(a, wk, w, r, kv_head, i, buf, part + (size_t)i * stride);
    for (int32_t i = 0; i < r->n; i++)
        wk->k->attn_merge(part + (size_t)i * pf, stride, tiles_of(r->len[i]), a->head_dim, out_row(a, r, i));
}

static bool run_many(const cpu_step *s, const cpu_worker *wk)
{
    const cpu_attn_args *a = &s->u.attn;
    size_t copy = mf_align_up(2 * CPU_ATTN_TILE * a->row_bytes, 64);
    int32_t group = group_rows(a), fit = rows_that_fit(a, wk->scratch_bytes, copy),
            heads = group < fit ? group : fit;
    int32_t unit = 0, end;
    for (int32_t t = 0; t < a->nt; t = end) {
        window w;
        rows r;
        if (!group_at(a, t, fit / heads, &end, &w)) return false;
        for (int32_t h = 0, stop; h < a->n_head; h = stop) {
            stop = (h / group + 1) * group; /* a unit stays within one KV head */
            if (stop > h + heads) stop = h + heads;
            if (unit++ % wk->nth != wk->ith) continue;
            rows_of(a, t, end, h, stop, &r);
            rows_run(a, wk, &w, &r, h / group);
        }
    }
    return true;
}

/* ---- few tokens: tiles are spread over threads
 * ------------------------------------------------------------------ */

/* Partial results as [tile][token][head]. */
static float *shared_part(const cpu_attn_args *a, int32_t tile, int32_t token, int32_t head)
{
    size_t row = ((size_t)tile * (size_t)a->nt + (size_t)token) * (size_t)a->n_head + (size_t)head;
    return a->parts + row * part_floats(a->head_dim);
}

/* Rows of one unit: as many query heads of a KV head as give every thread work. */
static int32_t heads_per_unit(const cpu_attn_args *a, int32_t units, int32_t nth)
{
    int32_t group = group_rows(a), cut = 1;
    while (cut < group && units * cut < 2 * nth) cut++;
    return (group + cut - 1) / cut;
}

static void shared_tile(const cpu_attn_args *a, const cpu_worker *wk, const window *w, int32_t t0, int32_t t1,
                        int32_t h0, int32_t h1, int32_t tile)
{
    size_t pf = part_floats(a->head_dim);
    uint8_t *buf = wk->scratch;
    float *part = (float *)(void *)(buf + mf_align_up(2 * CPU_ATTN_TILE * a->row_bytes, 64));
    rows r;
    rows_of(a, t0, t1, h0, h1, &r);
    tile_run(a, wk, w, &r, h0 / group_rows(a), tile, buf, part);
    for (int32_t i = 0; i < r.n; i++)
        if (r.len[i] > tile * CPU_ATTN_TILE)
            memcpy(shared_part(a, tile, r.token[i], r.head[i]), part + (size_t)i * pf, pf * sizeof(float));
}

static bool run_few(const cpu_step *s, const cpu_worker *wk)
{
    const cpu_attn_args *a = &s->u.attn;
    int32_t unit = 0, end, group = group_rows(a);
    for (int32_t t = 0; t < a->nt; t = end) {
        window w;
        int32_t max = group > MAX_ROWS ? 1 : MAX_ROWS / group;
        if (!group_at(a, t, max, &end, &w)) return false;
        int32_t tiles = tiles_of(w.total), heads = heads_per_unit(a, a->n_kv * tiles, wk->nth);
        if (heads > MAX_ROWS) heads = MAX_ROWS;
        for (int32_t tile = 0; tile < tiles; tile++)
            for (int32_t kv = 0; kv < a->n_kv; kv++)
                for (int32_t h = kv * group; h < (kv + 1) * group; h += heads) {
                    int32_t stop = h + heads < (kv + 1) * group ? h + heads : (kv + 1) * group;
                    if (unit++ % wk->nth == wk->ith) shared_tile(a, wk, &w, t, end, h, stop, tile);
                }
    }
    return true;
}

static bool run_merge(const cpu_step *s, const cpu_worker *wk)
{
    const cpu_attn_args *a = &s->u.attn;
    int64_t i0, i1;
    size_t stride = (size_t)a->nt * (size_t)a->n_head * part_floats(a->head_dim);
    cpu_share(wk, (int64_t)a->nt * a->n_head, 1, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        int32_t t = (int32_t)(i / a->n_head), h = (int32_t)(i % a->n_head);
        window w;
        if (!window_of(a, t, &w)) return false;
        wk->k->attn_merge(shared_part(a, 0, t, h), stride, tiles_of(w.total), a->head_dim,
                          a->y + (size_t)t * a->ldy + (size_t)h * (size_t)a->head_dim);
    }
    return true;
}

/* ---- emission
 * ---------------------------------------------------------------------------------------------------- */

static minfer_status complain_window(const cpu_step *s, minfer_error *err)
{
    const cpu_attn_args *a = &s->u.attn;
    window w;
    int32_t t = 0;
    while (t < a->nt - 1 && window_of(a, t, &w)) t++;
    if (a->window == MF_WINDOW_CAUSAL)
        return mf_fail(err, MINFER_ERR_ARG, "node %s (attn): position %d of token %d in a cache of %d cells",
                       s->node->name, a->positions[t], t, a->n_ctx);
    const int32_t *p = a->spans + (a->window == MF_WINDOW_SPAN ? 2 : 8) * t;
    return mf_fail(err, MINFER_ERR_ARG,
                   "node %s (attn): window %d, %d, ... of token %d in a cache of %d cells", s->node->name,
                   p[0], p[1], t, a->n_ctx);
}

static int32_t tokens(const mf_node *n)
{
    return (int32_t)n->shape[1];
}

size_t cpu_attn_shared_bytes(const mf_node *n)
{
    const mf_attr_attn *a = &n->attr.attn;
    if (tokens(n) > SHARED_TOKENS) return 0;
    return (size_t)tokens(n) * (size_t)a->n_head * (size_t)tiles_of(a->kv.n_ctx) *
           part_floats(a->kv.head_dim) * sizeof(float);
}

/* Room for the copy of a scattered tile and for the partials of at least one row (many tokens) or of all rows
 * of a tile (few). */
size_t cpu_attn_thread_bytes(const mf_node *n)
{
    const mf_attr_attn *a = &n->attr.attn;
    size_t row = 0;
    mf_type_row_bytes(a->kv.format, (uint64_t)a->kv.head_dim, &row);
    size_t part = part_floats(a->kv.head_dim) * sizeof(float), tiles = (size_t)tiles_of(a->kv.n_ctx);
    size_t group = (size_t)(a->n_head / a->kv.n_kv);
    size_t parts = tokens(n) > SHARED_TOKENS ? (group < MAX_ROWS ? group : MAX_ROWS) * tiles : MAX_ROWS;
    return mf_align_up(2 * CPU_ATTN_TILE * row, 64) + parts * part;
}

/* Which source holds the positions; the windows follow. */
static int positions_at(const mf_node *n)
{
    return n->attr.attn.kind == MF_ATTN_FLASH ? 2 : 3;
}

static minfer_status touch_windows(cpu_emit *e, const mf_node *n)
{
    for (int32_t i = positions_at(n); i < n->n_src; i++) MF_TRY(cpu_reads_value(e, n->src[i]));
    return MINFER_OK;
}

static minfer_status touch_all(cpu_emit *e, const mf_node *n)
{
    const mf_kv_pair *pair = mf_alloc_kv_pair(e->x->alloc, n->attr.attn.kv.layer);
    MF_TRY(cpu_reads_value(e, n->src[0]));
    MF_TRY(touch_windows(e, n));
    MF_TRY(cpu_reads(e, pair->k, pair->bytes));
    return cpu_reads(e, pair->v, pair->bytes);
}

static void fill(const cpu_emit *e, const mf_node *n, cpu_attn_args *a)
{
    const mf_attr_attn *at = &n->attr.attn;
    const mf_kv_pair *pair = mf_alloc_kv_pair(e->x->alloc, at->kv.layer);
    int pos = positions_at(n);
    *a = (cpu_attn_args){.q = cpu_value(e, n->src[0]),
                         .y = cpu_value(e, n->id),
                         .ldq = (size_t)e->x->graph->nodes[n->src[0]].shape[0],
                         .ldy = (size_t)n->shape[0],
                         .k = pair->k,
                         .v = pair->v,
                         .type = at->kv.format,
                         .n_head = at->n_head,
                         .n_kv = at->kv.n_kv,
                         .head_dim = at->kv.head_dim,
                         .n_ctx = at->kv.n_ctx,
                         .nt = tokens(n),
                         .scale = at->scale,
                         .window = at->window,
                         .tiles_max = tiles_of(at->kv.n_ctx)};
    mf_type_row_bytes(at->kv.format, (uint64_t)at->kv.head_dim, &a->row_bytes);
    a->head_bytes = a->row_bytes * (size_t)at->kv.n_ctx;
    a->positions = (const int32_t *)(void *)cpu_value(e, n->src[pos]);
    if (at->window != MF_WINDOW_CAUSAL) a->spans = (const int32_t *)(void *)cpu_value(e, n->src[pos + 1]);
}

/* Tokens of one sequence share the rows of their longest window. */
static void work_attn(const cpu_step *s, mf_time *t)
{
    const cpu_attn_args *a = &s->u.attn;
    uint64_t seen = 0, read = 0;
    window w;
    for (int32_t i = 0, end; i < a->nt && group_at(a, i, a->nt, &end, &w); i = end) {
        read += (uint64_t)w.total;
        for (int32_t k = i; k < end; k++) seen += window_of(a, k, &w) ? (uint64_t)w.total : 0;
    }
    t->bytes += 2 * read * (uint64_t)a->n_kv * a->row_bytes;
    t->macs += 2 * seen * (uint64_t)a->n_head * (uint64_t)a->head_dim;
}

minfer_status cpu_emit_attn(cpu_emit *e, const mf_node *n)
{
    cpu_attn_args a;
    cpu_step *s;
    cpu_scratch layout;
    size_t shared = cpu_attn_shared_bytes(n);
    if (n->attr.attn.kv.head_dim > CPU_ATTN_HEAD)
        return mf_fail(e->err, MINFER_ERR_UNSUPPORTED,
                       "node %s (attn): heads of %d values, the CPU reads up to %d", n->name,
                       n->attr.attn.kv.head_dim, CPU_ATTN_HEAD);
    fill(e, n, &a);
    MF_TRY(cpu_push(e, shared ? run_few : run_many, n, 0, &s));
    s->cost *= CPU_ATTN_TILE; /* the products of one tile */
    s->work = work_attn;
    s->complain = complain_window;
    if (shared) {
        mf_mem m = mf_exec_scratch(e->x, e->dev->base.index);
        cpu_scratch_layout(e->dev, e->x->graph, &layout);
        a.parts = (float *)(void *)((uint8_t *)m.buf + m.offset + layout.attn);
    }
    s->u.attn = a;
    MF_TRY(touch_all(e, n));
    if (!shared) return cpu_writes_value(e, n->id);
    MF_TRY(cpu_writes(e, a.parts, shared));
    MF_TRY(cpu_push(e, run_merge, n, 0, &s));
    s->complain = complain_window;
    s->u.attn = a;
    MF_TRY(touch_windows(e, n));
    MF_TRY(cpu_reads(e, a.parts, shared));
    return cpu_writes_value(e, n->id);
}
