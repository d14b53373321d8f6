/* Speeds as a table for people (in llama-bench's shape, so that both can be laid side by side), as CSV, and
 * as JSON. */
#include "cli/bench.h"

#include "common/json.h"
#include "common/output.h"

#include <stdio.h>
#include <string.h>

const char *bench_name(const minfer_model_info *m)
{
    return *m->name ? m->name : m->architecture;
}

/* pp512, tg64, tg64@4096, tg64x8@16: of 8 sequences together */
static void test_name(const bench_test *t, char out[40])
{
    int n = snprintf(out, 40, "%s%d", t->kind == BENCH_PREFILL ? "pp" : "tg", t->n);
    if (t->batch > 1) n += snprintf(out + n, 40 - (size_t)n, "x%d", t->batch);
    if (t->depth) snprintf(out + n, 40 - (size_t)n, "@%d", t->depth);
}

bool bench_cell(const char *text, const char *special, mf_buf *out)
{
    bool ok = true;
    for (; *text && ok; text++)
        ok = mf_buf_char(out, strchr(special, *text) || (unsigned char)*text < 32 ? ' ' : *text);
    return ok;
}

/* " 9.05 | 83 % |": a speed and its share of the machine's limit. */
static bool md_share(double speed, double limit, mf_buf *out)
{
    if (!(speed > 0)) return mf_buf_str(out, " | |");
    if (!(limit > 0)) return mf_buf_printf(out, " %.2f | |", speed);
    return mf_buf_printf(out, " %.2f | %.0f %% |", speed, 100 * speed / limit);
}

static bool md_row(const bench_setup *s, const bench_result *r, mf_buf *out)
{
    char test[40];
    test_name(&r->test, test);
    return mf_buf_str(out, "| ") && bench_cell(bench_name(&s->model), "|", out) &&
           mf_buf_printf(out, " | %s | ", s->type) && app_bytes(s->model.file_bytes, out) &&
           mf_buf_printf(out, " | %.2f M | %s | %d | %s | %s | %s | %.2f ± %.2f |",
                         (double)s->model.n_params / 1e6, s->engine.backends, s->engine.n_threads,
                         s->engine.cpu_tier, s->engine.cache_type, test, r->mean, r->sd) &&
           md_share(r->work.bytes, s->limits.read, out) && md_share(r->work.products, s->limits.int8, out) &&
           mf_buf_char(out, '\n');
}

/* ",9.05,10.9"; empty where there is nothing to tell. */
static bool csv_share(double speed, double limit, mf_buf *out)
{
    bool ok = mf_buf_char(out, ',');
    if (speed > 0) ok = ok && mf_buf_printf(out, "%.4f", speed);
    ok = ok && mf_buf_char(out, ',');
    return ok && (!(speed > 0) || !(limit > 0) || mf_buf_printf(out, "%.4f", limit));
}

static int32_t tokens_of(const bench_result *r, bench_kind kind)
{
    return r->test.kind == kind ? r->test.n : 0;
}

static bool csv_row(const bench_setup *s, const bench_result *r, mf_buf *out)
{
    return mf_buf_char(out, '"') && bench_cell(bench_name(&s->model), "\"", out) &&
           mf_buf_printf(out, "\",%s,%llu,%llu,\"%s\",%d,%s,%s,%d,%d,%d,%d,%d,%d,%.4f,%.4f", s->type,
                         (unsigned long long)s->model.file_bytes, (unsigned long long)s->model.n_params,
                         s->engine.backends, s->engine.n_threads, s->engine.cpu_tier, s->engine.cache_type,
                         s->n_batch, tokens_of(r, BENCH_PREFILL), tokens_of(r, BENCH_DECODE), r->test.depth,
                         r->test.batch, r->n, r->mean, r->sd) &&
           csv_share(r->work.bytes, s->limits.read, out) &&
           csv_share(r->work.products, s->limits.int8, out) && mf_buf_char(out, '\n');
}

static json_t *number_or_null(double v)
{
    return v > 0 ? json_real(v) : json_null();
}

static bool json_row(const bench_setup *s, const bench_result *r, bool first, mf_buf *out)
{
    char test[40];
    if (!mf_buf_str(out, first ? "\n" : ",\n")) return false;
    json_t *rates = json_array();
    test_name(&r->test, test);
    for (int32_t i = 0; i < r->n; i++) json_array_append_new(rates, json_real(r->rates[i]));
    json_t *j = json_pack(
        "{s:o, s:s, s:I, s:I, s:s, s:i, s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:o, s:o, "
        "s:o, "
        "s:o, "
        "s:o}",
        "model", app_json_text(bench_name(&s->model), strlen(bench_name(&s->model))), "type", s->type,
        "size_bytes", (json_int_t)s->model.file_bytes, "n_params", (json_int_t)s->model.n_params, "backends",
        s->engine.backends, "threads", s->engine.n_threads, "cpu_tier", s->engine.cpu_tier, "cache_type",
        s->engine.cache_type, "n_batch", s->n_batch, "test", test, "n_prompt", tokens_of(r, BENCH_PREFILL),
        "n_gen", tokens_of(r, BENCH_DECODE), "depth", r->test.depth, "n_seq", r->test.batch, "repetitions",
        r->n, "avg_ts", r->mean, "stddev_ts", r->sd, "samples_ts", rates, "gb_s",
        number_or_null(r->work.bytes), "read_gb_s", number_or_null(s->limits.read), "gmac_s",
        number_or_null(r->work.products), "int8_gmac_s", number_or_null(s->limits.int8));
    return app_json_take(j, 2, out);
}

bool bench_head(app_table_format f, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD:
        return mf_buf_str(out,
                          "| model | type | size | params | backend | threads | tier | cache | test | t/s | "
                          "GB/s | of reading | GMAC/s | of int8 |\n"
                          "|---|---|--:|--:|---|--:|---|---|--:|--:|--:|--:|--:|--:|\n");
    case APP_FORMAT_CSV:
        return mf_buf_str(
            out,
            "model,type,size_bytes,n_params,backends,threads,cpu_tier,cache_type,n_batch,"
            "n_prompt,n_gen,depth,n_seq,repetitions,avg_ts,stddev_ts,gb_s,read_gb_s,gmac_s,int8_gmac_s\n");
    case APP_FORMAT_JSON: return mf_buf_char(out, '[');
    }
    return true;
}

bool bench_row(app_table_format f, const bench_setup *s, const bench_result *r, bool first, mf_buf *out)
{
    switch (f) {
    case APP_FORMAT_MD: return md_row(s, r, out);
    case APP_FORMAT_CSV: return csv_row(s, r, out);
    case APP_FORMAT_JSON: return json_row(s, r, first, out);
    }
    return true;
}

bool bench_end(app_table_format f, mf_buf *out)
{
    return f != APP_FORMAT_JSON || mf_buf_str(out, "\n]\n");
}
