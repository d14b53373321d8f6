/* Feeding tokens of several sessions in common forward passes.
 *
 * All rows of all feeds stand in one line, feed after feed; passes are cut from that line. Where a row's keys
 * and values lie, and what it sees, is data of the pass; only the kind of window is part of a graph. */
#include "runtime/engine.h"

#include <string.h>

/* Feeds with where their new tokens begin in their sessions, and how far the line has been cut. */
typedef struct {
    minfer_engine *e;
    const minfer_feed *feeds;
    size_t n_feeds;
    size_t feed, at; /* the next row: of this feed, its at-th token */
    mf_window window;
    bool states;  /* what comes out: the final norm's rows, not logits */
    size_t width; /* floats of a row that comes out */
} line;

/* ---- what is refused before anything changes ---- */

static minfer_status check_ids(const minfer_engine *e, const minfer_feed *f, minfer_error *err)
{
    int32_t n_vocab = e->model->bound->hp.n_vocab;
    for (size_t i = 0; i < f->n; i++)
        if (f->tokens[i] < 0 || f->tokens[i] >= n_vocab)
            return mf_fail(err, MINFER_ERR_ARG, "token %d at place %zu is not in 0..%d", f->tokens[i], i,
                           n_vocab - 1);
    return MINFER_OK;
}

/* Where tokens were removed, positions run ahead of the length. */
static minfer_status check_positions(const minfer_engine *e, const minfer_feed *f, minfer_error *err)
{
    int32_t next = mf_session_next(f->session), trained = e->model->bound->hp.n_ctx;
    if (f->n <= (size_t)(trained - next)) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_LIMIT, "%zu tokens from position %d on: the model has %d positions", f->n,
                   next, trained);
}

static minfer_status check(const minfer_engine *e, const minfer_feed *feeds, size_t n, minfer_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const minfer_feed *f = &feeds[i];
        size_t used = minfer_session_length(f->session);
        if (f->session->e != e)
            return mf_fail(err, MINFER_ERR_ARG, "feed %zu: a session of another engine", i);
        for (size_t k = 0; k < i; k++)
            if (feeds[k].session == f->session)
                return mf_fail(err, MINFER_ERR_ARG, "feeds %zu and %zu: the same session", k, i);
        if (f->n > (size_t)e->n_ctx - used)
            return mf_fail(err, MINFER_ERR_LIMIT, "%zu tokens do not fit: %zu of %d in the context are used",
                           f->n, used, e->n_ctx);
        if (f->n_logits > f->n || (f->n_logits > 0 && !f->logits))
            return mf_fail(err, MINFER_ERR_ARG, "%zu rows of logits from %zu tokens", f->n_logits, f->n);
        MF_TRY(check_positions(e, f, err));
        MF_TRY(check_ids(e, f, err));
    }
    return MINFER_OK;
}

/* ---- cells ---- */

static void take_back(minfer_engine *e, const minfer_feed *feeds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mf_kv_seq *q = &feeds[i].session->seq;
        mf_kv_truncate(&e->kv, q, q->n - (int32_t)feeds[i].n);
    }
}

static minfer_status extend(minfer_engine *e, const minfer_feed *feeds, size_t n, minfer_error *err)
{
    for (size_t i = 0; i < n; i++) {
        minfer_session *s = feeds[i].session;
        int32_t used = s->seq.n, next = mf_session_next(s);
        minfer_status st = mf_kv_extend(&e->kv, &s->seq, (int32_t)feeds[i].n, err);
        if (st != MINFER_OK) {
            take_back(e, feeds, i);
            return st;
        }
        for (int32_t k = 0; k < (int32_t)feeds[i].n; k++) {
            s->tokens[used + k] = feeds[i].tokens[k];
            s->positions[used + k] = next + k;
        }
    }
    return MINFER_OK;
}

/* ---- passes ---- */

/* The simplest window that says what all feeds of the line see. A causal one says it by the position, which
 * then has to be the cell. */
static mf_window window_for(const line *l)
{
    mf_window w = MF_WINDOW_CAUSAL;
    for (size_t i = 0; i < l->n_feeds; i++) {
        const minfer_session *s = l->feeds[i].session;
        if (l->feeds[i].n == 0) continue;
        if (s->seq.n_spans > 1) return MF_WINDOW_MAP;
        if (s->seq.spans[0].cell != 0 || mf_session_next(s) != s->seq.n) w = MF_WINDOW_SPAN;
    }
    return w;
}

/* Row `row` becomes token i of s. */
static void set_row(const mf_rows *r, int32_t row, mf_window window, const minfer_session *s, int32_t i)
{
    r->ids[row] = s->tokens[i];
    r->positions[row] = s->positions[i];
    r->cells[row] = mf_kv_cell(&s->seq, i);
    if (window == MF_WINDOW_SPAN) {
        r->window[2 * row] = s->seq.spans[0].cell;
        r->window[2 * row + 1] = r->cells[row] + 1;
    } else if (window == MF_WINDOW_MAP) {
        mf_kv_span spans[MF_KV_SPANS];
        mf_kv_window(&s->seq, i + 1, spans);
        for (int32_t k = 0; k < MF_KV_SPANS; k++) {
            r->window[8 * row + 2 * k] = spans[k].cell;
            r->window[8 * row + 2 * k + 1] = spans[k].len;
        }
    }
}

/* The next row of the line goes to place `row`; *wanted is told whether its logits are. false at the end. */
static bool next_row(line *l, int32_t row, bool *wanted)
{
    while (l->feed < l->n_feeds && l->at == l->feeds[l->feed].n) l->feed++, l->at = 0;
    if (l->feed == l->n_feeds) return false;
    const minfer_feed *f = &l->feeds[l->feed];
    int32_t first = f->session->seq.n - (int32_t)f->n;
    set_row(&l->e->rows, row, l->window, f->session, first + (int32_t)l->at);
    *wanted = l->at >= f->n - f->n_logits;
    l->at++;
    return true;
}

/* Logits of a pass to the feeds that want them; they begin at the feed and token of `from`. */
static minfer_status hand_out(const line *from, const line *to, const mf_cached_graph *g, minfer_error *err)
{
    size_t row = 0;
    for (size_t i = from->feed; i <= to->feed && i < from->n_feeds; i++) {
        const minfer_feed *f = &from->feeds[i];
        size_t silent = f->n - f->n_logits, a = i == from->feed ? from->at : 0,
               b = i == to->feed ? to->at : f->n;
        if (a < silent) a = silent;
        if (a >= b) continue;
        MF_TRY(mf_graph_cache_read(&from->e->graphs, g, row, b - a, f->logits + (a - silent) * from->width,
                                   err));
        row += b - a;
    }
    return MINFER_OK;
}

/* One pass; *more is false when the line was at its end. */
static minfer_status pass(line *l, bool *more, minfer_error *err)
{
    line from = *l;
    mf_pass p = {.window = l->window, .states = l->states};
    bool wanted;
    mf_cached_graph *g;
    for (; p.n < l->e->n_batch && next_row(l, p.n, &wanted); p.n++)
        if (wanted) l->e->rows.tail[p.n_out++] = p.n;
    *more = p.n > 0;
    if (p.n == 0) return MINFER_OK;
    MF_TRY(mf_engine_forward(l->e, &p, &g, err));
    return p.n_out ? hand_out(&from, l, g, err) : MINFER_OK;
}

static minfer_status feed_all(line *l, minfer_error *err)
{
    minfer_status st;
    bool more;
    MF_TRY(check(l->e, l->feeds, l->n_feeds, err));
    MF_TRY(extend(l->e, l->feeds, l->n_feeds, err));
    l->window = window_for(l);
    do st = pass(l, &more, err);
    while (st == MINFER_OK && more);
    if (st != MINFER_OK) take_back(l->e, l->feeds, l->n_feeds);
    return st;
}

minfer_status minfer_feed_batch(minfer_engine *e, const minfer_feed *feeds, size_t n, minfer_error *err)
{
    line l = {.e = e, .feeds = feeds, .n_feeds = n, .width = (size_t)e->model->bound->hp.n_vocab};
    return feed_all(&l, err);
}

minfer_status minfer_feed_batch_states(minfer_engine *e, const minfer_feed *feeds, size_t n,
                                       minfer_error *err)
{
    line l = {
        .e = e, .feeds = feeds, .n_feeds = n, .states = true, .width = (size_t)e->model->bound->hp.n_embd};
    return feed_all(&l, err);
}

minfer_status minfer_session_feed(minfer_session *s, const int32_t *tokens, size_t n, float *logits,
                                  size_t n_logits, minfer_error *err)
{
    minfer_feed f = {s, tokens, n, logits, n_logits};
    return minfer_feed_batch(s->e, &f, 1, err);
}
