/* Cells against a plain model: every sequence as an array of its own. Random operations on many sequences;
 * after each, what a sequence reads through its spans is what its array says. */
#include "support/support.h"

#include "kv/cells.h"

enum { CELLS = 300, SEQS = 9, STEPS = 40000 };

/* The cache: what stands in each cell. */
typedef struct {
    mf_kv_cells c;
    int64_t cell[CELLS];
    mf_kv_seq seq[SEQS];
    bool open[SEQS];
    int64_t want[SEQS][CELLS]; /* plain model */
    int32_t n[SEQS];
    int64_t next;
    int moves, fail_at;
} world;

static minfer_status move(void *user, int32_t from, int32_t to, int32_t n, minfer_error *err)
{
    world *w = user;
    assert_true(from >= 0 && to >= 0 && n > 0 && from + n <= CELLS && to + n <= CELLS);
    w->moves++;
    if (w->moves == w->fail_at) return mf_fail(err, MINFER_ERR_STATE, "move fails on request");
    memmove(w->cell + to, w->cell + from, (size_t)n * sizeof *w->cell);
    return MINFER_OK;
}

static world *world_new(void)
{
    static world w;
    minfer_error err = {0};
    memset(&w, 0, sizeof w);
    assert_ok(mf_kv_cells_init(&w.c, CELLS, move, &w, &err), &err);
    return &w;
}

static void check_seq(const world *w, int i)
{
    const mf_kv_seq *q = &w->seq[i];
    mf_kv_span spans[MF_KV_SPANS];
    int32_t at = 0;
    assert_int_equal(q->n, w->n[i]);
    mf_kv_window(q, q->n, spans);
    for (int s = 0; s < MF_KV_SPANS; s++)
        for (int32_t k = 0; k < spans[s].len; k++, at++) {
            if (w->cell[spans[s].cell + k] != w->want[i][at])
                fail_msg("sequence %d, place %d: %lld, not %lld", i, at,
                         (long long)w->cell[spans[s].cell + k], (long long)w->want[i][at]);
            assert_int_equal(mf_kv_cell(q, at), spans[s].cell + k);
        }
    assert_int_equal(at, q->n);
}

/* Every cell is counted for those who hold it, and a reserve is its sequence's alone. */
static void check_counts(const world *w)
{
    int32_t refs[CELLS] = {0};
    for (int i = 0; i < SEQS; i++) {
        const mf_kv_seq *q = &w->seq[i];
        if (!w->open[i]) continue;
        for (int s = 0; s < q->n_spans; s++) {
            assert_true(q->spans[s].len > 0);
            for (int32_t k = 0; k < q->spans[s].len; k++) refs[q->spans[s].cell + k]++;
        }
        assert_true(q->n_spans > 0 || q->spare == 0);
        if (q->n_spans == 0) continue;
        const mf_kv_span *last = &q->spans[q->n_spans - 1];
        for (int32_t k = 0; k < q->spare; k++) {
            assert_int_equal(w->c.refs[last->cell + last->len + k], 1);
            refs[last->cell + last->len + k]++;
        }
    }
    assert_memory_equal(refs, w->c.refs, sizeof refs);
}

static void check_world(const world *w)
{
    for (int i = 0; i < SEQS; i++)
        if (w->open[i]) check_seq(w, i);
    check_counts(w);
}

static void op_open(world *w, int i)
{
    minfer_error err = {0};
    assert_ok(mf_kv_open(&w->c, &w->seq[i], &err), &err);
    w->open[i] = true;
    w->n[i] = 0;
}

static void op_extend(world *w, int i, int32_t n)
{
    minfer_error err = {0};
    int32_t unused = mf_kv_unused(&w->c);
    minfer_status st = mf_kv_extend(&w->c, &w->seq[i], n, &err);
    if (st == MINFER_ERR_LIMIT) { /* only when it is full, or in need of a fifth run */
        const mf_kv_span *last = &w->seq[i].spans[MF_KV_SPANS - 1];
        assert_true(unused < n || (w->seq[i].n_spans == MF_KV_SPANS && unused < last->len + n));
        return;
    }
    assert_ok(st, &err);
    for (int32_t k = w->n[i]; k < w->n[i] + n; k++) {
        w->want[i][k] = ++w->next;
        w->cell[mf_kv_cell(&w->seq[i], k)] = w->next;
    }
    w->n[i] += n;
}

static void op_share(world *w, int i, int from, int32_t n)
{
    op_open(w, i);
    mf_kv_share(&w->c, &w->seq[i], &w->seq[from], n);
    memcpy(w->want[i], w->want[from], sizeof w->want[i]);
    w->n[i] = n;
}

static void op_remove(world *w, int i, int32_t from, int32_t to)
{
    minfer_error err = {0};
    minfer_status st = mf_kv_remove(&w->c, &w->seq[i], from, to, &err);
    if (st == MINFER_ERR_LIMIT) {
        assert_int_equal(w->seq[i].n_spans, MF_KV_SPANS);
        return;
    }
    assert_ok(st, &err);
    memmove(w->want[i] + from, w->want[i] + to, (size_t)(w->n[i] - to) * sizeof(int64_t));
    w->n[i] -= to - from;
}

static int32_t below(mf_rng *r, int32_t n)
{
    return (int32_t)(mf_rng_u64(r) % (uint64_t)n);
}

static void step(world *w, mf_rng *r)
{
    int i = below(r, SEQS);
    if (!w->open[i]) {
        int from = below(r, SEQS);
        if (w->open[from] && from != i && below(r, 2))
            op_share(w, i, from, below(r, w->n[from] + 1));
        else
            op_open(w, i);
        return;
    }
    int what = below(r, 12);
    if (what == 0) {
        mf_kv_close(&w->c, &w->seq[i]);
        w->open[i] = false;
    } else if (what == 1 && w->n[i] > 0) {
        int32_t from = below(r, w->n[i]);
        op_remove(w, i, from, from + 1 + below(r, w->n[i] - from));
    } else if (what < 4) {
        int32_t n = below(r, w->n[i] + 1);
        mf_kv_truncate(&w->c, &w->seq[i], n);
        w->n[i] = n;
    } else {
        op_extend(w, i, what < 9 ? 1 + below(r, 3) : below(r, 60));
    }
}

static void random_operations_keep_every_sequence(void **state)
{
    (void)state;
    int moves = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        world *w = world_new();
        mf_rng r;
        mf_rng_seed(&r, seed);
        for (int i = 0; i < STEPS / 5; i++) {
            step(w, &r);
            check_world(w);
        }
        moves += w->moves;
        mf_kv_cells_free(&w->c);
    }
    assert_true(moves > 100);
}

static void one_sequence_can_have_every_cell(void **state)
{
    (void)state;
    world *w = world_new();
    op_open(w, 0);
    for (int i = 0; i < CELLS; i++) op_extend(w, 0, 1);
    assert_int_equal(w->seq[0].n, CELLS);
    assert_int_equal(w->seq[0].n_spans, 1);
    assert_int_equal(w->moves, 0);
    minfer_error err = {0};
    assert_fails(mf_kv_extend(&w->c, &w->seq[0], 1, &err), MINFER_ERR_LIMIT, &err, "0 of 300 are unused");
    check_world(w);
    mf_kv_cells_free(&w->c);
}

/* Two that grow in turns: one moves, both stay whole, and the last cell is used. */
static void two_sequences_fill_the_cache(void **state)
{
    (void)state;
    world *w = world_new();
    op_open(w, 0);
    op_open(w, 1);
    for (int i = 0; i < CELLS / 2; i++) {
        op_extend(w, 0, 1);
        op_extend(w, 1, 1);
        check_world(w);
    }
    assert_int_equal(w->n[0] + w->n[1], CELLS);
    assert_in_range(w->moves, 1, 10 * CELLS);
    mf_kv_cells_free(&w->c);
}

static void a_fork_writes_into_cells_of_its_own(void **state)
{
    (void)state;
    world *w = world_new();
    op_open(w, 0);
    op_extend(w, 0, 20);
    op_share(w, 1, 0, 10);
    op_extend(w, 1, 5);
    mf_kv_truncate(&w->c, &w->seq[0], 8); /* its cells 8 and 9 are shared */
    w->n[0] = 8;
    op_extend(w, 0, 4);
    check_world(w);
    assert_int_equal(w->seq[1].n_spans, 2);
    assert_int_equal(w->seq[0].n_spans, 2);
    mf_kv_cells_free(&w->c);
}

/* Forks of forks: what would be a fifth run becomes a copy. */
static void a_fifth_run_is_copied(void **state)
{
    (void)state;
    world *w = world_new();
    op_open(w, 0);
    op_extend(w, 0, 10);
    for (int i = 1; i < 7; i++) {
        op_share(w, i, i - 1, w->n[i - 1]);
        op_extend(w, i, 3);
        check_world(w);
        assert_in_range(w->seq[i].n_spans, 1, MF_KV_SPANS);
    }
    assert_true(w->moves > 0);
    mf_kv_cells_free(&w->c);
}

static void a_failed_move_is_told_from_then_on(void **state)
{
    (void)state;
    world *w = world_new();
    minfer_error err = {0};
    w->fail_at = 1;
    op_open(w, 0);
    op_open(w, 1);
    op_extend(w, 0, 64);
    op_extend(w, 1, 64);
    assert_fails(mf_kv_extend(&w->c, &w->seq[0], 64, &err), MINFER_ERR_STATE, &err, "on request");
    assert_fails(mf_kv_extend(&w->c, &w->seq[1], 1, &err), MINFER_ERR_STATE, &err, "was lost");
    mf_kv_cells_free(&w->c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_keep_every_sequence),
        cmocka_unit_test(one_sequence_can_have_every_cell),
        cmocka_unit_test(two_sequences_fill_the_cache),
        cmocka_unit_test(a_fork_writes_into_cells_of_its_own),
        cmocka_unit_test(a_fifth_run_is_copied),
        cmocka_unit_test(a_failed_move_is_told_from_then_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
