/* Costs of passes as a table for people, as CSV, and as JSON. */
#include "cli/specverify.h"

#include "cli/bench.h"
#include "common/json.h"

#include <math.h>
#include <string.h>

static bool md_row(const verify_setup *s, const verify_result *r, mf_buf *out)
{
    const minfer_engine_info *e = &s->engine;
    bool ok = mf_buf_str(out, "| ") && bench_cell(bench_name(&s->model), "|", out) &&
              mf_buf_printf(out, " | %s | %d | %s | %s | %d | %d | %.2f ± %.2f | %.2f | %.2f |", e->backends,
                            e->n_threads, e->cpu_tier, e->cache_type, r->depth, r->n, r->mean, r->sd, r->cost,
                            r->amortization);
    if (r->n == 1) return ok && mf_buf_str(out, " |\n");
    if (!(r->even <= 1)) return ok && mf_buf_str(out, " never |\n");
    return ok && mf_buf_printf(out, " %.0f %% |\n", 100 * r->even);
}

static bool csv_row(const verify_setup *s, const verify_result *r, mf_buf *out)
{
    const minfer_engine_info *e = &s->engine;
    bool ok = mf_buf_char(out, '"') && bench_cell(bench_name(&s->model), "\"", out) &&
              mf_buf_printf(out, "\",\"%s\",%d,%s,%s,%d,%d,%d,%.4f,%.4f,%.4f,%.4f,", e->backends,
                            e->n_threads, e->cpu_tier, e->cache_type, r->depth, r->n, r->repetitions, r->mean,
                            r->sd, r->cost, r->amortization);
    if (r->n > 1 && r->even <= 1) ok = ok && mf_buf_printf(out, "%.4f", r->even);
    return ok && mf_buf_char(out, '\n');
}

static bool json_row(const verify_setup *s, const verify_result *r, bool first, mf_buf *out)
{
    const minfer_engine_info *e = &s->engine;
    const char *name = bench_name(&s->model);
    if (!mf_buf_str(out, first ? "\n" : ",\n")) return false;
    json_t *j = json_pack("{s:o, s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:o}", "model",
                          app_json_text(name, strlen(name)), "backends", e->backends, "threads", e->n_threads,
                          "cpu_tier", e->cpu_tier, "cache_type", e->cache_type, "depth", r->depth, "n_tokens",
                          r->n, "repetitions", r->repetitions, "avg_ms", r->mean, "stddev_ms", r->sd, "cost",
                          r->cost, "amortization", r->amortization, "pays_from",
                          r->n > 1 && r->even <= 1 ? json_real(r->even) : json_null());
    return app_json_take(j, 2, out);
}

bool verify_head(app_table_format f, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD:
        return mf_buf_str(out, "| model | backend | threads | tier | cache | depth | tokens | ms | cost | "
                               "amortization | pays from |\n"
                               "|---|---|--:|---|---|--:|--:|--:|--:|--:|--:|\n");
    case APP_FORMAT_CSV:
        return mf_buf_str(out, "model,backends,threads,cpu_tier,cache_type,depth,n_tokens,repetitions,avg_ms,"
                               "stddev_ms,cost,amortization,pays_from\n");
    case APP_FORMAT_JSON: return mf_buf_char(out, '[');
    }
    return true;
}

bool verify_row(app_table_format f, const verify_setup *s, const verify_result *r, bool first, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD: return md_row(s, r, out);
    case APP_FORMAT_CSV: return csv_row(s, r, out);
    case APP_FORMAT_JSON: return json_row(s, r, first, out);
    }
    return true;
}

bool verify_end(app_table_format f, mf_buf *out)
{
    return f != APP_FORMAT_JSON || mf_buf_str(out, "\n]\n");
}
