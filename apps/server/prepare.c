/* Preparing jobs. */
#include "server/prepare.h"

#include <sys/random.h>

static bool too_long(const srv_server *s, const srv_request *r, size_t n, srv_error *e)
{
    size_t most = (size_t)s->n_ctx - (r->endpoint != SRV_EMBEDDINGS);
    return n > most && !srv_refuse_context(e, r->endpoint, n, (size_t)s->n_ctx);
}

static bool tokens_of_chat(const srv_server *s, srv_job *j, srv_error *e)
{
    minfer_error err = {0};
    srv_ids *ids = &j->prompts[0];
    minfer_status st = minfer_chat_tokenize(s->model, &j->request.chat, &ids->v, &ids->n, &err);
    if (st != MINFER_OK) return srv_refuse_status(e, "messages", st, &err);
    if (ids->n == 0) return srv_refuse(e, 400, NULL, "messages", "the chat template renders to nothing");
    return true;
}

static bool copy_ids(const srv_prompt *p, srv_ids *ids, minfer_error *err)
{
    ids->v = mf_calloc(p->n_ids + 1, sizeof *ids->v);
    for (size_t i = 0; ids->v && i < p->n_ids; i++) ids->v[i] = p->ids[i];
    ids->n = p->n_ids;
    return ids->v || MF_NOMEM(err) == MINFER_OK;
}

/* Special tokens are recognised in texts to be continued, as clients that render templates themselves expect.
 */
static bool tokens_of_prompt(const srv_server *s, srv_job *j, size_t i, srv_error *e)
{
    minfer_error err = {0};
    const srv_prompt *p = &j->request.prompts[i];
    srv_ids *ids = &j->prompts[i];
    bool embed = j->request.endpoint == SRV_EMBEDDINGS;
    const char *field = embed ? "input" : "prompt";
    unsigned flags = MINFER_TOKENIZE_BOS | (embed ? 0u : MINFER_TOKENIZE_SPECIAL);
    minfer_status st = MINFER_OK;
    if (!p->text && !copy_ids(p, ids, &err))
        st = MINFER_ERR_NOMEM;
    else if (p->text)
        st = minfer_tokenize(s->model, p->text, p->n_text, flags, &ids->v, &ids->n, &err);
    if (st != MINFER_OK) return srv_refuse_status(e, field, st, &err);
    int32_t bos = minfer_token_bos(s->model), eos = minfer_token_eos(s->model);
    if (ids->n > 0) return true;
    if (bos < 0) bos = eos;
    if (bos < 0 || embed) return srv_refuse(e, 400, NULL, field, "%s is empty", field);
    mf_free(ids->v);
    if (!copy_ids(&(srv_prompt){.ids = &bos, .n_ids = 1}, ids, &err))
        return srv_refuse_status(e, field, MINFER_ERR_NOMEM, &err);
    return true;
}

static bool make_prompts(const srv_server *s, srv_job *j, srv_error *e)
{
    for (size_t i = 0; i < j->n_prompts; i++) {
        bool ok = j->request.endpoint == SRV_CHAT ? tokens_of_chat(s, j, e) : tokens_of_prompt(s, j, i, e);
        if (!ok || too_long(s, &j->request, j->prompts[i].n, e)) return false;
    }
    return true;
}

/* What sampling refuses is refused before the job waits. */
static bool check_sampling(const srv_server *s, srv_job *j, srv_error *e)
{
    minfer_error err = {0};
    minfer_status st = minfer_sampling_check(&j->request.sampling, s->info.n_vocab, &err);
    return st == MINFER_OK || srv_refuse_status(e, NULL, st, &err);
}

static bool fill(const srv_server *s, srv_job *j, srv_thinking *thinking, srv_error *e)
{
    srv_request *r = &j->request;
    if (!make_prompts(s, j, e)) return false;
    if (r->endpoint == SRV_EMBEDDINGS) {
        j->vectors = mf_calloc(j->n_prompts, (size_t)s->info.n_embd * sizeof *j->vectors);
        return j->vectors || srv_refuse(e, 500, NULL, NULL, "out of memory");
    }
    if (r->endpoint == SRV_CHAT &&
        !srv_prompt_thinking(s->model, j->prompts[0].v, j->prompts[0].n, thinking, e))
        return false;
    if (!r->seed_given && getrandom(&r->sampling.seed, sizeof r->sampling.seed, 0) != sizeof r->sampling.seed)
        r->sampling.seed = (uint64_t)j->made_ns;
    if (!r->seed_given) r->sampling.seed >>= 11; /* 53 bits, which all readers of JSON keep */
    return check_sampling(s, j, e) && srv_request_grammar(r, *thinking, &j->grammar, e);
}

srv_job *srv_prepare(const srv_server *s, srv_request *r, srv_thinking *thinking, srv_error *e)
{
    size_t n_prompts = r->endpoint == SRV_CHAT ? 1 : r->n_prompts;
    size_t n_choices = r->endpoint == SRV_EMBEDDINGS ? n_prompts : srv_reply_choices(r);
    srv_job *j = srv_job_create(r, n_prompts, n_choices);
    *thinking = SRV_THINKING_NEVER;
    if (j && fill(s, j, thinking, e)) return j;
    if (!j) srv_refuse(e, 500, NULL, NULL, "out of memory");
    srv_job_unref(j);
    return NULL;
}
