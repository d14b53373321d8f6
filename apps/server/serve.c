/* `minfer serve`: from options to a running server, and its end.
 *
 * The socket listens before the model is loaded. SIGTERM and SIGINT belong to a thread of their own: the
 * first lets running answers end, a second one ends the program at once. */
#include "server/serve.h"

#include "server/access.h"
#include "server/http.h"

#include "base/clock.h"
#include "base/filemap.h"
#include "common/model.h"
#include "common/term.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 512, CHUNK_BUSY = 128, MAX_PEM = 1 << 20, FLUSH_MS = 2000 };

static minfer_status check(const app_options *o, minfer_error *err)
{
    const char *cert = o->server.tls_cert, *key = o->server.tls_key;
    if (!cert != !key)
        return mf_fail(err, MINFER_ERR_ARG, "%s needs %s, too", cert ? "--tls-cert" : "--tls-key",
                       cert ? "--tls-key" : "--tls-cert");
    return app_engine_check(o, err);
}

/* Everything a run holds. */
typedef struct run_state {
    const app_options *o;
    srv_options options;
    srv_server server;
    srv_http http;
    bool listens;
    minfer_model *model;
    minfer_engine *engine;
    char *path, *name, *key_text; /* the last: what the file of keys holds */
    app_texts keys;
    const char *names[2]; /* what requests may call the model: its name, and what it was started with */
    sigset_t signals;
    atomic_bool ready, stop;
    minfer_error *err;
} run_state;

/* ---- signals ---- */

/* While the model loads there is nothing to wait for. */
static void *wait_for_signals(void *arg)
{
    run_state *r = arg;
    for (int sig; sigwait(&r->signals, &sig) == 0;) {
        if (!atomic_load(&r->ready) || atomic_exchange(&r->stop, true)) _exit(APP_EXIT_OK);
        app_note("ending: running answers have %d ms; a second signal ends at once", r->o->server.drain_ms);
    }
    return NULL;
}

static minfer_status take_signals(run_state *r)
{
    pthread_t thread;
    sigemptyset(&r->signals);
    sigaddset(&r->signals, SIGTERM);
    sigaddset(&r->signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &r->signals, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, r) != 0)
        return mf_fail(r->err, MINFER_ERR_NOMEM, "the thread for signals could not be made");
    pthread_detach(thread);
    return MINFER_OK;
}

/* ---- the beginning ---- */

static minfer_status read_pem(const char *path, char **out, minfer_error *err)
{
    size_t n;
    return path ? mf_file_read(path, MAX_PEM, out, &n, err) : MINFER_OK;
}

static minfer_status add_key(run_state *r, const char *key)
{
    app_texts *k = &r->keys;
    if (!mf_grow((void **)&k->v, &k->cap, k->n + 1, sizeof *k->v)) return MF_NOMEM(r->err);
    k->v[k->n++] = key;
    return MINFER_OK;
}

/* Keys of the command line, then those of the file, whose text is cut into lines. */
static minfer_status read_keys(run_state *r)
{
    const app_options *o = r->o;
    size_t n;
    char *at = NULL;
    for (size_t i = 0; i < o->server.keys.n; i++) MF_TRY(add_key(r, o->server.keys.v[i]));
    if (!o->server.key_file) return MINFER_OK;
    MF_TRY(mf_file_read(o->server.key_file, MAX_PEM, &r->key_text, &n, r->err));
    for (char *key = strtok_r(r->key_text, "\r\n", &at); key; key = strtok_r(NULL, "\r\n", &at))
        MF_TRY(add_key(r, key));
    if (r->keys.n > o->server.keys.n) return MINFER_OK;
    return mf_fail(r->err, MINFER_ERR_ARG, "--api-key-file %s: there is no key in it", o->server.key_file);
}

/* Each connection is a descriptor, and the system's usual limit is lower than ours. */
static void raise_limit(unsigned max_conns)
{
    struct rlimit r;
    rlim_t want = (rlim_t)max_conns + 64;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want) return;
    r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max >= want ? want : r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

static minfer_status listen_first(run_state *r)
{
    const app_options *o = r->o;
    srv_options *s = &r->options;
    uint16_t port;
    MF_TRY(read_keys(r));
    *s = (srv_options){.host = o->server.host,
                       .port = (uint16_t)o->server.port,
                       .keys = {r->keys.v, r->keys.n},
                       .origins = {o->server.origins.v, o->server.origins.n},
                       .max_body = (size_t)o->server.max_body_mib << 20,
                       .max_conns = (unsigned)o->server.max_connections,
                       .header_s = o->server.header_s,
                       .idle_s = o->server.idle_s,
                       .pulse_s = o->server.ping_s};
    MF_TRY(read_pem(o->server.tls_cert, &s->cert, r->err));
    MF_TRY(read_pem(o->server.tls_key, &s->key, r->err));
    raise_limit(s->max_conns);
    r->server.o = s;
    r->server.n_slots = (size_t)o->server.n_slots;
    MF_TRY(srv_http_start(&r->http, &r->server, &port, r->err));
    r->listens = true;
    bool v6 = strchr(s->host, ':') != NULL;
    app_note("listening at %s://%s%s%s:%u, loading %s", s->cert ? "https" : "http", v6 ? "[" : "", s->host,
             v6 ? "]" : "", port, r->path);
    if (!srv_is_loopback(s->host) && s->keys.n == 0)
        app_note("warning: others than this machine can reach %s, and no --api-key is asked for", s->host);
    return MINFER_OK;
}

/* "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M" of its path. */
static minfer_status name_model(run_state *r)
{
    const char *slash = strrchr(r->path, '/'), *name = slash ? slash + 1 : r->path;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0) n -= 5;
    r->name = r->o->server.alias ? mf_strndup(r->o->server.alias, strlen(r->o->server.alias))
                                 : mf_strndup(name, n);
    r->server.name = r->names[0] = r->name;
    r->names[1] = r->o->model;
    return r->name ? MINFER_OK : MF_NOMEM(r->err);
}

static minfer_status load(run_state *r)
{
    app_options o = *r->o;
    minfer_engine_info info;
    srv_server *s = &r->server;
    if (o.engine.n_batch > CHUNK + o.server.n_slots) o.engine.n_batch = CHUNK + o.server.n_slots;
    MF_TRY(app_model_load(r->path, &r->model, r->err));
    MF_TRY(app_engine_create(&o, r->model, 2, 2, &r->engine, r->err));
    minfer_engine_get_info(r->engine, &info);
    minfer_model_get_info(r->model, &s->info);
    s->model = r->model;
    s->n_ctx = info.n_ctx;
    s->loaded_at = (int64_t)time(NULL);
    s->context = (srv_context){.models = r->names,
                               .n_models = r->names[1] ? 2 : 1,
                               .n_vocab = s->info.n_vocab,
                               .n_embd = s->info.n_embd,
                               .sampling = o.sampling};
    return minfer_sampling_recommended(r->model, o.sampling_given, &s->context.sampling, r->err);
}

static minfer_status begin(run_state *r)
{
    const app_options *o = r->o;
    size_t n_batch = (size_t)o->engine.n_batch, chunk = n_batch < CHUNK ? n_batch : CHUNK;
    srv_worker_options w = {.n_slots = r->server.n_slots,
                            .max_queue = (size_t)o->server.max_queue,
                            .chunk = chunk,
                            .chunk_busy = chunk < CHUNK_BUSY ? chunk : CHUNK_BUSY,
                            .batch = o->server.batch,
                            .reuse = !o->server.no_reuse};
    MF_TRY(load(r));
    MF_TRY(srv_pooling_of(r->model, &w.pooling, r->err));
    MF_TRY(srv_worker_start(r->model, r->engine, &w, &r->server.stats, &r->server.worker, r->err));
    atomic_store(&r->server.state, SRV_READY);
    app_note("ready: %s, %d slots share %d tokens of context", r->name, o->server.n_slots, r->server.n_ctx);
    return MINFER_OK;
}

/* ---- the end ---- */

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void wait_until_idle(const run_state *r, int64_t ms)
{
    int64_t end = mf_clock_ns() + ms * 1000000;
    while (srv_http_busy(&r->http) > 0 && mf_clock_ns() < end) sleep_ms(10);
}

/* First load balancers hear it from /health and send nothing more; then new requests are told 503. */
static void drain(run_state *r)
{
    while (!atomic_load(&r->stop)) sleep_ms(20);
    atomic_store(&r->server.state, SRV_LEAVING);
    sleep_ms(1000L * r->o->server.grace_s);
    atomic_store(&r->server.state, SRV_DRAINING);
    srv_worker_drain(r->server.worker);
    wait_until_idle(r, r->o->server.drain_ms);
}

/* What a client will not read keeps its connection asleep or open; that must not keep the program. */
static void end(run_state *r)
{
    if (r->server.worker) srv_worker_stop(r->server.worker);
    if (r->listens) {
        wait_until_idle(r, FLUSH_MS);
        if (srv_http_busy(&r->http) > 0) _exit(APP_EXIT_OK);
        srv_http_stop(&r->http);
    }
    srv_worker_free(r->server.worker);
    minfer_engine_free(r->engine);
    minfer_model_free(r->model);
    mf_free(r->options.cert);
    mf_free(r->options.key);
    mf_free(r->name);
    mf_free(r->keys.v);
    mf_free(r->key_text);
    minfer_free(r->path);
}

static minfer_status serve(run_state *r)
{
    MF_TRY(app_model_path(r->o, &r->path, r->err));
    MF_TRY(name_model(r));
    MF_TRY(take_signals(r));
    MF_TRY(listen_first(r));
    MF_TRY(begin(r));
    atomic_store(&r->ready, true);
    drain(r);
    return MINFER_OK;
}

static minfer_status run(const app_options *o, minfer_error *err)
{
    static run_state state; /* the thread for signals may look at it until the program ends */
    run_state *r = &state;
    r->o = o;
    r->err = err;
    minfer_status st = serve(r);
    end(r);
    return st;
}

const app_program srv_serve = {check, run};
