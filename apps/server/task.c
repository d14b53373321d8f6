/* One choice on its way. */
#include "server/task.h"

#include "base/clock.h"

#include <string.h>

static size_t choices_per_prompt(const srv_job *j)
{
    return j->n_choices / j->n_prompts;
}

/* Choices of one prompt differ by their seeds; the first has the seed that was asked for. */
static minfer_status make_answer(srv_task *t, const minfer_model *m, minfer_error *err)
{
    const srv_request *r = &t->job->request;
    minfer_sampling p = r->sampling;
    p.seed += t->choice % choices_per_prompt(t->job);
    minfer_answer_options o = {
        .max_tokens = r->max_tokens, .stop = r->stop, .n_stop = r->n_stop, .ignore_end = r->ignore_end};
    MF_TRY(minfer_sampler_create(m, &p, &t->sampler, err));
    if (t->job->grammar) MF_TRY(minfer_sampler_set_grammar(t->sampler, m, t->job->grammar, err));
    return minfer_answer_create(m, t->sampler, &o, &t->answer, err);
}

/* A vector is made of all states, so nothing that is known already helps. */
static minfer_status make_vector(srv_task *t, size_t n_embd, minfer_error *err)
{
    t->alone = true;
    t->sum = mf_calloc(n_embd, sizeof *t->sum);
    return t->sum ? MINFER_OK : MF_NOMEM(err);
}

minfer_status srv_task_open(srv_task *t, const minfer_model *m, srv_job *j, size_t choice, size_t n_embd,
                            minfer_error *err)
{
    const srv_ids *prompt = &j->prompts[choice / choices_per_prompt(j)];
    *t = (srv_task){.job = j, .choice = choice, .n = prompt->n, .n_prompt = prompt->n};
    bool ok = mf_grow((void **)&t->tokens, &t->cap, t->n + 1, sizeof *t->tokens);
    minfer_status st = ok ? MINFER_OK : MF_NOMEM(err);
    if (ok) memcpy(t->tokens, prompt->v, prompt->n * sizeof *t->tokens);
    if (ok) st = srv_task_wants_vector(t) ? make_vector(t, n_embd, err) : make_answer(t, m, err);
    if (st == MINFER_OK) return MINFER_OK;
    t->job = NULL;
    srv_task_close(t);
    return st;
}

void srv_task_close(srv_task *t)
{
    minfer_answer_free(t->answer);
    minfer_sampler_free(t->sampler);
    mf_free(t->tokens);
    mf_free(t->sum);
    srv_job_unref(t->job);
    *t = (srv_task){0};
}

bool srv_task_wants_vector(const srv_task *t)
{
    return t->job->request.endpoint == SRV_EMBEDDINGS;
}

bool srv_task_unwanted(srv_task *t)
{
    return srv_job_is_over(t->job) || atomic_load(&t->job->dropped[t->choice]);
}

void srv_task_fail(srv_task *t, const minfer_error *err)
{
    srv_error e = {0};
    srv_refuse(&e, 500, NULL, NULL, "%s", err->message[0] ? err->message : "the engine failed");
    srv_job_fail(t->job, &e);
    t->over = t->drop = true;
}

void srv_task_end(srv_task *t)
{
    t->over = true;
    if (++t->job->n_ended == t->job->n_choices) srv_job_end(t->job);
}

/* Log-probabilities are of the model's logits, before anything that sampling does to them. */
static void post_token(srv_task *t, const minfer_piece *p, int32_t n_vocab)
{
    const srv_request *r = &t->job->request;
    srv_rank ranks[SRV_MAX_TOP_LOGPROBS];
    srv_post post = {.choice = t->choice, .piece = *p, .ranks = ranks};
    if (r->logprobs && p->id >= 0) {
        post.n_ranks = (size_t)r->n_logprobs;
        if (post.n_ranks > (size_t)n_vocab) post.n_ranks = (size_t)n_vocab;
        srv_logprobs(t->rows, n_vocab, p->id, &post.logprob, ranks, post.n_ranks);
    }
    srv_job_post(t->job, &post);
}

static minfer_status finish(srv_task *t, minfer_error *err)
{
    srv_post post = {.choice = t->choice, .ended = true};
    MF_TRY(minfer_answer_finish(t->answer, &post.piece, &post.finish, err));
    srv_job_post(t->job, &post);
    srv_task_end(t);
    return MINFER_OK;
}

static minfer_status keep(srv_task *t, int32_t id, minfer_error *err)
{
    if (!mf_grow((void **)&t->tokens, &t->cap, t->n + 1, sizeof *t->tokens)) return MF_NOMEM(err);
    t->tokens[t->n++] = id;
    t->n_generated++;
    return MINFER_OK;
}

size_t srv_task_draw(srv_task *t, int32_t n_ctx, int32_t n_vocab)
{
    minfer_error err = {0};
    minfer_piece p = {.id = -1};
    minfer_status st = minfer_answer_next(t->answer, t->rows, t->tokens, t->n, &p, &err);
    if (st == MINFER_OK && p.id >= 0) st = keep(t, p.id, &err);
    if (st == MINFER_OK && !t->job->first_ns) t->job->first_ns = mf_clock_ns();
    if (st == MINFER_OK) {
        post_token(t, &p, n_vocab);
        if (p.ended || t->n >= (size_t)n_ctx) st = finish(t, &err);
    }
    if (st != MINFER_OK) srv_task_fail(t, &err);
    return st == MINFER_OK && p.id >= 0;
}

void srv_task_pool(srv_task *t, size_t n_embd, srv_pooling p)
{
    minfer_error err = {0};
    srv_vector_add(t->sum, t->rows, n_embd, t->n_fed - t->n_take, t->n_take, p);
    if (t->n_fed < t->n) return;
    t->drop = true;
    if (srv_vector_finish(t->sum, n_embd, t->job->vectors + t->choice * n_embd)) {
        srv_task_end(t);
        return;
    }
    mf_fail(&err, MINFER_ERR_STATE, "the states of the text have no direction");
    srv_task_fail(t, &err);
}
