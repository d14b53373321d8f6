/* What minfer_engine_times tells: counts, bytes and products against sums over the model's tensors, steps
 * that add up to the passes, splits of several devices. Times themselves are only compared with each other.
 * That measuring changes no bit is tests/identity. */
#include "device/test_device.h"
#include "support/support.h"

#include "backends/cpu/cpu.h"
#include "minfer.h"
#include "runtime/engine.h"

enum { MAX_ROWS = 128, PROMPT = 5, STEPS = 3 };

typedef struct rows {
    minfer_time v[MAX_ROWS];
    char names[MAX_ROWS][40];
    int n;
} rows;

static void collect(void *user, const minfer_time *t)
{
    rows *r = user;
    assert_true(r->n < MAX_ROWS);
    snprintf(r->names[r->n], sizeof r->names[0], "%s", t->name);
    r->v[r->n] = *t;
    r->v[r->n].name = r->names[r->n];
    assert_true(t->count > 0 && t->ns >= 0);
    r->n++;
}

/* The sum of all rows of a kind and name; name NULL: any. */
static minfer_time sum_of(const rows *r, minfer_time_kind kind, bool decode, const char *name)
{
    minfer_time sum = {.name = name};
    for (int i = 0; i < r->n; i++) {
        const minfer_time *t = &r->v[i];
        if (t->kind != kind || t->decode != decode || (name && strcmp(t->name, name) != 0)) continue;
        sum.count += t->count;
        sum.ns += t->ns;
        sum.bytes += t->bytes;
        sum.macs += t->macs;
    }
    return sum;
}

typedef struct engine {
    minfer_model *model;
    minfer_engine *engine;
    minfer_session *session;
    minfer_model_info info;
    minfer_engine_info running;
} engine;

static int32_t by_parity(void *user, const mf_graph *g, mf_id id)
{
    (void)user;
    return g->nodes[id].layer % 2 ? 0 : 1;
}

static void open_engine(engine *e, bool timing, bool mixed)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine_options_init(&o);
    o.n_threads = 2;
    o.op_timing = timing;
    assert_ok(minfer_model_open(data_path("tiny/tiny-llama-Q4_0.gguf"), NULL, NULL, &e->model, &err), &err);
    if (mixed) {
        mf_engine_devices on = {.n = 2, .wish = by_parity};
        test_device_options t = {0};
        mf_backend_options b = {.n_threads = 2, .cpu_tier = -1};
        assert_ok(test_device_open(&t, &on.devices[0], &err), &err);
        assert_ok(mf_cpu_open(&b, &on.devices[1], &err), &err);
        assert_ok(mf_engine_create_on(e->model, &o, &on, &e->engine, &err), &err);
    } else
        assert_ok(minfer_engine_create(e->model, &o, &e->engine, &err), &err);
    assert_ok(minfer_session_create(e->engine, &e->session, &err), &err);
    minfer_model_get_info(e->model, &e->info);
    minfer_engine_get_info(e->engine, &e->running);
}

static void close_engine(engine *e)
{
    minfer_session_free(e->session);
    minfer_engine_free(e->engine);
    minfer_model_free(e->model);
}

/* A prompt in one pass, then single tokens. */
static void feed(engine *e)
{
    static const int32_t tokens[PROMPT + STEPS] = {3, 1, 4, 1, 5, 9, 2, 6};
    minfer_error err = {0};
    float *logits = mf_calloc((size_t)e->running.n_vocab, sizeof *logits);
    assert_ok(minfer_session_feed(e->session, tokens, PROMPT, logits, 1, &err), &err);
    for (int i = 0; i < STEPS; i++)
        assert_ok(minfer_session_feed(e->session, tokens + PROMPT + i, 1, logits, 1, &err), &err);
    mf_free(logits);
}

static void measure(engine *e, rows *r)
{
    *r = (rows){0};
    minfer_engine_times(e->engine, collect, r);
}

/* Bytes and products of the matrices: of one token, and of a prompt whose last feed-forward part and output
 * have one row. The embeddings are the output matrix, too. */
static void matrix_work(const engine *e, uint64_t *bytes, uint64_t *macs, uint64_t *prompt_macs)
{
    *bytes = *macs = *prompt_macs = 0;
    for (size_t i = 0; i < e->info.n_tensors; i++) {
        minfer_tensor_info t;
        minfer_model_tensor(e->model, i, &t);
        if (t.n_dims < 2) continue;
        uint64_t n = t.dims[0] * t.dims[1];
        bool once = strstr(t.name, "blk.1.ffn") || strcmp(t.name, "token_embd.weight") == 0;
        *bytes += t.bytes;
        *macs += n;
        *prompt_macs += once ? n : PROMPT * n;
    }
}

/* Cells that n tokens from position `first` on see together, and those they read. */
static uint64_t cells(int first, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += (uint64_t)(first + i + 1);
    return sum;
}

static void check_work(const engine *e, const rows *r)
{
    uint64_t bytes, macs, prompt_macs, layers = (uint64_t)e->info.n_layer;
    uint64_t row = 2 * (uint64_t)e->info.n_head_kv * (uint64_t)e->info.head_dim * 2; /* K and V, F16 */
    uint64_t heads = 2 * (uint64_t)e->info.n_head * (uint64_t)e->info.head_dim;
    matrix_work(e, &bytes, &macs, &prompt_macs);
    minfer_time mm = sum_of(r, MINFER_TIME_OP, true, "mat_mul"), at = sum_of(r, MINFER_TIME_OP, true, "attn");
    assert_int_equal(mm.count, STEPS * (7 * layers + 1));
    assert_int_equal(mm.bytes, STEPS * bytes);
    assert_int_equal(mm.macs, STEPS * macs);
    assert_int_equal(at.count, STEPS * layers);
    assert_int_equal(at.bytes, cells(PROMPT, STEPS) * row * layers);
    assert_int_equal(at.macs, cells(PROMPT, STEPS) * heads * layers);
    mm = sum_of(r, MINFER_TIME_OP, false, "mat_mul");
    at = sum_of(r, MINFER_TIME_OP, false, "attn");
    assert_int_equal(mm.count, 7 * layers + 1);
    assert_int_equal(mm.bytes, bytes);
    assert_int_equal(mm.macs, prompt_macs);
    assert_int_equal(at.bytes, PROMPT * row * layers);
    assert_int_equal(at.macs, cells(0, PROMPT) * heads * layers);
    assert_int_equal(sum_of(r, MINFER_TIME_OP, true, "rms_norm").count, STEPS * (2 * layers + 1));
    assert_int_equal(sum_of(r, MINFER_TIME_OP, true, "rope").count, STEPS * 2 * layers);
    assert_int_equal(sum_of(r, MINFER_TIME_OP, true, "swi_glu").count, STEPS * layers);
    assert_int_equal(sum_of(r, MINFER_TIME_OP, true, "quantize").count, STEPS * (4 * layers + 1));
}

/* Steps are the pass; what ops take is inside of it. */
static void check_times(const rows *r, bool decode, uint64_t passes)
{
    minfer_time pass = sum_of(r, MINFER_TIME_PASS, decode, decode ? "decode" : "prefill");
    assert_int_equal(pass.count, passes);
    assert_true(pass.ns > 0);
    assert_int_equal(sum_of(r, MINFER_TIME_STEP, decode, NULL).ns, pass.ns);
    assert_int_equal(sum_of(r, MINFER_TIME_STEP, decode, "plan").count, passes);
    assert_int_equal(sum_of(r, MINFER_TIME_STEP, decode, "inputs").count, passes);
    int64_t ops = sum_of(r, MINFER_TIME_OP, decode, NULL).ns;
    assert_true(ops > 0 && ops <= pass.ns);
}

static void test_one_device(void **state)
{
    (void)state;
    engine e;
    rows r;
    open_engine(&e, true, false);
    measure(&e, &r);
    assert_int_equal(r.n, 0);
    feed(&e);
    measure(&e, &r);
    check_work(&e, &r);
    check_times(&r, false, 1);
    check_times(&r, true, STEPS);
    assert_int_equal(sum_of(&r, MINFER_TIME_STEP, true, "split 0").count, STEPS);
    assert_int_equal(sum_of(&r, MINFER_TIME_STEP, true, "split 1").count, 0);
    assert_int_equal(sum_of(&r, MINFER_TIME_STEP, true, "copies").count, 0);
    assert_true(sum_of(&r, MINFER_TIME_OP, true, "barrier").count > STEPS);
    int64_t ops = sum_of(&r, MINFER_TIME_OP, true, NULL).ns;
    assert_true(ops <= sum_of(&r, MINFER_TIME_STEP, true, "split 0").ns);
    for (int i = 0; i < r.n; i++)
        assert_string_equal(r.v[i].device,
                            r.v[i].kind == MINFER_TIME_OP || strncmp(r.v[i].name, "split", 5) == 0 ? "cpu"
                                                                                                   : "");
    close_engine(&e);
}

static void test_several_devices(void **state)
{
    (void)state;
    engine e;
    rows r;
    bool seen[2] = {false, false};
    open_engine(&e, true, true);
    feed(&e);
    measure(&e, &r);
    check_work(&e, &r);
    check_times(&r, false, 1);
    check_times(&r, true, STEPS);
    minfer_time copies = sum_of(&r, MINFER_TIME_STEP, true, "copies");
    assert_true(copies.count >= STEPS && copies.bytes >= copies.count * sizeof(float));
    assert_int_equal(sum_of(&r, MINFER_TIME_STEP, true, "waits").count, copies.count);
    assert_int_equal(sum_of(&r, MINFER_TIME_STEP, true, "split 0").count, STEPS);
    assert_true(sum_of(&r, MINFER_TIME_STEP, true, "split 1").count >= STEPS);
    for (int i = 0; i < r.n; i++)
        if (strncmp(r.v[i].name, "split", 5) == 0) seen[strcmp(r.v[i].device, "cpu") == 0] = true;
    assert_true(seen[0] && seen[1]);
    close_engine(&e);
}

static void test_not_asked_for(void **state)
{
    (void)state;
    engine e;
    rows r;
    open_engine(&e, false, false);
    feed(&e);
    measure(&e, &r);
    assert_int_equal(r.n, 0);
    close_engine(&e);
}

static void test_short_memory(void **state)
{
    (void)state;
    minfer_error err = {0};
    minfer_model *m;
    minfer_engine *e = NULL;
    minfer_engine_options o;
    minfer_engine_options_init(&o);
    o.op_timing = true;
    o.n_threads = 1;
    assert_ok(minfer_model_open(data_path("tiny/tiny-llama-Q4_0.gguf"), NULL, NULL, &m, &err), &err);
    for (long n = 1; !e; n++) {
        mf_mem_fail_at(n);
        minfer_status st = minfer_engine_create(m, &o, &e, &err);
        mf_mem_fail_at(0);
        if (!e) assert_int_equal(st, MINFER_ERR_NOMEM);
    }
    minfer_engine_free(e);
    minfer_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_several_devices),
        cmocka_unit_test(test_not_asked_for),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
