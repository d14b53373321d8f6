#include "kv/plain.h"

void plain_open(plain *p, const minfer_model *m, minfer_cache_type cache, int32_t n_ctx)
{
    rig_options o = {.cache = cache, .n_ctx = n_ctx, .n_batch = 1, .threads = 1};
    *p = (plain){.e = rig_engine(m, &o)};
    const mf_alloc *a = &p->e->graphs.alloc;
    const mf_kv_pair *l = mf_alloc_kv_pair(a, 0);
    p->bytes = 2 * (size_t)a->n_layer * (size_t)l->geometry.n_kv * mf_alloc_kv_row_bytes(l);
    p->n_vocab = rig_n_vocab(p->e);
}

void plain_close(plain *p)
{
    minfer_engine_free(p->e);
}

plain_seq plain_seq_new(const plain *p)
{
    size_t n = (size_t)p->e->n_ctx;
    plain_seq s = {.tokens = mf_calloc(n, sizeof *s.tokens),
                   .positions = mf_calloc(n, sizeof *s.positions),
                   .rows = mf_calloc(n, p->bytes)};
    assert_true(s.tokens && s.positions && s.rows);
    return s;
}

void plain_seq_free(plain_seq *s)
{
    mf_free(s->tokens);
    mf_free(s->positions);
    mf_free(s->rows);
    *s = (plain_seq){0};
}

/* The rows of one token, from or to a cell. */
static void transfer(const mf_alloc *a, int32_t cell, uint8_t *rows, bool to_cell)
{
    minfer_error err = {0};
    for (int32_t l = 0; l < a->n_layer; l++) {
        const mf_kv_pair *p = mf_alloc_kv_pair(a, l);
        for (int32_t i = 0; i < 2 * p->geometry.n_kv; i++, rows += mf_alloc_kv_row_bytes(p)) {
            mf_kv_rows r = {.layer = l, .is_v = i % 2 != 0, .head = i / 2, .cell = cell, .n = 1};
            assert_ok(to_cell ? mf_alloc_kv_write(a, &r, rows, &err) : mf_alloc_kv_read(a, &r, rows, &err),
                      &err);
        }
    }
}

static void one_token(plain *p, plain_seq *s, int32_t token, float *logits)
{
    minfer_error err = {0};
    mf_cached_graph *g;
    minfer_engine *e = p->e;
    int32_t i = s->n++;
    s->tokens[i] = token;
    s->positions[i] = i ? s->positions[i - 1] + 1 : 0;
    e->rows.ids[0] = token;
    e->rows.positions[0] = s->positions[i];
    e->rows.cells[0] = i;
    e->rows.tail[0] = 0;
    e->rows.window[0] = 0;
    e->rows.window[1] = i + 1;
    assert_ok(mf_engine_forward(e, &(mf_pass){.n = 1, .n_out = 1, .window = MF_WINDOW_SPAN}, &g, &err), &err);
    assert_ok(mf_graph_cache_read(&e->graphs, g, 0, 1, logits, &err), &err);
    transfer(&e->graphs.alloc, i, s->rows + (size_t)i * p->bytes, false);
}

void plain_feed(plain *p, plain_seq *s, const int32_t *tokens, int32_t n, float *logits)
{
    for (int32_t i = 0; i < s->n; i++) transfer(&p->e->graphs.alloc, i, s->rows + (size_t)i * p->bytes, true);
    for (int32_t i = 0; i < n; i++) one_token(p, s, tokens[i], logits + (size_t)i * p->n_vocab);
}

void plain_remove(const plain *p, plain_seq *s, int32_t from, int32_t to)
{
    size_t behind = (size_t)(s->n - to);
    memmove(s->tokens + from, s->tokens + to, behind * sizeof *s->tokens);
    memmove(s->positions + from, s->positions + to, behind * sizeof *s->positions);
    memmove(s->rows + (size_t)from * p->bytes, s->rows + (size_t)to * p->bytes, behind * p->bytes);
    s->n -= to - from;
}

void plain_copy(const plain *p, plain_seq *to, const plain_seq *from, int32_t n)
{
    memcpy(to->tokens, from->tokens, (size_t)n * sizeof *to->tokens);
    memcpy(to->positions, from->positions, (size_t)n * sizeof *to->positions);
    memcpy(to->rows, from->rows, (size_t)n * p->bytes);
    to->n = n;
}

void plain_compare(const plain *p, const plain_seq *want, const minfer_session *s, bool rows)
{
    size_t n = (size_t)want->n;
    assert_int_equal(minfer_session_length(s), n);
    assert_memory_equal(minfer_session_tokens(s), want->tokens, n * sizeof *want->tokens);
    assert_memory_equal(s->positions, want->positions, n * sizeof *want->positions);
    uint8_t *have = mf_malloc(p->bytes);
    assert_non_null(have);
    for (int32_t i = 0; rows && i < want->n; i++) {
        transfer(&s->e->graphs.alloc, mf_kv_cell(&s->seq, i), have, false);
        assert_memory_equal(have, want->rows + (size_t)i * p->bytes, p->bytes);
    }
    mf_free(have);
}
