/* The daemon, and every request's way to its handler. */
#include "server/http.h"

#include "server/access.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    THREADS = 4,
    MEMORY = 65536, /* bytes of a connection: bounds the headers of a request */
    BODY_TIMES = 6, /* a body may take so many times as long as headers */
    OVER_TIMES =
        4, /* so many times too large a body is read to be refused in words; beyond, the line is cut */
};

/* ---- sleeping and waking ---- */

void srv_exchange_wake(srv_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    x->woken = true;
    if (x->asleep) MHD_resume_connection(x->c);
    x->asleep = false;
    pthread_mutex_unlock(&x->lock);
}

bool srv_exchange_sleep(srv_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    bool sleep = !x->woken;
    x->woken = false;
    if (sleep) MHD_suspend_connection(x->c);
    x->asleep = sleep;
    pthread_mutex_unlock(&x->lock);
    return sleep;
}

/* ---- replies ---- */

void srv_add_headers(srv_exchange *x, struct MHD_Response *r, const char *type)
{
    const srv_texts *origins = &x->h->s->o->origins;
    const char *origin = MHD_lookup_connection_value(x->c, MHD_HEADER_KIND, "Origin");
    const char *allowed = srv_origin_allowed(origins, origin);
    if (type) MHD_add_response_header(r, "Content-Type", type);
    if (allowed) MHD_add_response_header(r, "Access-Control-Allow-Origin", allowed);
    if (origins->n && !(allowed && *allowed == '*')) MHD_add_response_header(r, "Vary", "Origin");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (atomic_load(&x->h->s->state) >= SRV_LEAVING) MHD_add_response_header(r, "Connection", "close");
}

static enum MHD_Result queue(srv_exchange *x, unsigned status, struct MHD_Response *r)
{
    if (!r) return MHD_NO;
    if (status < 600) atomic_fetch_add(&x->h->s->stats.replies[status / 100], 1);
    enum MHD_Result ok = MHD_queue_response(x->c, status, r);
    MHD_destroy_response(r);
    return ok;
}

enum MHD_Result srv_send(srv_exchange *x, unsigned status, const char *type, mf_buf *body)
{
    size_t n = body->len;
    void *data = body->data ? body->data : "";
    struct MHD_Response *r = body->data ? MHD_create_response_from_buffer_with_free_callback(n, data, mf_free)
                                        : MHD_create_response_from_buffer(0, data, MHD_RESPMEM_PERSISTENT);
    if (!r) mf_buf_free(body);
    *body = (mf_buf){0};
    if (r) srv_add_headers(x, r, type ? type : "application/json");
    return queue(x, status, r);
}

static struct MHD_Response *nomem_response(void)
{
    void *body = (void *)(uintptr_t)srv_nomem_body;
    return MHD_create_response_from_buffer(strlen(srv_nomem_body), body, MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result srv_send_error(srv_exchange *x, const srv_error *e)
{
    mf_buf b = {0};
    struct MHD_Response *r;
    bool ok = srv_error_body(e, &b);
    if (!ok) mf_buf_free(&b);
    r = ok ? MHD_create_response_from_buffer_with_free_callback(b.len, b.data, mf_free) : nomem_response();
    if (!r) mf_buf_free(&b);
    if (!r) return MHD_NO;
    srv_add_headers(x, r, "application/json");
    if (e->status == 429 || e->status == 503) MHD_add_response_header(r, "Retry-After", "1");
    if (e->status == 401) MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
    if (x->allow) MHD_add_response_header(r, "Allow", x->allow);
    return queue(x, ok ? (unsigned)e->status : MHD_HTTP_INTERNAL_SERVER_ERROR, r);
}

/* ---- what is refused from the headers alone ---- */

static bool is_get(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static const srv_route *find_route(const char *url, const char *method, const srv_route **same_path)
{
    *same_path = NULL;
    for (size_t i = 0; i < srv_n_routes; i++) {
        const srv_route *r = &srv_routes[i];
        if (r->of_model ? strncmp(url, r->path, strlen(r->path)) != 0 : strcmp(url, r->path) != 0) continue;
        *same_path = r;
        if (strcmp(r->method, is_get(method) ? "GET" : method) == 0) return r;
    }
    return NULL;
}

static bool refuse_method(srv_exchange *x, const srv_route *there, const char *url, const char *method)
{
    x->allow = strcmp(there->method, "GET") == 0 ? "GET, HEAD" : there->method;
    return srv_refuse(&x->error, 405, "method_not_allowed", NULL, "%.16s is not a method of %s, but %s is",
                      method, url, there->method);
}

static const char *header(const srv_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->c, MHD_HEADER_KIND, name);
}

static bool check_state(srv_exchange *x)
{
    srv_state state = atomic_load(&x->h->s->state);
    if (x->route->early || state == SRV_READY || state == SRV_LEAVING) return true;
    return srv_refuse(&x->error, 503, state == SRV_LOADING ? "loading" : "draining", NULL, "%s",
                      state == SRV_LOADING ? "the model is being loaded" : "the server is about to end");
}

static bool check_name(srv_exchange *x, const char *url)
{
    return !x->route->of_model || srv_model_fits(&x->h->s->context, url + strlen(x->route->path), &x->error);
}

static bool check_body(srv_exchange *x)
{
    const char *length = header(x, "Content-Length"), *type = header(x, "Content-Type");
    size_t most = x->h->s->o->max_body;
    if (strcmp(x->route->method, "POST") != 0) return true;
    if (!srv_type_fits(type))
        return srv_refuse(&x->error, 415, NULL, NULL, "the body is %.80s; application/json is read", type);
    if (length && strtoull(length, NULL, 10) > most)
        return srv_refuse(&x->error, 413, NULL, NULL, "the body has %.20s bytes; %zu are the most", length,
                          most);
    return true;
}

static bool check_headers(srv_exchange *x, const char *url, const char *method)
{
    const srv_route *there;
    x->route = find_route(url, method, &there);
    if (!x->route && there) return refuse_method(x, there, url, method);
    if (!x->route) return srv_refuse(&x->error, 404, NULL, NULL, "there is nothing at %.200s", url);
    if (!x->route->open &&
        !srv_key_fits(&x->h->s->o->keys, header(x, "Authorization"), header(x, "X-Api-Key")))
        return srv_refuse(&x->error, 401, "invalid_api_key", NULL,
                          "an API key is needed: Authorization: Bearer KEY");
    return check_state(x) && check_name(x, url) && check_body(x);
}

/* What a browser asks before it lets a page of another origin send anything. */
static enum MHD_Result send_preflight(srv_exchange *x)
{
    const char *wanted = header(x, "Access-Control-Request-Headers");
    struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "",
                                                             MHD_RESPMEM_PERSISTENT);
    if (!r) return MHD_NO;
    srv_add_headers(x, r, NULL);
    MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(r, "Access-Control-Allow-Headers",
                            wanted ? wanted : "Authorization, Content-Type");
    MHD_add_response_header(r, "Access-Control-Max-Age", "86400");
    return queue(x, MHD_HTTP_NO_CONTENT, r);
}

/* ---- one request ---- */

static srv_conn *conn_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

/* A reply before the body is read costs the connection, and clients that are still sending may not see it: so
 * a body is passed over first, unless it is huge or its client waits for a word. */
static bool reply_at_once(const srv_exchange *x)
{
    const char *length = header(x, "Content-Length");
    if (header(x, "Expect")) return true;
    return length && strtoull(length, NULL, 10) / OVER_TIMES > x->h->s->o->max_body;
}

/* There is not even an exchange. */
static enum MHD_Result send_nomem(srv_http *h, struct MHD_Connection *c)
{
    struct MHD_Response *r = nomem_response();
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", "application/json");
    atomic_fetch_add(&h->s->stats.replies[5], 1);
    enum MHD_Result ok = MHD_queue_response(c, MHD_HTTP_INTERNAL_SERVER_ERROR, r);
    MHD_destroy_response(r);
    return ok;
}

static enum MHD_Result begin(srv_http *h, struct MHD_Connection *c, const char *url, const char *method,
                             void **state)
{
    srv_conn *conn = conn_of(c);
    srv_exchange *x = conn ? mf_calloc(1, sizeof *x) : NULL; /* nobody would watch a connection without */
    if (!x) return send_nomem(h, c);
    *state = x;
    x->h = h;
    x->c = c;
    x->conn = conn;
    x->body.limit = h->s->o->max_body + 1;
    pthread_mutex_init(&x->lock, NULL);
    atomic_fetch_add(&h->n_exchanges, 1);
    srv_conns_deadline(&h->conns, x->conn, h->s->o->header_s * BODY_TIMES);
    x->preflight = strcmp(method, "OPTIONS") == 0 && h->s->o->origins.n;
    x->refused = !x->preflight && !check_headers(x, url, method);
    return x->refused && reply_at_once(x) ? srv_send_error(x, &x->error) : MHD_YES;
}

static enum MHD_Result take_body(srv_exchange *x, const char *data, size_t *n)
{
    size_t most = x->h->s->o->max_body;
    x->n_seen += *n;
    if (x->n_seen > most && !x->refused) {
        x->refused = true;
        srv_refuse(&x->error, 413, NULL, NULL, "the body has more than %zu bytes", most);
    }
    if (x->n_seen > most * OVER_TIMES) return MHD_NO;
    if (!x->refused && !mf_buf_append(&x->body, data, *n)) {
        x->refused = true;
        srv_refuse(&x->error, 500, NULL, NULL, "out of memory");
    }
    *n = 0;
    return MHD_YES;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *c, const char *url, const char *method,
                              const char *version, const char *data, size_t *n, void **state)
{
    srv_exchange *x = *state;
    (void)version;
    if (!x) return begin(user, c, url, method, state);
    if (*n) return take_body(x, data, n);
    srv_conns_deadline(&x->h->conns, x->conn, 0);
    if (x->preflight) return send_preflight(x);
    if (x->refused) return srv_send_error(x, &x->error);
    return x->job ? srv_answer_go_on(x) : x->route->handle(x);
}

static void completed(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why)
{
    srv_http *h = user;
    srv_exchange *x = *state;
    (void)c;
    if (!x) return;
    if (x->job && why != MHD_REQUEST_TERMINATED_COMPLETED_OK && why != MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN)
        atomic_fetch_add(&h->s->stats.left, 1);
    srv_answer_free(x);
    srv_conns_deadline(&h->conns, x->conn, h->s->o->idle_s);
    mf_buf_free(&x->body);
    mf_buf_free(&x->out);
    pthread_mutex_destroy(&x->lock);
    mf_free(x);
    *state = NULL;
    atomic_fetch_sub(&h->n_exchanges, 1);
}

static void connection(void *user, struct MHD_Connection *c, void **context,
                       enum MHD_ConnectionNotificationCode what)
{
    srv_http *h = user;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = srv_conns_add(&h->conns, i ? i->connect_fd : -1, h->s->o->header_s);
    } else {
        srv_conns_remove(&h->conns, *context);
        *context = NULL;
    }
}

/* ---- the daemon ---- */

static void ignore_log(void *user, const char *format, va_list ap)
{
    (void)user, (void)format, (void)ap; /* what clients do wrong is no news */
}

/* A path ends where a string ends: with a NUL byte in it, it would be taken for a shorter one. */
static size_t unescape(void *user, struct MHD_Connection *c, char *s)
{
    (void)user, (void)c;
    return strstr(s, "%00") ? strlen(s) : MHD_http_unescape(s);
}

static minfer_status resolve(const srv_options *o, struct addrinfo **out, minfer_error *err)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    snprintf(port, sizeof port, "%u", o->port);
    int bad = getaddrinfo(*o->host ? o->host : NULL, port, &hints, out);
    if (bad == 0) return MINFER_OK;
    return mf_fail(err, MINFER_ERR_ARG, "--host %.100s: %s", o->host, gai_strerror(bad));
}

static struct MHD_Daemon *start(srv_http *h, const struct addrinfo *at)
{
    const srv_options *o = h->s->o;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (at->ai_family == AF_INET6) flags |= MHD_USE_DUAL_STACK;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, o->cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, o->key},
                                   {MHD_OPTION_END, 0, NULL}};
    if (o->cert)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    return MHD_start_daemon(
        flags, o->port, NULL, NULL, handle, h, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
        MHD_OPTION_SOCK_ADDR, at->ai_addr, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS,
        MHD_OPTION_CONNECTION_LIMIT, o->max_conns, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)o->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_NOTIFY_COMPLETED, completed, h,
        MHD_OPTION_NOTIFY_CONNECTION, connection, h, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

minfer_status srv_http_start(srv_http *h, srv_server *s, uint16_t *port, minfer_error *err)
{
    struct addrinfo *at = NULL;
    *h = (srv_http){.s = s};
    MF_TRY(resolve(s->o, &at, err));
    minfer_status st = srv_conns_start(&h->conns, err);
    if (st == MINFER_OK) h->daemon = start(h, at);
    freeaddrinfo(at);
    if (st != MINFER_OK) return st;
    if (!h->daemon) {
        srv_conns_stop(&h->conns);
        return mf_fail(err, MINFER_ERR_IO, "cannot listen at %.100s, port %u%s", s->o->host, s->o->port,
                       s->o->cert ? " (or the certificate and its key do not fit)" : "");
    }
    const union MHD_DaemonInfo *i = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
    *port = i && i->port ? i->port : s->o->port;
    return MINFER_OK;
}

int srv_http_busy(const srv_http *h)
{
    return atomic_load(&h->n_exchanges);
}

void srv_http_stop(srv_http *h)
{
    MHD_stop_daemon(h->daemon);
    srv_conns_stop(&h->conns);
}
