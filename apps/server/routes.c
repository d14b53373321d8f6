/* Paths, and those of their handlers that need no worker. */
#include "server/exchange.h"

#include "server/page.h"

#include <string.h>

const char *srv_state_name(srv_state s)
{
    static const char *const names[] = {"loading", "ok", "draining", "draining"};
    return names[s];
}

static enum MHD_Result send_buf(srv_exchange *x, unsigned status, const char *type, bool ok, mf_buf *b)
{
    srv_error e = {0};
    if (ok) return srv_send(x, status, type, b);
    mf_buf_free(b);
    srv_refuse(&e, 500, NULL, NULL, "out of memory");
    return srv_send_error(x, &e);
}

static enum MHD_Result health(srv_exchange *x)
{
    mf_buf b = {0};
    srv_state state = atomic_load(&x->h->s->state);
    bool ok = mf_buf_printf(&b, "{\"status\":\"%s\"}\n", srv_state_name(state));
    return send_buf(x, state == SRV_READY ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, NULL, ok, &b);
}

static enum MHD_Result metrics(srv_exchange *x)
{
    mf_buf b = {0};
    srv_server *s = x->h->s;
    srv_state state = atomic_load(&s->state);
    srv_gauges g = {.n_slots = s->n_slots,
                    .n_queued = state == SRV_LOADING ? 0 : srv_worker_queued(s->worker),
                    .n_connections = srv_conns_count(&x->h->conns),
                    .state = srv_state_name(state)};
    return send_buf(x, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                    srv_stats_body(&s->stats, &g, &b), &b);
}

static enum MHD_Result models(srv_exchange *x)
{
    mf_buf b = {0};
    srv_server *s = x->h->s;
    return send_buf(x, MHD_HTTP_OK, NULL, srv_models_body(&s->name, 1, s->loaded_at, &b), &b);
}

static enum MHD_Result model(srv_exchange *x)
{
    mf_buf b = {0};
    srv_server *s = x->h->s;
    return send_buf(x, MHD_HTTP_OK, NULL, srv_model_body(s->name, s->loaded_at, &b), &b);
}

static bool tokenize(srv_exchange *x, const srv_request *r, mf_buf *b, srv_error *e)
{
    minfer_error err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    unsigned flags = (r->add_special ? MINFER_TOKENIZE_BOS : 0u) |
                     (r->parse_special ? MINFER_TOKENIZE_SPECIAL : 0u);
    const srv_prompt *p = &r->prompts[0];
    minfer_status st = minfer_tokenize(x->h->s->model, p->text, p->n_text, flags, &ids, &n, &err);
    bool ok = st == MINFER_OK ? srv_tokens_body(r, x->h->s->model, ids, n, b) ||
                                    srv_refuse(e, 500, NULL, NULL, "out of memory")
                              : srv_refuse_status(e, "content", st, &err);
    minfer_free(ids);
    return ok;
}

static bool detokenize(srv_exchange *x, const srv_request *r, mf_buf *b, srv_error *e)
{
    minfer_error err = {0};
    mf_buf text = {0};
    minfer_status st = MINFER_OK;
    bool ok = true;
    for (size_t i = 0; i < r->n_ids && ok; i++) {
        char *bytes = NULL;
        size_t n = 0;
        st = minfer_token_bytes(x->h->s->model, r->ids[i], r->special, &bytes, &n, &err);
        ok = st == MINFER_OK && mf_buf_append(&text, bytes, n);
        minfer_free(bytes);
    }
    if (st != MINFER_OK)
        ok = srv_refuse_status(e, "tokens", st, &err);
    else if (!ok || !srv_text_body(text.data ? text.data : "", text.len, b))
        ok = srv_refuse(e, 500, NULL, NULL, "out of memory");
    mf_buf_free(&text);
    return ok;
}

/* Requests that are answered at once. */
static enum MHD_Result answer_at_once(srv_exchange *x)
{
    srv_error e = {0};
    srv_request r = {0};
    mf_buf b = {0};
    const char *body = x->body.data ? x->body.data : "";
    bool ok = srv_request_parse(x->route->endpoint, body, x->body.len, &x->h->s->context, &r, &e);
    if (ok) ok = x->route->endpoint == SRV_TOKENIZE ? tokenize(x, &r, &b, &e) : detokenize(x, &r, &b, &e);
    srv_request_free(&r);
    if (ok) return srv_send(x, MHD_HTTP_OK, NULL, &b);
    mf_buf_free(&b);
    return srv_send_error(x, &e);
}

static enum MHD_Result page(srv_exchange *x)
{
    const srv_page_file *f = srv_page_files;
    while (strcmp(f->path, x->route->path) != 0) f++;
    struct MHD_Response *r = MHD_create_response_from_buffer(f->n, (void *)(uintptr_t)f->data,
                                                             MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    srv_add_headers(x, r, f->type);
    MHD_add_response_header(r, "Content-Security-Policy",
                            "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'");
    MHD_add_response_header(r, "Cache-Control", "no-cache");
    atomic_fetch_add(&x->h->s->stats.replies[2], 1);
    enum MHD_Result ok = MHD_queue_response(x->c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return ok;
}

const srv_route srv_routes[] = {
    {.path = "/v1/chat/completions", .method = "POST", .handle = srv_answer_begin, .endpoint = SRV_CHAT},
    {.path = "/v1/completions", .method = "POST", .handle = srv_answer_begin, .endpoint = SRV_COMPLETIONS},
    {.path = "/v1/embeddings", .method = "POST", .handle = srv_answer_begin, .endpoint = SRV_EMBEDDINGS},
    {.path = "/v1/models", .method = "GET", .handle = models},
    {.path = "/v1/models/", .method = "GET", .of_model = true, .handle = model},
    {.path = "/health", .method = "GET", .open = true, .early = true, .handle = health},
    {.path = "/metrics", .method = "GET", .early = true, .handle = metrics},
    {.path = "/tokenize", .method = "POST", .handle = answer_at_once, .endpoint = SRV_TOKENIZE},
    {.path = "/detokenize", .method = "POST", .handle = answer_at_once, .endpoint = SRV_DETOKENIZE},
    {.path = "/", .method = "GET", .open = true, .early = true, .handle = page},
    {.path = "/page.css", .method = "GET", .open = true, .early = true, .handle = page},
    {.path = "/page.js", .method = "GET", .open = true, .early = true, .handle = page},
};
const size_t srv_n_routes = sizeof srv_routes / sizeof *srv_routes;
