/* JSON schemas: what is translated is a grammar, and random texts of it are JSON. */
#include "base/rng.h"
#include "grammar/schema.h"
#include "grammar/sets.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SCHEMA = 2000, MAX_TEXT = 200 };

/* A byte that can come next; false when the grammar is given up. */
static bool choose(mf_gsets *s, uint32_t *set, mf_rng *r, char *byte)
{
    uint32_t n = s->p->n_classes, from = (uint32_t)(mf_rng_u64(r) % n), next;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = (from + i) % n;
        s->effort = 0;
        if (mf_gsets_step(s, *set, c, &next, NULL) != MINFER_OK) return false;
        if (next == MF_GSET_EMPTY) continue;
        *set = next;
        *byte = (char)s->p->example[c];
        return true;
    }
    abort(); /* nowhere to go, and not at the end */
}

/* One random text of the grammar; a whole one is JSON. */
static void walk(mf_gsets *s, mf_rng *r)
{
    char text[MAX_TEXT];
    size_t n = 0;
    uint32_t set;
    json_error_t e;
    if (mf_gsets_start(s, &set, NULL) != MINFER_OK) return;
    for (;;) {
        bool may_end = mf_gsets_can_end(s, set);
        if (may_end && (!mf_gsets_can_go_on(s, set) || mf_rng_u64(r) % 3 == 0)) break;
        if (n == MAX_TEXT || !choose(s, &set, r, &text[n])) return;
        n++;
    }
    json_t *v = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!v && !strstr(e.text, "NUL byte in object key")) abort();
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mf_buf text = {0};
    mf_program p;
    mf_gsets s;
    minfer_error err;
    mf_rng r;
    if (size > MAX_SCHEMA) return 0;
    minfer_status st = mf_schema_read((const char *)data, size, &text, &p, &err);
    if (st == MINFER_OK) {
        if (mf_gsets_init(&s, &p, 4, NULL) != MINFER_OK) abort();
        mf_rng_seed(&r, size);
        for (int i = 0; i < 5; i++) walk(&s, &r);
        mf_gsets_free(&s);
        mf_program_free(&p);
    } else if (st == MINFER_ERR_STATE || strncmp(err.message, "schema: ", 8) != 0 ||
               (st == MINFER_ERR_ARG && strncmp(err.message, "schema: line", 12) == 0)) { /* our own text */
        abort();
    }
    mf_buf_free(&text);
    return 0;
}
