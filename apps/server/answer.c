/* Exchanges that wait for the worker: a job is queued, its mail goes through the reply, and the connection
 * sleeps while there is nothing to send. */
#include "server/exchange.h"

#include "base/clock.h"
#include "server/prepare.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { BLOCK = 16384 };

static void wake_job(void *user)
{
    srv_exchange_wake(user);
}

/* From the watching thread. */
static void notice(void *user, bool left)
{
    srv_exchange *x = user;
    pthread_mutex_lock(&x->lock);
    bool silent = mf_clock_ns() - x->spoke_ns >= (int64_t)x->h->s->o->pulse_s * 1000000000;
    if (left) x->left = true;
    pthread_mutex_unlock(&x->lock);
    if (left) {
        srv_job_leave(x->job);
        srv_worker_stir(x->h->s->worker);
    }
    if (left || (silent && x->job->request.stream)) srv_exchange_wake(x);
}

static bool has_left(srv_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool left = x->left;
    pthread_mutex_unlock(&x->lock);
    return left;
}

/* ---- from mail to bytes ---- */

/* What was written behind `whole` is no frame. */
static bool run_out(srv_exchange *x, size_t whole)
{
    x->out.len = whole;
    srv_refuse(&x->error, 500, NULL, NULL, "out of memory");
    srv_job_leave(x->job);
    return false;
}

static bool begin_choices(srv_exchange *x)
{
    const srv_request *r = &x->job->request;
    for (; x->n_begun < x->job->n_choices; x->n_begun++) {
        const srv_prompt *p = r->echo ? &r->prompts[x->n_begun / (x->job->n_choices / x->job->n_prompts)]
                                      : NULL;
        if (!srv_reply_begin(x->reply, x->n_begun, x->thinking, p ? p->text : NULL, p ? p->n_text : 0,
                             &x->out))
            return false;
    }
    return true;
}

typedef struct token_texts {
    srv_logprob top[SRV_MAX_TOP_LOGPROBS];
    char *bytes[SRV_MAX_TOP_LOGPROBS + 1]; /* the last is the drawn token's */
} token_texts;

static bool name_token(const srv_exchange *x, int32_t id, float logprob, srv_logprob *out, char **bytes)
{
    minfer_error err;
    *out = (srv_logprob){.bytes = "", .logprob = logprob};
    if (minfer_token_bytes(x->h->s->model, id, true, bytes, &out->n, &err) != MINFER_OK) return false;
    out->bytes = *bytes;
    return true;
}

static bool add_token(srv_exchange *x, const srv_event *ev, const char *text, bool *done)
{
    token_texts t = {0};
    srv_token token = {.top = t.top, .n_top = ev->n_ranks};
    const srv_rank *ranks = x->mail.ranks + ev->ranks;
    bool ok = name_token(x, ev->id, ev->logprob, &token.drawn, &t.bytes[SRV_MAX_TOP_LOGPROBS]);
    for (size_t i = 0; i < ev->n_ranks && ok; i++)
        ok = name_token(x, ranks[i].id, ranks[i].logprob, &t.top[i], &t.bytes[i]);
    ok = ok && srv_reply_text(x->reply, ev->choice, text, ev->n_text, &token, done, &x->out);
    for (size_t i = 0; i <= SRV_MAX_TOP_LOGPROBS; i++) minfer_free(t.bytes[i]);
    return ok;
}

static bool add_event(srv_exchange *x, const srv_event *ev)
{
    bool done = false, ok;
    const char *text = ev->n_text ? x->mail.text.data + ev->text : "";
    if (atomic_load(&x->job->dropped[ev->choice])) return true;
    x->n_generated += ev->id >= 0;
    bool token = x->job->request.logprobs && ev->id >= 0;
    ok = token ? add_token(x, ev, text, &done)
               : srv_reply_text(x->reply, ev->choice, text, ev->n_text, NULL, &done, &x->out);
    if (ok && (done || ev->ended)) {
        bool cut = ev->ended && ev->finish == MINFER_FINISH_LENGTH && !done;
        ok = srv_reply_finish(x->reply, ev->choice, cut ? SRV_FINISH_LENGTH : SRV_FINISH_STOP, &x->out);
        atomic_store(&x->job->dropped[ev->choice], true);
    }
    return ok;
}

/* What the worker has said goes through the reply. false: x->error. */
static bool take_mail(srv_exchange *x)
{
    srv_usage used = {0};
    srv_error e = {0};
    bool over;
    size_t whole = x->out.len;
    srv_job_take(x->job, &x->mail, &over, &e, &used.n_cached);
    if (!begin_choices(x)) return run_out(x, whole);
    for (size_t i = 0; i < x->mail.n; i++) {
        whole = x->out.len;
        if (!add_event(x, &x->mail.events[i])) return run_out(x, whole);
    }
    if (!over) return true;
    if (e.status) {
        x->error = e;
        return false;
    }
    for (size_t i = 0; i < x->job->n_prompts; i++) used.n_prompt += x->job->prompts[i].n;
    used.n_generated = x->n_generated;
    x->ended = true;
    whole = x->out.len;
    return srv_reply_end(x->reply, &used, &x->out) || run_out(x, whole);
}

/* ---- streams ---- */

static ssize_t hand_over(srv_exchange *x, char *buf, size_t max)
{
    bool last = x->out.len == x->sent;
    const char *from = last ? x->last_words : x->out.data + x->sent;
    size_t n = last ? strlen(from) : x->out.len - x->sent;
    if (n > max) n = max;
    memcpy(buf, from, n);
    if (last)
        x->last_words += n;
    else
        x->sent += n;
    if (x->sent == x->out.len) x->out.len = x->sent = 0;
    pthread_mutex_lock(&x->lock);
    x->spoke_ns = mf_clock_ns();
    pthread_mutex_unlock(&x->lock);
    return (ssize_t)n;
}

static void pulse(srv_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool silent = mf_clock_ns() - x->spoke_ns >= (int64_t)x->h->s->o->pulse_s * 1000000000;
    pthread_mutex_unlock(&x->lock);
    if (silent) mf_buf_str(&x->out, ": still working\n\n");
}

/* The stream ends with x->error. */
static void add_error(srv_exchange *x)
{
    size_t whole = x->out.len;
    x->ended = true;
    if (srv_stream_error(&x->error, &x->out)) return;
    x->out.len = whole;
    x->last_words = srv_nomem_frames;
}

static ssize_t read_stream(void *user, uint64_t pos, char *buf, size_t max)
{
    srv_exchange *x = user;
    (void)pos;
    for (;;) {
        if (has_left(x)) return MHD_CONTENT_READER_END_WITH_ERROR;
        if (x->out.len > x->sent || (x->last_words && *x->last_words)) return hand_over(x, buf, max);
        if (x->ended) return MHD_CONTENT_READER_END_OF_STREAM;
        if (!take_mail(x)) add_error(x);
        if (x->out.len == x->sent && !x->ended) pulse(x);
        if (x->out.len == x->sent && !x->ended && srv_exchange_sleep(x)) return 0;
    }
}

static enum MHD_Result send_stream(srv_exchange *x)
{
    struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, x, NULL);
    if (!r) return MHD_NO;
    srv_add_headers(x, r, "text/event-stream");
    MHD_add_response_header(r, "Cache-Control", "no-cache");
    MHD_add_response_header(r, "X-Accel-Buffering", "no");
    atomic_fetch_add(&x->h->s->stats.replies[2], 1);
    enum MHD_Result ok = MHD_queue_response(x->c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return ok;
}

/* ---- whole replies ---- */

static enum MHD_Result send_vectors(srv_exchange *x)
{
    const srv_job *j = x->job;
    size_t n_tokens = 0;
    for (size_t i = 0; i < j->n_prompts; i++) n_tokens += j->prompts[i].n;
    x->out.len = 0;
    if (!srv_embeddings_body(&j->request, x->h->s->name, j->vectors, j->n_prompts,
                             (size_t)x->h->s->info.n_embd, n_tokens, &x->out))
        run_out(x, 0);
    return x->error.status ? srv_send_error(x, &x->error) : srv_send(x, MHD_HTTP_OK, NULL, &x->out);
}

/* Only the end of a job without text is of interest. */
static bool vectors_are_there(srv_exchange *x)
{
    size_t n_cached;
    srv_job_take(x->job, &x->mail, &x->ended, &x->error, &n_cached);
    return !x->error.status;
}

enum MHD_Result srv_answer_go_on(srv_exchange *x)
{
    bool vectors = x->route->endpoint == SRV_EMBEDDINGS;
    do {
        if (has_left(x)) return MHD_NO;
        if (!(vectors ? vectors_are_there(x) : take_mail(x))) return srv_send_error(x, &x->error);
        if (x->ended) return vectors ? send_vectors(x) : srv_send(x, MHD_HTTP_OK, NULL, &x->out);
    } while (!srv_exchange_sleep(x));
    return MHD_YES;
}

/* ---- the beginning ---- */

static bool make_reply(srv_exchange *x)
{
    srv_reply_info info = {.model = x->h->s->name, .created = (int64_t)time(NULL)};
    if (getrandom(&info.nonce, sizeof info.nonce, 0) != sizeof info.nonce)
        info.nonce = (uint64_t)mf_clock_ns();
    x->reply = srv_reply_create(&x->job->request, &info);
    return x->reply != NULL;
}

static bool submit(srv_exchange *x, srv_error *e)
{
    x->job->wake = wake_job;
    x->job->wake_user = x;
    x->spoke_ns = mf_clock_ns();
    srv_admission a = srv_worker_submit(x->h->s->worker, x->job);
    if (a == SRV_ADMITTED) return true;
    x->job->wake = NULL;
    if (a == SRV_QUEUE_CLOSED) return srv_refuse(e, 503, NULL, NULL, "the server is about to end");
    return srv_refuse(e, 429, NULL, NULL, "too many requests wait already; try again later");
}

enum MHD_Result srv_answer_begin(srv_exchange *x)
{
    srv_error e = {0};
    srv_request r = {0};
    srv_server *s = x->h->s;
    if (!srv_request_parse(x->route->endpoint, x->body.data ? x->body.data : "", x->body.len, &s->context, &r,
                           &e))
        return srv_send_error(x, &e);
    mf_buf_free(&x->body);
    x->job = srv_prepare(s, &r, &x->thinking, &e);
    if (!x->job) return srv_send_error(x, &e);
    bool ok = x->route->endpoint == SRV_EMBEDDINGS || make_reply(x);
    if (!ok) srv_refuse(&e, 500, NULL, NULL, "out of memory");
    if (!ok || !submit(x, &e)) return srv_send_error(x, &e);
    srv_conns_watch(&x->h->conns, x->conn, notice, x);
    return x->job->request.stream ? send_stream(x) : srv_answer_go_on(x);
}

void srv_answer_free(srv_exchange *x)
{
    if (x->job) {
        srv_conns_watch(&x->h->conns, x->conn, NULL, NULL);
        srv_job_leave(x->job);
        srv_worker_stir(x->h->s->worker);
    }
    srv_reply_free(x->reply);
    srv_job_unref(x->job);
    srv_mail_free(&x->mail);
}
