/* The whole server in this process, its transport included, and memory that runs out in it: at each
 * allocation that a request makes, alone or with all after it. Each time the client is told 500, or gets what
 * it asked for, and the next request is answered as ever. Allocations of libmicrohttpd are not among those
 * that fail. */
#include "support/sanitized.h"
#include "support/support.h"

#include "server/http.h"

#include "base/json.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOTS = 2,
    MAX_REPLY = 1 << 20,
    STEP = SANITIZED ? 16 : 1 /* from one allocation that fails to the next */
};

static const char *const names[] = {"tiny"};
static srv_options options;
static srv_server server;
static srv_http http;
static minfer_model *model;
static minfer_engine *engine;
static uint16_t port;

static int open_server(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_engine_options eo;
    minfer_engine_options_init(&eo);
    eo.n_ctx = 1024;
    eo.n_threads = 1;
    assert_ok(minfer_model_open(data_path("tiny/tiny-qwen2-Q4_K.gguf"), NULL, NULL, &model, &err), &err);
    assert_ok(minfer_engine_create(model, &eo, &engine, &err), &err);
    options = (srv_options){.host = "127.0.0.1",
                            .max_body = 1 << 20,
                            .max_conns = 16,
                            .header_s = 60,
                            .idle_s = 60,
                            .pulse_s = 60};
    server = (srv_server){
        .o = &options, .model = model, .name = names[0], .n_ctx = eo.n_ctx, .n_slots = SLOTS};
    minfer_model_get_info(model, &server.info);
    server.context = (srv_context){
        .models = names, .n_models = 1, .n_vocab = server.info.n_vocab, .n_embd = server.info.n_embd};
    minfer_sampling_init(&server.context.sampling);
    srv_worker_options wo = {
        .n_slots = SLOTS, .max_queue = 1, .chunk = 64, .chunk_busy = 32, .batch = true, .reuse = true};
    assert_ok(srv_worker_start(model, engine, &wo, &server.stats, &server.worker, &err), &err);
    server.state = SRV_READY;
    json_set_alloc_funcs(mf_malloc, mf_free);
    assert_ok(srv_http_start(&http, &server, &port, &err), &err);
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    json_set_alloc_funcs(malloc, free);
    srv_worker_stop(server.worker);
    srv_http_stop(&http);
    srv_worker_free(server.worker);
    minfer_engine_free(engine);
    minfer_model_free(model);
    return 0;
}

/* ---- a client, which allocates nothing */

static char reply[MAX_REPLY]; /* terminated; its body from `body` on */
static char *body;

/* Until nothing of the request is left in the server. */
static void wait_idle(void)
{
    while (srv_http_busy(&http) || srv_conns_count(&http.conns) || atomic_load(&server.stats.busy) ||
           srv_worker_queued(server.worker))
        usleep(100);
}

/* Returns the status; 0: the connection was closed without a word. */
static int ask(const char *path, const char *asked)
{
    static char request[8192];
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int n = snprintf(request, sizeof request,
                     "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                     asked ? "POST" : "GET", path, asked ? strlen(asked) : 0, asked ? asked : "");
    int s = socket(AF_INET, SOCK_STREAM, 0);
    size_t len = 0;
    int status = 0;
    assert_true(s >= 0 && connect(s, (struct sockaddr *)&at, sizeof at) == 0);
    assert_int_equal(send(s, request, (size_t)n, MSG_NOSIGNAL), n);
    for (ssize_t k; (k = recv(s, reply + len, sizeof reply - 1 - len, 0)) > 0;) len += (size_t)k;
    close(s);
    reply[len] = 0;
    wait_idle();
    body = strstr(reply, "\r\n\r\n");
    body = body ? body + 4 : reply + len;
    if (len) assert_int_equal(sscanf(reply, "HTTP/1.1 %d ", &status), 1);
    return status;
}

/* What differs from one reply to the next: ids, times, and how much of the prompt was known. */
static void blank(void)
{
    static const char *const before[] = {"chatcmpl-", "cmpl-", "\"call_",
                                         "\"created\":", "\"cached_tokens\":"};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        for (char *p = body; (p = strstr(p, before[i]));) {
            char *from = p += strlen(before[i]);
            while ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')) p++;
            if (p > from) *from++ = '0';
            memmove(from, p, strlen(p) + 1);
            p = from;
        }
}

/* Chunks of a stream's body become the text they carry. */
static void join_chunks(void)
{
    char *to = body, *from = body;
    if (!strstr(reply, "Transfer-Encoding: chunked")) return;
    for (size_t n; (n = strtoul(from, &from, 16)) > 0; from += n + 2) {
        from += 2;
        memmove(to, from, n);
        to += n;
    }
    *to = 0;
}

/* ---- what a failure looks like */

static json_t *read_json(const char *text, size_t n)
{
    mf_json_error e;
    json_t *j = mf_json_read(text, n, MF_JSON_UNIQUE, &e);
    if (!j) print_error("%.*s\n", (int)n, text);
    assert_non_null(j);
    return j;
}

static bool is_error(const char *text, size_t n)
{
    json_t *j = read_json(text, n), *e = json_object_get(j, "error");
    const char *type = json_string_value(json_object_get(e, "type"));
    const char *words = json_string_value(json_object_get(e, "message"));
    bool yes = type && strcmp(type, "server_error") == 0 && words && strstr(words, "out of memory");
    if (e && !yes) print_error("%.*s\n", (int)n, text);
    json_decref(j);
    return yes;
}

/* Frames of JSON, an error, and [DONE]. */
static bool is_failed_stream(void)
{
    bool failed = false, done = false;
    for (char *p = body, *end; (end = strstr(p, "\n\n")); p = end + 2) {
        assert_false(done);
        assert_memory_equal(p, "data: ", 6);
        done = strncmp(p, "data: [DONE]", 12) == 0;
        if (done) continue;
        assert_false(failed);
        failed = is_error(p + 6, (size_t)(end - p - 6));
    }
    return failed && done;
}

static void check_failure(int status, bool stream)
{
    if (stream && status == 200) {
        assert_true(is_failed_stream());
        return;
    }
    assert_int_equal(status, 500);
    assert_true(is_error(body, strlen(body)));
}

/* ---- the requests */

#define CHAT \
    "\"messages\":[{\"role\":\"user\",\"content\":\"he is on <|im_end|> it\"}],\"seed\":3,\"temperature\":1"
#define TOOLS                                                                                                \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":\"object\","  \
    "\"properties\":{\"a\":{\"enum\":[1,2.5,\"x\"]}},\"required\":[\"a\"],\"additionalProperties\":false}}}" \
    "],"                                                                                                     \
    "\"tool_choice\":\"required\""

static const struct asked {
    const char *path, *body;
} all[] = {
    {"/v1/chat/completions",
     "{" CHAT ",\"max_tokens\":4,\"n\":2,\"logprobs\":true,\"top_logprobs\":2,\"stop\":[\"xyz\"]}"},
    {"/v1/chat/completions",
     "{" CHAT
     ",\"max_tokens\":4,\"logprobs\":true,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"},
    {"/v1/chat/completions", "{" CHAT "," TOOLS ",\"max_tokens\":60}"},
    {"/v1/chat/completions", "{" CHAT "," TOOLS ",\"max_tokens\":60,\"stream\":true}"},
    {"/v1/chat/completions",
     "{" CHAT ",\"max_tokens\":8,\"grammar\":\"root ::= (\\\"[\\\" [a-c]* \\\"]\\\")+\"}"},
    {"/v1/chat/completions",
     "{" CHAT ",\"max_tokens\":8,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":"
     "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":1}}}}"},
    {"/v1/completions",
     "{\"prompt\":[\"a "
     "b\",\"the\"],\"max_tokens\":3,\"echo\":true,\"logprobs\":1,\"seed\":1,\"dry_multiplier\":1}"},
    {"/v1/completions",
     "{\"prompt\":[5,6,7],\"max_tokens\":3,\"stream\":true,\"seed\":1,\"logit_bias\":{\"5\":1}}"},
    {"/v1/embeddings", "{\"input\":[\"a b\",\"the\"],\"encoding_format\":\"base64\"}"},
    {"/tokenize", "{\"content\":\"he is on <|im_end|> it\",\"with_pieces\":true,\"parse_special\":true}"},
    {"/detokenize", "{\"tokens\":[5,6,7,260]}"},
    {"/v1/models", NULL},
    {"/v1/models/tiny", NULL},
    {"/metrics", NULL},
    {"/health", NULL},
};

static void ask_well(const struct asked *a, const char *good)
{
    assert_int_equal(ask(a->path, a->body), 200);
    join_chunks();
    blank();
    if (good && strcmp(body, good) != 0) print_error("%s\n%s\n", good, body);
    assert_true(!good || strcmp(body, good) == 0);
}

/* The n-th allocation fails, and with `once` no other. false: there were fewer. */
static bool fail_at(const struct asked *a, const char *good, bool counts, long n, bool once)
{
    bool stream = a->body && strstr(a->body, "\"stream\":true");
    mf_mem_fail_at(once ? -n : n);
    int status = ask(a->path, a->body);
    bool failed = mf_mem_fail_at(0) >= n;
    join_chunks();
    blank();
    if (failed) {
        check_failure(status, stream);
    } else {
        assert_int_equal(status, 200);
        if (!counts) assert_string_equal(body, good);
    }
    return failed;
}

static void memory_runs_out(const struct asked *a)
{
    bool counts = strcmp(a->path, "/metrics") == 0; /* differs each time */
    ask_well(a, NULL);
    ask_well(a, NULL); /* what is made on first use is there */
    char *good = strdup(body);
    for (int once = 0; once < 2; once++) {
        long n = 1 + once;
        for (; fail_at(a, good, counts, n, once); n += STEP) ask_well(a, counts ? NULL : good);
        print_message("%s: %ld allocations\n", a->path, n - 1);
        assert_true(n > 2);
    }
    free(good);
}

#define TEST(name, from, to)                                         \
    static void name(void **state)                                   \
    {                                                                \
        (void)state;                                                 \
        for (size_t i = from; i < to; i++) memory_runs_out(&all[i]); \
    }
TEST(chats, 0, 2)
TEST(tools, 2, 4)
TEST(constraints, 4, 6)
TEST(completions, 6, 8)
TEST(embeddings, 8, 9)
TEST(others, 9, sizeof all / sizeof *all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chats),      cmocka_unit_test(completions), cmocka_unit_test(constraints),
        cmocka_unit_test(embeddings), cmocka_unit_test(others),      cmocka_unit_test(tools),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
