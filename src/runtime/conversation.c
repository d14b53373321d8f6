/* Conversations: turns on a history and a session.
 *
 * The messages are the truth, the session a cache of what they render to. Before a turn the rendering is
 * compared with the session's tokens; what they have in common is kept and the rest evaluated. So nothing can
 * get out of step: an edited history, thoughts that the template leaves out of later turns, an answer whose
 * text has other tokens than those drawn, exchanges that were dropped only make the common part shorter. */
#include "runtime/engine.h"
#include "runtime/history.h"

#include "base/clock.h"

#include <string.h>

struct minfer_conversation {
    minfer_engine *e;
    minfer_session *s;
    mf_history h;
    char *kwargs; /* NULL: none */
};

minfer_status minfer_conversation_create(minfer_engine *e, const char *kwargs, minfer_conversation **out,
                                         minfer_error *err)
{
    *out = NULL;
    MF_TRY(mf_chat_check(e->model, err));
    minfer_conversation *c = mf_calloc(1, sizeof *c);
    if (!c) return MF_NOMEM(err);
    c->e = e;
    minfer_status st = mf_history_init(&c->h, err);
    if (st == MINFER_OK) st = minfer_session_create(e, &c->s, err);
    if (st == MINFER_OK && kwargs) {
        c->kwargs = mf_strndup(kwargs, strlen(kwargs));
        if (!c->kwargs) st = MF_NOMEM(err);
    }
    if (st != MINFER_OK) {
        minfer_conversation_free(c);
        return st;
    }
    *out = c;
    return MINFER_OK;
}

void minfer_conversation_free(minfer_conversation *c)
{
    if (!c) return;
    mf_history_free(&c->h);
    minfer_session_free(c->s);
    mf_free(c->kwargs);
    mf_free(c);
}

/* ---- renderings ---- */

/* The tokens of what is to be seen when `dropped` exchanges are left out; ids are for minfer_free. */
static minfer_status render(const minfer_conversation *c, size_t dropped, bool answer, int32_t **ids,
                            size_t *n, minfer_error *err)
{
    char *messages = mf_history_visible(&c->h, dropped);
    if (!messages) return MF_NOMEM(err);
    minfer_chat chat = {.messages = messages, .kwargs = c->kwargs, .add_generation_prompt = answer};
    minfer_status st = minfer_chat_tokenize(c->e->model, &chat, ids, n, err);
    mf_free(messages);
    return st;
}

static size_t common(const minfer_session *s, const int32_t *ids, size_t n)
{
    size_t i = 0, held = minfer_session_length(s);
    const int32_t *tokens = minfer_session_tokens(s);
    while (i < n && i < held && ids[i] == tokens[i]) i++;
    return i;
}

/* Leaves in the session what belongs to the history and no more. The session is only a cache: where the
 * history cannot be rendered, it is emptied. */
static void settle(minfer_conversation *c)
{
    int32_t *ids = NULL;
    size_t n = 0;
    minfer_error ignored;
    if (mf_history_exchanges(&c->h)) (void)render(c, c->h.dropped, false, &ids, &n, &ignored);
    (void)minfer_session_rollback(c->s, common(c->s, ids, n), &ignored);
    minfer_free(ids);
}

/* ---- a turn ---- */

enum {
    PART = 128 /* tokens of the prompt that are evaluated between two questions whether to go on: on a large
                  model a second rather than several */
};

typedef struct turn {
    minfer_conversation *c;
    minfer_sampler *sampler;
    const minfer_turn_options *o;
    minfer_turn_result *r;
    int32_t *ids; /* the prompt */
    size_t n;
    mf_buf answer; /* with the tag that the prompt has opened */
    size_t opened; /* bytes of that tag */
    bool cancelled, no_memory;
    minfer_error *err;
} turn;

static minfer_status render_prompt(turn *t, size_t dropped)
{
    minfer_free(t->ids);
    t->ids = NULL;
    t->c->h.dropped = dropped;
    return render(t->c, dropped, true, &t->ids, &t->n, t->err);
}

/* Tokens that should be free for the answer: what it may take, but not more than a quarter of the context. */
static size_t reserve(const turn *t)
{
    size_t most = (size_t)t->c->e->n_ctx / 4;
    int32_t asked = t->o->generate.max_tokens;
    size_t wanted = asked < 0 || (size_t)asked > most ? most : (size_t)asked;
    return wanted ? wanted : 1;
}

/* Drops the oldest exchanges until half of the context is free, so that this does not happen in every turn
 * from now on. The last exchange before the new message stays if there is room for it at all. */
static minfer_status drop(turn *t)
{
    size_t n_ctx = (size_t)t->c->e->n_ctx, old = mf_history_exchanges(&t->c->h) - 1;
    size_t lo = t->c->h.dropped, hi = old;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        MF_TRY(render_prompt(t, mid));
        if (t->n <= n_ctx / 2)
            hi = mid;
        else
            lo = mid + 1;
    }
    if (lo == old && lo > 0) {
        MF_TRY(render_prompt(t, lo - 1));
        if (t->n + reserve(t) <= n_ctx) return MINFER_OK;
    }
    return render_prompt(t, lo);
}

/* Renders the prompt so that it fits. */
static minfer_status fit(turn *t)
{
    size_t n_ctx = (size_t)t->c->e->n_ctx, before = t->c->h.dropped;
    MF_TRY(render_prompt(t, before));
    if (t->n + reserve(t) > n_ctx && before + 1 < mf_history_exchanges(&t->c->h)) MF_TRY(drop(t));
    t->r->prompt.n_dropped = t->c->h.dropped - before;
    if (t->n < n_ctx) return MINFER_OK;
    return mf_fail(t->err, MINFER_ERR_LIMIT,
                   "the message is too long: without any earlier one the prompt has %zu tokens, and the "
                   "context holds %zu, of which one must stay free for the answer",
                   t->n, n_ctx);
}

static bool go_on(const turn *t)
{
    return !t->o->on_prompt || t->o->on_prompt(t->o->generate.user, &t->r->prompt);
}

/* Evaluates the prompt but for its last token. */
static minfer_status feed(turn *t)
{
    minfer_turn_prompt *p = &t->r->prompt;
    p->n_tokens = t->n;
    p->n_reused = common(t->c->s, t->ids, t->n - 1);
    p->thinking = t->opened > 0;
    MF_TRY(minfer_session_rollback(t->c->s, p->n_reused, t->err));
    t->cancelled = !go_on(t);
    while (!t->cancelled && p->n_reused + p->n_fed + 1 < t->n) {
        size_t at = p->n_reused + p->n_fed, left = t->n - 1 - at, n = left < PART ? left : PART;
        MF_TRY(minfer_session_feed(t->c->s, t->ids + at, n, NULL, 0, t->err));
        p->n_fed += n;
        t->cancelled = !go_on(t);
    }
    return MINFER_OK;
}

static bool take_text(void *user, int32_t id, const char *text, size_t n)
{
    turn *t = user;
    const minfer_generate_options *o = &t->o->generate;
    if (!mf_buf_append(&t->answer, text, n)) t->no_memory = true;
    bool wanted = !o->on_text || o->on_text(o->user, id, text, n);
    return wanted && !t->no_memory;
}

static minfer_status generate(turn *t)
{
    minfer_generate_options g = t->o->generate;
    minfer_generate_result *r = &t->r->generate;
    int64_t start = mf_clock_ns();
    MF_TRY(feed(t));
    if (t->cancelled) {
        r->finish = MINFER_FINISH_CANCELLED;
        return MINFER_OK;
    }
    int64_t fed_ns = mf_clock_ns() - start;
    g.on_text = take_text;
    g.user = t;
    MF_TRY(minfer_generate(t->c->s, t->sampler, t->ids + t->n - 1, 1, &g, r, t->err));
    r->n_prompt += t->r->prompt.n_fed;
    r->prompt_ns += fed_ns;
    r->first_ns += fed_ns;
    return t->no_memory ? MF_NOMEM(t->err) : MINFER_OK;
}

static minfer_status answer(turn *t)
{
    MF_TRY(fit(t));
    MF_TRY(mf_prompt_thinking(t->c->e->model, t->ids, t->n, &t->answer, t->err));
    t->opened = t->answer.len;
    MF_TRY(generate(t));
    t->r->taken_back = t->r->generate.finish == MINFER_FINISH_CANCELLED && t->answer.len == t->opened;
    if (t->r->taken_back) return MINFER_OK;
    return mf_history_add(&t->c->h, "assistant", t->answer.data ? t->answer.data : "", t->answer.len, t->err);
}

/* Answers the last message. before: the history to go back to when no answer comes; taken over. */
static minfer_status run(turn *t, mf_history *before)
{
    minfer_status st = answer(t);
    if (st != MINFER_OK || t->r->taken_back) {
        mf_history new = t->c->h;
        t->c->h = *before;
        *before = new;
    }
    settle(t->c);
    mf_history_free(before);
    mf_buf_free(&t->answer);
    minfer_free(t->ids);
    return st;
}

minfer_status minfer_conversation_send(minfer_conversation *c, minfer_sampler *sampler, const char *text,
                                       size_t n, const minfer_turn_options *o, minfer_turn_result *result,
                                       minfer_error *err)
{
    mf_history before;
    turn t = {.c = c, .sampler = sampler, .o = o, .r = result, .err = err};
    *result = (minfer_turn_result){0};
    MF_TRY(mf_history_copy(&c->h, &before, err));
    minfer_status st = mf_history_add(&c->h, "user", text, n, err);
    if (st == MINFER_OK) return run(&t, &before);
    mf_history_free(&before);
    return st;
}

minfer_status minfer_conversation_regenerate(minfer_conversation *c, minfer_sampler *sampler,
                                             const minfer_turn_options *o, minfer_turn_result *result,
                                             minfer_error *err)
{
    mf_history before;
    turn t = {.c = c, .sampler = sampler, .o = o, .r = result, .err = err};
    size_t n = mf_history_exchanges(&c->h);
    *result = (minfer_turn_result){0};
    if (n == 0) return mf_fail(err, MINFER_ERR_ARG, "there is no message to answer");
    MF_TRY(mf_history_copy(&c->h, &before, err));
    mf_history_truncate(&c->h, mf_history_start(&c->h, n - 1) + 1);
    return run(&t, &before);
}

/* ---- the history ---- */

minfer_status minfer_conversation_undo(minfer_conversation *c, minfer_error *err)
{
    size_t n = mf_history_exchanges(&c->h);
    if (n == 0) return mf_fail(err, MINFER_ERR_ARG, "there is no exchange to forget");
    mf_history_truncate(&c->h, mf_history_start(&c->h, n - 1));
    settle(c);
    return MINFER_OK;
}

void minfer_conversation_clear(minfer_conversation *c)
{
    mf_history_truncate(&c->h, mf_history_start(&c->h, 0));
    settle(c);
}

minfer_status minfer_conversation_set_system(minfer_conversation *c, const char *text, size_t n,
                                             minfer_error *err)
{
    MF_TRY(mf_history_set_system(&c->h, text, n, err));
    settle(c);
    return MINFER_OK;
}

minfer_status minfer_conversation_get_system(const minfer_conversation *c, char **text, size_t *n,
                                             minfer_error *err)
{
    const json_t *content = json_object_get(mf_history_system(&c->h), "content");
    *text = NULL;
    *n = json_string_length(content);
    if (!content) return MINFER_OK;
    *text = mf_strndup(json_string_value(content), *n);
    return *text ? MINFER_OK : MF_NOMEM(err);
}

size_t minfer_conversation_exchanges(const minfer_conversation *c)
{
    return mf_history_exchanges(&c->h);
}

minfer_status minfer_conversation_get_json(const minfer_conversation *c, char **json, size_t *n,
                                           minfer_error *err)
{
    mf_buf b = {0};
    *json = NULL;
    *n = 0;
    minfer_status st = mf_history_write(&c->h, &b, err);
    if (st != MINFER_OK) {
        mf_buf_free(&b);
        return st;
    }
    *json = b.data;
    *n = b.len;
    return MINFER_OK;
}

minfer_status minfer_conversation_set_json(minfer_conversation *c, const char *json, size_t n,
                                           minfer_error *err)
{
    MF_TRY(mf_history_read(&c->h, json, n, err));
    settle(c);
    return MINFER_OK;
}

minfer_status minfer_conversation_check_json(const char *json, size_t n, minfer_error *err)
{
    mf_history h;
    MF_TRY(mf_history_init(&h, err));
    minfer_status st = mf_history_read(&h, json, n, err);
    mf_history_free(&h);
    return st;
}

/* ---- keys and values in a file ---- */

minfer_status minfer_conversation_save_cache(const minfer_conversation *c, const char *path,
                                             minfer_error *err)
{
    return minfer_session_save(c->s, path, "{}", 2, err);
}

minfer_status minfer_conversation_restore_cache(minfer_conversation *c, const char *path, size_t *n_used,
                                                minfer_error *err)
{
    minfer_session *s;
    int32_t *ids = NULL;
    size_t n = 0;
    *n_used = 0;
    MF_TRY(minfer_session_restore(c->e, path, &s, NULL, NULL, err));
    minfer_status st = MINFER_OK;
    if (mf_history_exchanges(&c->h)) st = render(c, c->h.dropped, false, &ids, &n, err);
    if (st == MINFER_OK) {
        *n_used = common(s, ids, n);
        st = *n_used ? minfer_session_rollback(s, *n_used, err)
                     : mf_fail(err, MINFER_ERR_ARG, "%s: is of another conversation", path);
    }
    minfer_session *unused = st == MINFER_OK ? c->s : s;
    if (st == MINFER_OK) c->s = s;
    minfer_session_free(unused);
    minfer_free(ids);
    return st;
}

const minfer_session *minfer_conversation_session(const minfer_conversation *c)
{
    return c->s;
}
