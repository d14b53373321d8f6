/* Jobs: making, mailbox, end. */
#include "server/job.h"

#include "base/clock.h"

#include <string.h>

void srv_mail_free(srv_mail *m)
{
    mf_free(m->events);
    mf_free(m->ranks);
    mf_buf_free(&m->text);
    *m = (srv_mail){0};
}

static void job_free(srv_job *j)
{
    for (size_t i = 0; j->prompts && i < j->n_prompts; i++) minfer_free(j->prompts[i].v);
    mf_free(j->prompts);
    mf_free(j->dropped);
    mf_free(j->vectors);
    minfer_grammar_free(j->grammar);
    srv_request_free(&j->request);
    srv_mail_free(&j->mail);
    pthread_mutex_destroy(&j->lock);
    mf_free(j);
}

srv_job *srv_job_create(srv_request *r, size_t n_prompts, size_t n_choices)
{
    srv_job *j = mf_calloc(1, sizeof *j);
    if (!j) {
        srv_request_free(r);
        return NULL;
    }
    pthread_mutex_init(&j->lock, NULL);
    j->request = *r;
    *r = (srv_request){0};
    atomic_init(&j->refs, 1);
    j->n_prompts = n_prompts;
    j->n_choices = n_choices;
    j->made_ns = mf_clock_ns();
    j->prompts = mf_calloc(n_prompts, sizeof *j->prompts);
    j->dropped = mf_calloc(n_choices, sizeof *j->dropped);
    if (j->prompts && j->dropped) return j;
    job_free(j);
    return NULL;
}

void srv_job_unref(srv_job *j)
{
    if (j && atomic_fetch_sub(&j->refs, 1) == 1) job_free(j);
}

void srv_job_leave(srv_job *j)
{
    pthread_mutex_lock(&j->lock);
    j->wake = NULL;
    pthread_mutex_unlock(&j->lock);
    atomic_store(&j->left, true);
}

void srv_job_take(srv_job *j, srv_mail *m, bool *over, srv_error *e, size_t *n_cached)
{
    m->n = m->n_ranks = m->text.len = 0;
    pthread_mutex_lock(&j->lock);
    srv_mail mine = j->mail;
    j->mail = *m;
    *m = mine;
    *over = j->over;
    *n_cached = j->n_cached;
    if (j->over) *e = j->error;
    pthread_mutex_unlock(&j->lock);
}

static void fail_locked(srv_job *j, const srv_error *e)
{
    if (j->over) return;
    j->error = *e;
    j->over = j->news = true;
}

void srv_job_fail(srv_job *j, const srv_error *e)
{
    pthread_mutex_lock(&j->lock);
    fail_locked(j, e);
    pthread_mutex_unlock(&j->lock);
}

static bool add(srv_mail *m, const srv_post *p)
{
    if (!mf_grow((void **)&m->events, &m->cap, m->n + 1, sizeof *m->events) ||
        !mf_grow((void **)&m->ranks, &m->cap_ranks, m->n_ranks + p->n_ranks + 1, sizeof *m->ranks))
        return false;
    m->events[m->n] = (srv_event){.choice = p->choice,
                                  .id = p->piece.id,
                                  .text = m->text.len,
                                  .n_text = p->piece.n,
                                  .logprob = p->logprob,
                                  .ranks = m->n_ranks,
                                  .n_ranks = p->n_ranks,
                                  .ended = p->ended,
                                  .finish = p->finish};
    if (!mf_buf_append(&m->text, p->piece.text, p->piece.n)) return false;
    if (p->n_ranks) memcpy(m->ranks + m->n_ranks, p->ranks, p->n_ranks * sizeof *p->ranks);
    m->n_ranks += p->n_ranks;
    m->n++;
    return true;
}

void srv_job_post(srv_job *j, const srv_post *p)
{
    srv_error e = {0};
    pthread_mutex_lock(&j->lock);
    if (!j->over && !add(&j->mail, p)) {
        srv_refuse(&e, 500, NULL, NULL, "out of memory");
        fail_locked(j, &e);
    }
    j->news = true;
    pthread_mutex_unlock(&j->lock);
}

void srv_job_end(srv_job *j)
{
    pthread_mutex_lock(&j->lock);
    j->over = j->news = true;
    pthread_mutex_unlock(&j->lock);
}

void srv_job_count_cached(srv_job *j, size_t n)
{
    pthread_mutex_lock(&j->lock);
    j->n_cached += n;
    pthread_mutex_unlock(&j->lock);
}

bool srv_job_is_over(srv_job *j)
{
    pthread_mutex_lock(&j->lock);
    bool over = j->over;
    pthread_mutex_unlock(&j->lock);
    return over || atomic_load(&j->left);
}

void srv_job_wake(srv_job *j)
{
    pthread_mutex_lock(&j->lock);
    if (j->news && j->wake) j->wake(j->wake_user);
    j->news = false;
    pthread_mutex_unlock(&j->lock);
}
