/* Generating with and without drafts. */
#include "speculate/answer.h"

static bool take(void *user, int32_t id, const char *text, size_t n)
{
    answer *a = user;
    assert_true(a->n_ids < MAX_IDS);
    a->ids[a->n_ids++] = id;
    assert_true(mf_buf_append(&a->text, text, n));
    return a->cancel == 0 || a->n_ids < a->cancel;
}

static void prepare(minfer_session *s, const task *t)
{
    minfer_error err = {0};
    size_t have = minfer_session_length(s), same = 0, n = t->n_prompt - 1;
    while (same < have && same < n && minfer_session_tokens(s)[same] == t->prompt[same]) same++;
    assert_ok(minfer_session_rollback(s, same, &err), &err);
    assert_ok(minfer_session_feed(s, t->prompt + same, n - same, NULL, 0, &err), &err);
}

void answer_make(answer *a, minfer_session *s, const task *t, minfer_draft *draft)
{
    minfer_generate_options o = t->o;
    minfer_sampler *sampler;
    *a = (answer){.cancel = t->cancel};
    o.on_text = take;
    o.user = a;
    o.draft = draft;
    prepare(s, t);
    assert_ok(minfer_sampler_create(s->e->model, &t->sampling, &sampler, &a->err), &a->err);
    if (t->grammar) assert_ok(minfer_sampler_set_grammar(sampler, s->e->model, t->grammar, &a->err), &a->err);
    a->st = minfer_generate(s, sampler, t->prompt + t->n_prompt - 1, 1, &o, &a->r, &a->err);
    minfer_sampler_free(sampler);
    a->n_timeline = minfer_session_length(s);
    assert_true(a->n_timeline <= MAX_IDS);
    memcpy(a->timeline, minfer_session_tokens(s), a->n_timeline * sizeof *a->timeline);
}

void answer_free(answer *a)
{
    mf_buf_free(&a->text);
}

void answer_compare(const answer *want, const answer *got, const char *what)
{
    bool same = want->st == got->st && want->n_ids == got->n_ids && want->text.len == got->text.len &&
                want->r.finish == got->r.finish && want->r.n_generated == got->r.n_generated &&
                want->n_timeline == got->n_timeline &&
                memcmp(want->ids, got->ids, want->n_ids * sizeof *want->ids) == 0 &&
                (want->text.len == 0 || memcmp(want->text.data, got->text.data, want->text.len) == 0) &&
                memcmp(want->timeline, got->timeline, want->n_timeline * sizeof *want->timeline) == 0;
    if (same) return;
    size_t i = 0;
    while (i < want->n_ids && i < got->n_ids && want->ids[i] == got->ids[i]) i++;
    fail_msg(
        "%s: status %d and %d (%s), %zu and %zu tokens, finish %d and %d, timeline %zu and %zu; the first "
        "%zu tokens are equal",
        what, (int)want->st, (int)got->st, got->err.message, want->n_ids, got->n_ids, (int)want->r.finish,
        (int)got->r.finish, want->n_timeline, got->n_timeline, i);
}

/* ---- scripted drafts ---- */

static minfer_status look(minfer_draft *d, mf_draft_text t, int32_t *kind, minfer_error *err)
{
    const scripted_draft *s = (const scripted_draft *)d;
    (void)err;
    *kind = t.n < s->n ? 2 : -1;
    if (*kind >= 0) assert_memory_equal(t.tokens, s->text, t.n * sizeof *t.tokens);
    return MINFER_OK;
}

static minfer_status propose(minfer_draft *d, mf_draft_text t, int32_t n, int32_t *out, int32_t *got,
                             minfer_error *err)
{
    scripted_draft *s = (scripted_draft *)d;
    (void)err;
    for (; *got < n && t.n + (size_t)*got < s->n; ++*got) {
        int32_t id = s->text[t.n + (size_t)*got];
        if (mf_rng_f64(&s->rng) < s->wrong) id = (id + 1) % s->n_vocab;
        out[*got] = id;
    }
    return MINFER_OK;
}

static void release(minfer_draft *d)
{
    ((scripted_draft *)d)->n_freed++;
}

void scripted_draft_init(scripted_draft *d, int32_t depth, const answer *truth, double wrong, int32_t n_vocab,
                         uint64_t seed)
{
    static const mf_draft_ops ops = {.look = look, .propose = propose, .free = release};
    minfer_error err = {0};
    minfer_draft_options o;
    minfer_draft_options_init(&o);
    o.n_max = depth;
    *d = (scripted_draft){
        .text = truth->timeline, .n = truth->n_timeline, .wrong = wrong, .n_vocab = n_vocab};
    mf_rng_seed(&d->rng, seed);
    assert_ok(mf_draft_init(&d->base, &ops, &o, &err), &err);
}
