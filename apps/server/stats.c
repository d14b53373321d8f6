/* The metrics' text: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "server/stats.h"

#include <string.h>

static const double bounds[SRV_BUCKETS] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                           1,     2.5,  5,     10,   30,  60,   300};

void srv_histogram_add(srv_histogram *h, int64_t ns)
{
    size_t i = 0;
    while (i < SRV_BUCKETS && (double)ns > bounds[i] * 1e9) i++;
    atomic_fetch_add(&h->counts[i], 1);
    atomic_fetch_add(&h->sum_ns, (unsigned long long)(ns > 0 ? ns : 0));
}

static bool head(mf_buf *out, const char *name, const char *type, const char *help)
{
    return mf_buf_printf(out, "# HELP minfer_%s %s\n# TYPE minfer_%s %s\n", name, help, name, type);
}

static bool counter(mf_buf *out, const char *name, const atomic_ullong *v, const char *help)
{
    return head(out, name, "counter", help) && mf_buf_printf(out, "minfer_%s %llu\n", name, atomic_load(v));
}

static bool gauge(mf_buf *out, const char *name, size_t v, const char *help)
{
    return head(out, name, "gauge", help) && mf_buf_printf(out, "minfer_%s %zu\n", name, v);
}

static bool histogram(mf_buf *out, const char *name, const srv_histogram *h, const char *help)
{
    unsigned long long n = 0;
    bool ok = head(out, name, "histogram", help);
    for (size_t i = 0; i < SRV_BUCKETS && ok; i++) {
        n += atomic_load(&h->counts[i]);
        ok = mf_buf_printf(out, "minfer_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], n);
    }
    n += atomic_load(&h->counts[SRV_BUCKETS]);
    return ok && mf_buf_printf(
                     out, "minfer_%s_bucket{le=\"+Inf\"} %llu\nminfer_%s_sum %.9g\nminfer_%s_count %llu\n",
                     name, n, name, (double)atomic_load(&h->sum_ns) * 1e-9, name, n);
}

static bool requests(mf_buf *out, const srv_stats *s)
{
    bool ok = head(out, "requests_total", "counter", "Replies, by the class of their status.");
    for (int i = 1; i < 6 && ok; i++)
        ok = mf_buf_printf(out, "minfer_requests_total{code=\"%dxx\"} %llu\n", i,
                           atomic_load(&s->replies[i]));
    return ok && counter(out, "clients_left_total", &s->left, "Requests whose client left before the end.");
}

static bool states(mf_buf *out, const char *state)
{
    static const char *const all[] = {"loading", "ok", "draining"};
    bool ok = head(out, "state", "gauge", "1 for the state the server is in.");
    for (size_t i = 0; i < sizeof all / sizeof *all && ok; i++)
        ok = mf_buf_printf(out, "minfer_state{state=\"%s\"} %d\n", all[i], strcmp(all[i], state) == 0);
    return ok;
}

bool srv_stats_body(const srv_stats *s, const srv_gauges *g, mf_buf *out)
{
    return requests(out, s) && counter(out, "prompt_tokens_total", &s->prompt_tokens, "Tokens of prompts.") &&
           counter(out, "prompt_tokens_cached_total", &s->cached_tokens,
                   "Tokens of prompts that were not evaluated anew.") &&
           counter(out, "generated_tokens_total", &s->drawn_tokens, "Tokens of answers.") &&
           counter(out, "evaluated_tokens_total", &s->fed_tokens, "Tokens that went through the model.") &&
           counter(out, "steps_total", &s->steps, "Steps of the worker.") &&
           head(out, "step_seconds_total", "counter", "Time in steps, drawing of tokens included.") &&
           mf_buf_printf(out, "minfer_step_seconds_total %.9g\n", (double)atomic_load(&s->step_ns) * 1e-9) &&
           counter(out, "parked_total", &s->parked, "Answers that lost their cells for a while.") &&
           gauge(out, "slots", g->n_slots, "Answers that can be made at once.") &&
           gauge(out, "slots_busy", (size_t)atomic_load(&s->busy), "Answers that are being made.") &&
           gauge(out, "queue_length", g->n_queued, "Requests that wait.") &&
           gauge(out, "connections", g->n_connections, "Open connections.") && states(out, g->state) &&
           histogram(out, "queue_seconds", &s->waited, "From the request to its begin.") &&
           histogram(out, "first_token_seconds", &s->first, "From the request to its first token.") &&
           histogram(out, "request_seconds", &s->whole, "From the request to the end of its answer.");
}
