/* Shared by the tests of grammars: a grammar run byte by byte, and random texts of it. */
#ifndef MF_TESTS_GRAMMAR_COMMON_H
#define MF_TESTS_GRAMMAR_COMMON_H

#include "support/support.h"

#include "grammar/schema.h"
#include "grammar/sets.h"

typedef struct machine {
    mf_program p;
    mf_gsets sets;
    uint32_t set; /* where it stands */
} machine;

/* Fails the test when the text is no grammar, or the schema cannot be translated. */
void machine_open(machine *m, const char *gbnf, uint32_t horizon);
void machine_open_schema(machine *m, const char *schema);
void machine_close(machine *m);

void machine_start(machine *m);
void machine_byte(machine *m, uint8_t byte);
/* From the start: whether the text is one of the grammar; whether it is the beginning of one. */
bool machine_accepts(machine *m, const char *text, size_t n);
bool machine_begins(machine *m, const char *text, size_t n);

/* A random text of at most `most` bytes, whole where it could be ended; false when it could not. Where a
 * choice of bytes is open, it prefers ending with the given probability. */
bool machine_random(machine *m, mf_rng *r, double ending, size_t most, mf_buf *out);

static inline size_t below(mf_rng *r, size_t n)
{
    return (size_t)(mf_rng_f64(r) * (double)n);
}

#endif
