/* Reservation, growth, sharing, packing. */
#include "kv/cells.h"

#include <string.h>

enum { GRAIN = 64 }; /* reservations grow in steps of this many cells, where there is room */

minfer_status mf_kv_cells_init(mf_kv_cells *c, int32_t n, mf_kv_move_fn *move, void *user, minfer_error *err)
{
    *c = (mf_kv_cells){.n = n, .move = move, .user = user};
    c->refs = mf_calloc((size_t)n, sizeof *c->refs);
    return c->refs ? MINFER_OK : MF_NOMEM(err);
}

void mf_kv_cells_free(mf_kv_cells *c)
{
    mf_free(c->refs);
    mf_free(c->seqs);
    *c = (mf_kv_cells){0};
}

minfer_status mf_kv_open(mf_kv_cells *c, mf_kv_seq *q, minfer_error *err)
{
    *q = (mf_kv_seq){0};
    if (!mf_grow((void **)&c->seqs, &c->cap_seqs, c->n_seqs + 1, sizeof *c->seqs)) return MF_NOMEM(err);
    c->seqs[c->n_seqs++] = q;
    return MINFER_OK;
}

void mf_kv_close(mf_kv_cells *c, mf_kv_seq *q)
{
    size_t kept = 0;
    mf_kv_truncate(c, q, 0);
    for (size_t i = 0; i < c->n_seqs; i++)
        if (c->seqs[i] != q) c->seqs[kept++] = c->seqs[i];
    c->n_seqs = kept;
}

static void hold(mf_kv_cells *c, int32_t cell, int32_t n, int32_t by)
{
    for (int32_t i = 0; i < n; i++) c->refs[cell + i] += by;
}

static mf_kv_span *last(mf_kv_seq *q)
{
    return q->n_spans ? &q->spans[q->n_spans - 1] : NULL;
}

/* Where the last span and its reserve end. */
static int32_t end_of(const mf_kv_seq *q)
{
    const mf_kv_span *s = &q->spans[q->n_spans - 1];
    return s->cell + s->len + q->spare;
}

static void drop_spare(mf_kv_cells *c, mf_kv_seq *q)
{
    if (q->spare) hold(c, end_of(q) - q->spare, q->spare, -1);
    q->spare = 0;
}

static int32_t free_from(const mf_kv_cells *c, int32_t cell, int32_t most)
{
    int32_t n = 0;
    while (n < most && cell + n < c->n && c->refs[cell + n] == 0) n++;
    return n;
}

/* The first gap of at least n cells, or -1. */
static int32_t first_fit(const mf_kv_cells *c, int32_t n)
{
    for (int32_t at = 0; at <= c->n - n;) {
        int32_t have = free_from(c, at, n);
        if (have == n) return at;
        at += have + 1;
    }
    return -1;
}

static void reserve(mf_kv_cells *c, mf_kv_seq *q, int32_t n)
{
    int32_t take = free_from(c, end_of(q), n);
    hold(c, end_of(q), take, 1);
    q->spare += take;
}

/* How many of q's last spans nobody else holds a cell of. */
static int32_t own_spans(const mf_kv_cells *c, const mf_kv_seq *q)
{
    for (int32_t i = q->n_spans - 1; i >= 0; i--)
        for (int32_t k = 0; k < q->spans[i].len; k++)
            if (c->refs[q->spans[i].cell + k] > 1) return q->n_spans - 1 - i;
    return q->n_spans;
}

static minfer_status move_rows(mf_kv_cells *c, int32_t from, int32_t to, int32_t n, minfer_error *err)
{
    minfer_status st = c->move(c->user, from, to, n, err);
    if (st != MINFER_OK) c->lost = true;
    return st;
}

/* Moves the last `count` spans into the gap at `to`, as one. */
static minfer_status gather(mf_kv_cells *c, mf_kv_seq *q, int32_t count, int32_t to, minfer_error *err)
{
    int32_t first = q->n_spans - count, n = 0;
    for (int32_t i = first; i < q->n_spans; i++) {
        MF_TRY(move_rows(c, q->spans[i].cell, to + n, q->spans[i].len, err));
        n += q->spans[i].len;
    }
    drop_spare(c, q);
    for (int32_t i = first; i < q->n_spans; i++) hold(c, q->spans[i].cell, q->spans[i].len, -1);
    hold(c, to, n, 1);
    q->spans[first] = (mf_kv_span){to, n};
    q->n_spans = first + 1;
    return MINFER_OK;
}

/* Room for n more cells where q ends. */
static bool grow_in_place(mf_kv_cells *c, mf_kv_seq *q, int32_t n)
{
    if (q->n_spans == 0) return false;
    if (n <= q->spare) return true;
    if (free_from(c, end_of(q), n - q->spare) < n - q->spare) return false;
    reserve(c, q, (int32_t)mf_align_up((size_t)(n - q->spare), GRAIN));
    return true;
}

/* A gap for what q alone owns at its end and n more: some slack is asked for first, so that growth rarely
 * moves. */
static minfer_status grow_elsewhere(mf_kv_cells *c, mf_kv_seq *q, int32_t n, bool *done, minfer_error *err)
{
    int32_t count = own_spans(c, q), own = 0, at;
    *done = false;
    if (count == 0) return MINFER_OK;
    for (int32_t i = q->n_spans - count; i < q->n_spans; i++) own += q->spans[i].len;
    at = own < c->n - n - own / 4 ? first_fit(c, own + n + own / 4) : -1;
    if (at < 0 && own <= c->n - n) at = first_fit(c, own + n);
    if (at < 0) return MINFER_OK;
    MF_TRY(gather(c, q, count, at, err));
    reserve(c, q, (int32_t)mf_align_up((size_t)n + (size_t)own / 4, GRAIN));
    *done = true;
    return MINFER_OK;
}

static bool start_span(mf_kv_cells *c, mf_kv_seq *q, int32_t n)
{
    int32_t at = first_fit(c, n);
    if (q->n_spans == MF_KV_SPANS || at < 0) return false;
    drop_spare(c, q);
    q->spans[q->n_spans++] = (mf_kv_span){at, 0};
    reserve(c, q, (int32_t)mf_align_up((size_t)n, GRAIN));
    return true;
}

/* A copy of the last run, which others share, with room for n more. */
static minfer_status copy_last(mf_kv_cells *c, mf_kv_seq *q, int32_t n, bool *done, minfer_error *err)
{
    int32_t at = last(q)->len <= c->n - n ? first_fit(c, last(q)->len + n) : -1;
    *done = false;
    if (at < 0) return MINFER_OK;
    MF_TRY(gather(c, q, 1, at, err));
    reserve(c, q, n);
    *done = true;
    return MINFER_OK;
}

/* Spans that begin in [from, to) begin `by` cells earlier. */
static void shift_spans(mf_kv_cells *c, int32_t from, int32_t to, int32_t by)
{
    for (size_t i = 0; i < c->n_seqs; i++)
        for (int32_t k = 0; k < c->seqs[i]->n_spans; k++) {
            mf_kv_span *s = &c->seqs[i]->spans[k];
            if (s->cell >= from && s->cell < to) s->cell -= by;
        }
}

/* Packs everything in use to the front, in the order it lies. Spans stay whole, because nothing inside them
 * is free. */
static minfer_status pack(mf_kv_cells *c, minfer_error *err)
{
    for (size_t i = 0; i < c->n_seqs; i++) drop_spare(c, c->seqs[i]);
    for (int32_t at = 0, to = 0; at < c->n;) {
        int32_t run = 0;
        while (at + run < c->n && c->refs[at + run]) run++;
        if (run && at != to) {
            MF_TRY(move_rows(c, at, to, run, err));
            memmove(c->refs + to, c->refs + at, (size_t)run * sizeof *c->refs);
            int32_t tail = to + run > at ? to + run : at;
            memset(c->refs + tail, 0, (size_t)(at + run - tail) * sizeof *c->refs);
            shift_spans(c, at, at + run, at - to);
        }
        to += run;
        at += run + !run;
    }
    return MINFER_OK;
}

/* After packing: the cells of s, which one sequence alone holds, become the last in use; what lay behind
 * moves to the front. The unused cells hold a block of s meanwhile. */
static minfer_status to_the_end(mf_kv_cells *c, mf_kv_span *s, minfer_error *err)
{
    int32_t used = c->n, at = s->cell, len = s->len;
    while (used > 0 && c->refs[used - 1] == 0) used--;
    int32_t block = c->n - used < len ? c->n - used : len;
    if (at + len == used) return MINFER_OK;
    for (int32_t left = len; left > 0; left -= block) {
        if (block > left) block = left;
        MF_TRY(move_rows(c, at, used, block, err));
        MF_TRY(move_rows(c, at + block, at, used - at, err)); /* with the block behind */
    }
    memmove(c->refs + at, c->refs + at + len, (size_t)(used - at - len) * sizeof *c->refs);
    for (int32_t i = used - len; i < used; i++) c->refs[i] = 1;
    shift_spans(c, at + len, used, len);
    s->cell = used - len;
    return MINFER_OK;
}

/* Packs, and brings what q alone owns at its end behind all others, as one run. */
static minfer_status repack(mf_kv_cells *c, mf_kv_seq *q, minfer_error *err)
{
    int32_t count = own_spans(c, q), first = q->n_spans - count;
    MF_TRY(pack(c, err));
    for (int32_t i = first; i < q->n_spans; i++) MF_TRY(to_the_end(c, &q->spans[i], err));
    for (int32_t i = first + 1; i < q->n_spans; i++) q->spans[first].len += q->spans[i].len;
    if (count) q->n_spans = first + 1;
    return MINFER_OK;
}

static minfer_status find_room(mf_kv_cells *c, mf_kv_seq *q, int32_t n, bool *done, minfer_error *err)
{
    *done = grow_in_place(c, q, n);
    if (!*done) MF_TRY(grow_elsewhere(c, q, n, done, err));
    if (!*done) *done = start_span(c, q, n);
    if (!*done && q->n_spans == MF_KV_SPANS) MF_TRY(copy_last(c, q, n, done, err));
    return MINFER_OK;
}

int32_t mf_kv_unused(const mf_kv_cells *c)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++) n += c->refs[i] == 0;
    for (size_t i = 0; i < c->n_seqs; i++) n += c->seqs[i]->spare;
    return n;
}

static minfer_status no_room(const mf_kv_cells *c, const mf_kv_seq *q, int32_t n, minfer_error *err)
{
    int32_t unused = mf_kv_unused(c);
    if (unused < n)
        return mf_fail(err, MINFER_ERR_LIMIT, "%d more cells do not fit: %d of %d are unused", n, unused,
                       c->n);
    return mf_fail(
        err, MINFER_ERR_LIMIT,
        "%d more cells do not fit: the sequence shares its %d cells in %d runs, and %d unused cells do "
        "not hold a copy",
        n, q->n, q->n_spans, unused);
}

static minfer_status was_lost(minfer_error *err)
{
    return mf_fail(err, MINFER_ERR_STATE, "the cache was lost when moving it failed");
}

minfer_status mf_kv_extend(mf_kv_cells *c, mf_kv_seq *q, int32_t n, minfer_error *err)
{
    bool done;
    if (c->lost) return was_lost(err);
    if (n == 0) return MINFER_OK;
    if (n > q->spare) {
        if (mf_kv_unused(c) < n) return no_room(c, q, n, err);
        MF_TRY(find_room(c, q, n, &done, err));
        if (!done) MF_TRY(repack(c, q, err));
        if (!done) MF_TRY(find_room(c, q, n, &done, err));
        if (!done) return no_room(c, q, n, err);
    }
    last(q)->len += n;
    q->spare -= n;
    q->n += n;
    return MINFER_OK;
}

/* Cells behind the kept ones that only q holds stay reserved, up to the first that others hold. */
void mf_kv_truncate(mf_kv_cells *c, mf_kv_seq *q, int32_t n)
{
    int32_t cut = q->n - n;
    while (cut > 0 && cut >= last(q)->len) {
        drop_spare(c, q);
        hold(c, last(q)->cell, last(q)->len, -1);
        cut -= last(q)->len;
        q->n_spans--;
    }
    if (cut > 0) {
        mf_kv_span *s = last(q);
        s->len -= cut;
        q->spare += cut;
        int32_t from = s->cell + s->len, own = 0;
        while (own < q->spare && c->refs[from + own] == 1) own++;
        hold(c, from + own, q->spare - own, -1);
        q->spare = own;
    }
    q->n = n;
}

void mf_kv_window(const mf_kv_seq *q, int32_t n, mf_kv_span out[MF_KV_SPANS])
{
    for (int32_t i = 0; i < MF_KV_SPANS; i++) {
        out[i] = i < q->n_spans && n > 0 ? q->spans[i] : (mf_kv_span){0, 0};
        if (out[i].len > n) out[i].len = n;
        n -= out[i].len;
    }
}

void mf_kv_share(mf_kv_cells *c, mf_kv_seq *q, const mf_kv_seq *src, int32_t n)
{
    mf_kv_window(src, n, q->spans);
    for (q->n_spans = 0; q->n_spans < MF_KV_SPANS && q->spans[q->n_spans].len > 0; q->n_spans++)
        hold(c, q->spans[q->n_spans].cell, q->spans[q->n_spans].len, 1);
    q->n = n;
}

int32_t mf_kv_cell(const mf_kv_seq *q, int32_t i)
{
    int32_t s = 0;
    while (i >= q->spans[s].len) i -= q->spans[s++].len;
    return q->spans[s].cell + i;
}

static int32_t clamp(int32_t x, int32_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Span s of q loses n cells from the at-th on: what lies behind them moves up, if q alone holds it all. */
static minfer_status close_gap(mf_kv_cells *c, mf_kv_seq *q, mf_kv_span *s, int32_t at, int32_t n, bool *done,
                               minfer_error *err)
{
    *done = false;
    for (int32_t i = at; i < s->len; i++)
        if (c->refs[s->cell + i] > 1) return MINFER_OK;
    MF_TRY(move_rows(c, s->cell + at + n, s->cell + at, s->len - at - n, err));
    s->len -= n;
    q->n -= n;
    if (s == last(q))
        q->spare += n;
    else
        hold(c, s->cell + s->len, n, -1);
    *done = true;
    return MINFER_OK;
}

/* Cells [from, to) lie inside one span, which would become two and there are MF_KV_SPANS already. */
static minfer_status remove_inside(mf_kv_cells *c, mf_kv_seq *q, int32_t from, int32_t to, minfer_error *err)
{
    int32_t i = 0, at = from;
    bool done;
    while (at >= q->spans[i].len) at -= q->spans[i++].len;
    if (c->lost) return was_lost(err);
    MF_TRY(close_gap(c, q, &q->spans[i], at, to - from, &done, err));
    if (done) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_LIMIT,
                   "removing %d..%d of %d tokens would leave %d runs of cells, %d are possible", from, to,
                   q->n, MF_KV_SPANS + 1, MF_KV_SPANS);
}

minfer_status mf_kv_remove(mf_kv_cells *c, mf_kv_seq *q, int32_t from, int32_t to, minfer_error *err)
{
    mf_kv_span kept[MF_KV_SPANS + 1];
    int32_t n = 0, at = 0;
    if (to >= q->n) {
        mf_kv_truncate(c, q, from < q->n ? from : q->n);
        return MINFER_OK;
    }
    for (int32_t i = 0; i < q->n_spans; at += q->spans[i++].len) {
        mf_kv_span s = q->spans[i];
        int32_t head = clamp(from - at, s.len), tail = clamp(to - at, s.len);
        if (head > 0) kept[n++] = (mf_kv_span){s.cell, head};
        if (tail < s.len) kept[n++] = (mf_kv_span){s.cell + tail, s.len - tail};
    }
    if (n > MF_KV_SPANS) return remove_inside(c, q, from, to, err);
    for (int32_t i = from; i < to; i++) c->refs[mf_kv_cell(q, i)]--;
    memcpy(q->spans, kept, (size_t)n * sizeof *kept);
    q->n_spans = n;
    q->n -= to - from;
    return MINFER_OK;
}
