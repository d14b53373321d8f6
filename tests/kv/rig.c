#include "kv/rig.h"

#include "backends/cpu/cpu.h"

#include <stdlib.h>

const char *const rig_models[3] = {"tiny-llama-Q4_1.gguf", "tiny-qwen2-Q4_K.gguf", "tiny-qwen3-Q5_K.gguf"};
const minfer_cache_type rig_caches[3] = {MINFER_CACHE_F32, MINFER_CACHE_F16, MINFER_CACHE_Q8_0};

minfer_model *rig_model(const char *file)
{
    minfer_error err = {0};
    minfer_model *m;
    assert_ok(minfer_model_open(data_path("tiny/%s", file), NULL, NULL, &m, &err), &err);
    return m;
}

static int32_t wish(void *user, const mf_graph *g, mf_id id)
{
    (void)user;
    (void)g;
    uint64_t s = (uint64_t)id * 7919u + 3;
    return (int32_t)(mf_splitmix64(&s) % 2);
}

minfer_engine *rig_engine(const minfer_model *m, const rig_options *rig)
{
    minfer_error err = {0};
    minfer_engine_options o;
    minfer_engine *e;
    minfer_engine_options_init(&o);
    o.n_ctx = rig->n_ctx;
    o.n_batch = rig->n_batch;
    o.cache_type = rig->cache;
    o.n_threads = rig->threads;
    if (!rig->mixed) {
        assert_ok(minfer_engine_create(m, &o, &e, &err), &err);
        return e;
    }
    mf_engine_devices on = {.n = 2, .wish = wish};
    test_device_options t = {.causal_only = rig->causal_only};
    mf_backend_options b = {.n_threads = rig->threads, .cpu_tier = -1};
    assert_ok(test_device_open(&t, &on.devices[0], &err), &err);
    assert_ok(mf_cpu_open(&b, &on.devices[1], &err), &err);
    assert_ok(mf_engine_create_on(m, &o, &on, &e, &err), &err);
    return e;
}

size_t rig_n_vocab(const minfer_engine *e)
{
    minfer_engine_info info;
    minfer_engine_get_info(e, &info);
    assert_true(info.n_vocab <= RIG_MAX_VOCAB);
    return (size_t)info.n_vocab;
}

minfer_session *rig_session(minfer_engine *e)
{
    minfer_error err = {0};
    minfer_session *s;
    assert_ok(minfer_session_create(e, &s, &err), &err);
    return s;
}

void rig_feed(minfer_session *s, const int32_t *tokens, size_t n, float *logits, size_t n_logits)
{
    minfer_error err = {0};
    assert_ok(minfer_session_feed(s, tokens, n, logits, n_logits, &err), &err);
}

void rig_random_tokens(mf_rng *r, size_t n_vocab, int32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)(mf_rng_u64(r) % n_vocab);
}

static char folder[] = "/tmp/minfer-kv-XXXXXX";

int rig_folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

int rig_folder_drop(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

const char *rig_path(const char *name)
{
    static char paths[8][128];
    static int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

void rig_save(const minfer_session *s, const char *path, const char *host)
{
    minfer_error err = {0};
    assert_ok(minfer_session_save(s, path, host, strlen(host), &err), &err);
}

minfer_session *rig_restore(minfer_engine *e, const char *path, const char *host)
{
    minfer_error err = {0};
    minfer_session *s;
    char *text;
    size_t n;
    assert_ok(minfer_session_restore(e, path, &s, &text, &n, &err), &err);
    assert_int_equal(n, strlen(host));
    assert_string_equal(text, host);
    minfer_free(text);
    return s;
}
