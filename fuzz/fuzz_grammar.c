/* Grammars and texts. The input: a grammar, a NUL byte, and a text that is read under it. What is dead stays
 * dead, and a set goes the same ways as the one that stands for it, as far as that is promised. */
#include "grammar/sets.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HORIZON = 3, MAX_TEXT = 100, MAX_GRAMMAR = 2000 };

static bool step(mf_gsets *s, uint32_t from, uint8_t byte, uint32_t *to)
{
    s->effort = 0;
    minfer_status st = mf_gsets_step(s, from, s->p->class_of[byte], to, NULL);
    if (st != MINFER_OK && st != MINFER_ERR_LIMIT) abort();
    return st == MINFER_OK;
}

static void check(bool ok)
{
    if (!ok) abort();
}

/* The next bytes from a set and from the one that is alike. */
static void check_like(mf_gsets *s, uint32_t set, const uint8_t *text, size_t n)
{
    uint32_t like = mf_gsets_like(s, set);
    for (size_t i = 0; i <= HORIZON; i++) {
        check((set == MF_GSET_EMPTY) == (like == MF_GSET_EMPTY));
        check(mf_gsets_can_end(s, set) == mf_gsets_can_end(s, like));
        if (i == n || i == HORIZON) return;
        if (!step(s, set, text[i], &set) || !step(s, like, text[i], &like)) return;
    }
}

static void read_text(const mf_program *p, const uint8_t *text, size_t n)
{
    mf_gsets s;
    uint32_t set;
    if (mf_gsets_init(&s, p, HORIZON, NULL) != MINFER_OK) abort();
    bool ok = mf_gsets_start(&s, &set, NULL) == MINFER_OK;
    for (size_t i = 0; i < n && ok; i++) {
        bool dead = set == MF_GSET_EMPTY;
        check_like(&s, set, text + i, n - i);
        ok = step(&s, set, text[i], &set);
        check(!ok || !dead || set == MF_GSET_EMPTY);
        uint32_t *keep = &set;
        if (i % 16 == 15) check(mf_gsets_collect(&s, &keep, 1, NULL) == MINFER_OK);
    }
    mf_gsets_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t n = nul ? (size_t)(nul - data) : size, n_text = nul ? size - n - 1 : 0;
    mf_program p;
    minfer_error err;
    if (n > MAX_GRAMMAR) return 0;
    minfer_status st = mf_program_read(&p, (const char *)data, n, NULL, &err);
    if (st != MINFER_OK) {
        check(err.message[0] != 0);
        return 0;
    }
    read_text(&p, nul ? nul + 1 : data, n_text < MAX_TEXT ? n_text : MAX_TEXT);
    mf_program_free(&p);
    return 0;
}
