#include "oracle/oracle.h"

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

static int32_t argmax(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
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
