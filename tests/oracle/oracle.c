#include "oracle/oracle.h"

#include <math.h>

void running_open(running_model *r, const char *path, const minfer_engine_options *o)
{
    minfer_error err = {0};
    minfer_engine_options def;
    minfer_engine_info info;
    *r = (running_model){0};
    minfer_engine_options_init(&def);
    def.n_ctx = 512;
    assert_ok(minfer_model_open(path, NULL, NULL, &r->model, &err), &err);
    assert_ok(minfer_engine_create(r->model, o ? o : &def, &r->engine, &err), &err);
    assert_ok(minfer_session_create(r->engine, &r->session, &err), &err);
    minfer_engine_get_info(r->engine, &info);
    r->n_vocab = info.n_vocab;
}

void running_close(running_model *r)
{
    minfer_session_free(r->session);
    minfer_engine_free(r->engine);
    minfer_model_free(r->model);
}

void running_reset(running_model *r)
{
    minfer_error err = {0};
    assert_ok(minfer_session_rollback(r->session, 0, &err), &err);
}

int32_t *json_ids(const json_t *array, size_t *n)
{
    *n = json_array_size(array);
    int32_t *ids = mf_calloc(*n, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < *n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

float *all_logits(running_model *r, const int32_t *tokens, size_t n)
{
    minfer_error err = {0};
    float *logits = mf_calloc(n * (size_t)r->n_vocab, sizeof *logits);
    assert_non_null(logits);
    running_reset(r);
    assert_ok(minfer_session_feed(r->session, tokens, n, logits, n, &err), &err);
    return logits;
}

double logsumexp(const float *x, int32_t n)
{
    double m = (double)x[0], sum = 0;
    for (int32_t i = 1; i < n; i++) m = fmax(m, (double)x[i]);
    for (int32_t i = 0; i < n; i++) sum += exp((double)x[i] - m);
    return m + log(sum);
}

static int32_t argmax(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

void distance_add(distance *d, const float *a, const float *b, int32_t n_vocab)
{
    double za = logsumexp(a, n_vocab), zb = logsumexp(b, n_vocab), kl = 0;
    for (int32_t i = 0; i < n_vocab; i++) {
        double la = (double)a[i] - za, lb = (double)b[i] - zb;
        kl += exp(la) * (la - lb);
    }
    d->kl += kl;
    d->worst = fmax(d->worst, kl);
    d->same += argmax(a, n_vocab) == argmax(b, n_vocab);
    d->n++;
}

static const struct {
    const char *name;
    minfer_cache_type type;
} caches[] = {{"f32", MINFER_CACHE_F32}, {"f16", MINFER_CACHE_F16}, {"q8_0", MINFER_CACHE_Q8_0}};

void cache_rig_open(cache_rig *g, const char *path)
{
    minfer_engine_options o;
    minfer_engine_options_init(&o);
    o.n_ctx = 512;
    *g = (cache_rig){0};
    for (int i = 0; i < 3; i++) {
        o.cache_type = caches[i].type;
        running_open(&g->r[i], path, &o);
    }
}

void cache_rig_add(cache_rig *g, const int32_t *tokens, size_t n)
{
    float *x[3];
    size_t row = (size_t)g->r[0].n_vocab;
    for (int i = 0; i < 3; i++) x[i] = all_logits(&g->r[i], tokens, n);
    for (size_t t = 0; t < n; t++)
        for (int i = 0; i < 2; i++)
            distance_add(&g->d[i], x[i] + t * row, x[i + 1] + t * row, g->r[0].n_vocab);
    for (int i = 0; i < 3; i++) mf_free(x[i]);
}

void cache_rig_check(const cache_rig *g, const char *model, const cache_bounds *b)
{
    for (int i = 0; i < 2; i++) {
        const distance *d = &g->d[i];
        double mean = d->kl / (double)d->n;
        print_message("%s, cache %s from %s, %zu positions: mean KL %.3g (bound %.3g), largest %.3g (%.3g), "
                      "best token equal %.1f %%\n",
                      model, caches[i + 1].name, caches[i].name, d->n, mean, b->mean[i], d->worst,
                      b->worst[i], 100 * (double)d->same / (double)d->n);
        assert_true(mean <= b->mean[i]);
        assert_true(d->worst <= b->worst[i]);
    }
}

void cache_rig_close(cache_rig *g)
{
    for (int i = 0; i < 3; i++) running_close(&g->r[i]);
}

size_t check_greedy(running_model *r, const json_t *greedy, const char *prompt_key, double margin)
{
    minfer_error err = {0};
    size_t n, n_next, i = 0;
    int32_t *prompt = json_ids(json_object_get(greedy, prompt_key), &n);
    int32_t *next = json_ids(json_object_get(greedy, "continuation"), &n_next);
    float *logits = mf_calloc((size_t)r->n_vocab, sizeof *logits);
    running_reset(r);
    assert_ok(minfer_session_feed(r->session, prompt, n, logits, 1, &err), &err);
    for (; i < n_next; i++) {
        double gap = json_number_value(json_array_get(json_object_get(greedy, "gap_to_second"), i));
        int32_t got = argmax(logits, r->n_vocab);
        if (gap <= margin) break;
        if (got != next[i])
            print_error("token %zu is %d, the oracle has %d, gap %g > %g\n", i, got, next[i], gap, margin);
        assert_int_equal(got, next[i]);
        assert_ok(minfer_session_feed(r->session, &next[i], 1, logits, 1, &err), &err);
    }
    mf_free(prompt);
    mf_free(next);
    mf_free(logits);
    return i;
}
