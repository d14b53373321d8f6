/* Tables of times on stderr. */
#include "common/times.h"

#include <stdio.h>

typedef struct table {
    int64_t pass_ns; /* of the kind of pass that is being told */
    minfer_time_kind last;
} table;

static void tell_head(const minfer_time *t)
{
    double ms = (double)t->ns * 1e-6;
    fprintf(stderr, "minfer: %s: %llu pass%s, %.3f ms, %.3f ms each\n", t->name, (unsigned long long)t->count,
            t->count == 1 ? "" : "es", ms, ms / (double)t->count);
}

/* Rates only where they tell something: bytes of weights are read once for all tokens of a pass. */
static void tell_rates(const minfer_time *t)
{
    double ns = (double)(t->ns > 0 ? t->ns : 1);
    bool read = t->bytes && (t->decode || t->kind == MINFER_TIME_STEP);
    if (read) fprintf(stderr, "%9.2f", (double)t->bytes / ns);
    if (t->macs) fprintf(stderr, "%*.1f", read ? 9 : 18, (double)t->macs / ns);
}

static void tell_row(void *user, const minfer_time *t)
{
    table *w = user;
    char name[64];
    if (t->kind == MINFER_TIME_PASS) {
        tell_head(t);
        w->pass_ns = t->ns > 0 ? t->ns : 1;
    } else {
        if (t->kind != w->last)
            fprintf(stderr, "  %-28s%12s%9s%9s%9s%9s\n", t->kind == MINFER_TIME_STEP ? "step" : "op", "ms",
                    "share", "count", "GB/s", "GMAC/s");
        snprintf(name, sizeof name, "%s%s%s", t->device, *t->device ? ": " : "", t->name);
        fprintf(stderr, "  %-28s%12.3f%7.1f %%%9llu", name, (double)t->ns * 1e-6,
                100 * (double)t->ns / (double)w->pass_ns, (unsigned long long)t->count);
        tell_rates(t);
        fputc('\n', stderr);
    }
    w->last = t->kind;
}

void app_engine_free(minfer_engine *e)
{
    table w = {.last = MINFER_TIME_PASS};
    if (e) minfer_engine_times(e, tell_row, &w);
    minfer_engine_free(e);
}
