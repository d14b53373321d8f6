/* Estimates of perplexity as tables for people, as CSV, and as JSON. */
#include "cli/perplexity.h"

#include "common/json.h"

#include <math.h>
#include <string.h>

/* ---- the numbers */

typedef struct number {
    const char *name;
    double value;
    bool whole, absent;
} number;

enum { N_NUMBERS = 15 };

static double perplexity(const cli_mean *m)
{
    return exp(m->mean);
}
static double perplexity_error(const cli_mean *m)
{
    return exp(m->mean) * cli_mean_error(m);
}

static double speed(const ppl_result *r)
{
    return (double)r->n_fed * 1e9 / (double)(r->ns > 0 ? r->ns : 1);
}

/* sorted: the quantiles are known. */
static void numbers_of(const ppl_setup *s, const ppl_result *r, bool sorted, number v[N_NUMBERS])
{
    bool alone = !s->base, unsorted = alone || !sorted;
    size_t n = (size_t)r->divergence.n;
    const number all[N_NUMBERS] = {
        {"windows", r->n, true, false},
        {"predictions", (double)r->surprise.n, true, false},
        {"tokens", (double)r->n_fed, true, false},
        {"tokens_per_s", speed(r), false, false},
        {"perplexity", perplexity(&r->surprise), false, false},
        {"perplexity_error", perplexity_error(&r->surprise), false, false},
        {"stored_perplexity", perplexity(&r->stored_surprise), false, alone},
        {"stored_perplexity_error", perplexity_error(&r->stored_surprise), false, alone},
        {"ratio", perplexity(&r->more), false, alone},
        {"ratio_error", perplexity_error(&r->more), false, alone},
        {"kl", r->divergence.mean, false, alone},
        {"kl_error", cli_mean_error(&r->divergence), false, alone},
        {"kl_99", unsorted ? 0 : cli_quantile(r->divergences, n, 0.99), false, unsorted},
        {"kl_max", unsorted ? 0 : r->divergences[n - 1], false, unsorted},
        {"same_best", r->same.mean, false, alone},
    };
    memcpy(v, all, sizeof all);
}

/* ---- for people */

/* "12.3456 ± 0.1234"; powers of ten where a model knows nothing of the text. */
static bool add_estimate(const cli_mean *m, mf_buf *out)
{
    double v = perplexity(m), error = perplexity_error(m);
    return mf_buf_printf(out, v < 1e6 ? "%.4f ± %.4f" : "%.4e ± %.1e", v, error);
}

static bool md_head(const ppl_setup *s, mf_buf *out)
{
    return mf_buf_printf(out,
                         "| window | predictions | perplexity so far |%s tokens/s |\n"
                         "|--:|--:|--:|%s--:|\n",
                         s->base ? " KL divergence | same best |" : "", s->base ? "--:|--:|" : "");
}

static bool md_row(const ppl_setup *s, const ppl_result *r, mf_buf *out)
{
    bool ok = mf_buf_printf(out, "| %d | %llu | ", r->n, (unsigned long long)r->surprise.n) &&
              add_estimate(&r->surprise, out);
    if (s->base)
        ok = ok && mf_buf_printf(out, " | %.6f ± %.6f | %.2f %%", r->divergence.mean,
                                 cli_mean_error(&r->divergence), 100 * r->same.mean);
    return ok && mf_buf_printf(out, " | %.1f |\n", speed(r));
}

static bool md_comparison(const ppl_result *r, mf_buf *out)
{
    const cli_mean *d = &r->divergence;
    size_t n = (size_t)d->n;
    return mf_buf_str(out, "| perplexity of the stored logits | ") &&
           add_estimate(&r->stored_surprise, out) &&
           mf_buf_printf(out, " |\n| ratio of the two | %.6f ± %.6f |\n", perplexity(&r->more),
                         perplexity_error(&r->more)) &&
           mf_buf_printf(out, "| mean KL divergence | %.6f ± %.6f |\n", d->mean, cli_mean_error(d)) &&
           mf_buf_printf(out, "| 99 %% of KL divergences are below | %.6f |\n",
                         cli_quantile(r->divergences, n, 0.99)) &&
           mf_buf_printf(out, "| largest KL divergence | %.6f |\n", r->divergences[n - 1]) &&
           mf_buf_printf(out, "| same best token | %.3f ± %.3f %% |\n", 100 * r->same.mean,
                         100 * cli_mean_error(&r->same));
}

static bool md_end(const ppl_setup *s, const ppl_result *r, mf_buf *out)
{
    return mf_buf_str(out, "\n| result | |\n|---|--:|\n| perplexity | ") && add_estimate(&r->surprise, out) &&
           mf_buf_str(out, " |\n") && (!s->base || md_comparison(r, out));
}

/* ---- for programs */

static bool csv_head(const ppl_setup *s, mf_buf *out)
{
    number v[N_NUMBERS];
    bool ok = true;
    numbers_of(s, &(ppl_result){0}, false, v);
    for (int i = 0; i < N_NUMBERS && ok; i++) ok = mf_buf_printf(out, "%s%s", i ? "," : "", v[i].name);
    return ok && mf_buf_char(out, '\n');
}

static bool csv_row(const ppl_setup *s, const ppl_result *r, bool sorted, mf_buf *out)
{
    number v[N_NUMBERS];
    bool ok = true;
    numbers_of(s, r, sorted, v);
    for (int i = 0; i < N_NUMBERS && ok; i++) {
        ok = i == 0 || mf_buf_char(out, ',');
        if (!v[i].absent) ok = ok && mf_buf_printf(out, v[i].whole ? "%.0f" : "%.10g", v[i].value);
    }
    return ok && mf_buf_char(out, '\n');
}

static json_t *json_numbers(const ppl_setup *s, const ppl_result *r, bool sorted)
{
    number v[N_NUMBERS];
    json_t *j = json_object();
    numbers_of(s, r, sorted, v);
    for (int i = 0; i < N_NUMBERS; i++) {
        if (v[i].absent) continue;
        json_t *value = v[i].whole ? json_integer((json_int_t)v[i].value) : json_real(v[i].value);
        if (json_object_set_new(j, v[i].name, value) == 0) continue;
        json_decref(j);
        return NULL;
    }
    return j;
}

static json_t *json_text(const char *text)
{
    return text ? app_json_text(text, strlen(text)) : json_null();
}

static bool json_head(const ppl_setup *s, mf_buf *out)
{
    const char *name = *s->model.name ? s->model.name : s->model.architecture;
    if (!mf_buf_str(out, "{\"setup\": ")) return false;
    json_t *j = json_pack("{s:o, s:o, s:o, s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:i}", "model", json_text(name),
                          "text", json_text(s->text), "stored", json_text(s->base), "backends",
                          s->engine.backends, "threads", s->engine.n_threads, "cpu_tier", s->engine.cpu_tier,
                          "cache_type", s->engine.cache_type, "n_ctx", s->windows.n_ctx, "stride",
                          s->windows.stride, "counted", s->windows.counted, "n_windows", s->windows.n);
    return app_json_take(j, 2, out) && mf_buf_str(out, ",\n\"running\": [");
}

static bool json_row(const ppl_setup *s, const ppl_result *r, bool first, mf_buf *out)
{
    return mf_buf_str(out, first ? "\n" : ",\n") && app_json_take(json_numbers(s, r, false), 0, out);
}

static bool json_end(const ppl_setup *s, const ppl_result *r, mf_buf *out)
{
    return mf_buf_str(out, "\n],\n\"result\": ") && app_json_take(json_numbers(s, r, true), 2, out) &&
           mf_buf_str(out, "}\n");
}

/* ---- by format */

bool ppl_head(app_table_format f, const ppl_setup *s, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD: return md_head(s, out);
    case APP_FORMAT_CSV: return csv_head(s, out);
    case APP_FORMAT_JSON: return json_head(s, out);
    }
    return true;
}

bool ppl_row(app_table_format f, const ppl_setup *s, const ppl_result *r, bool first, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD: return md_row(s, r, out);
    case APP_FORMAT_CSV: return csv_row(s, r, false, out);
    case APP_FORMAT_JSON: return json_row(s, r, first, out);
    }
    return true;
}

bool ppl_end(app_table_format f, const ppl_setup *s, const ppl_result *r, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD: return md_end(s, r, out);
    case APP_FORMAT_CSV: return csv_row(s, r, true, out);
    case APP_FORMAT_JSON: return json_end(s, r, out);
    }
    return true;
}
