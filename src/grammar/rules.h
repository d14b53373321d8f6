/* A grammar while it is read: rules, each a choice of sequences of elements. Owns the rules' memory and what
 * is shared among them (byte sets, classes of characters). Knows neither the syntax it came from (gbnf.c) nor
 * how it is run (program.c).
 *
 * All is bytes: a character beyond ASCII is the sequence of its bytes, a class of characters a rule that
 * chooses among such sequences. A group is a rule without a name of its own. */
#ifndef MF_GRAMMAR_RULES_H
#define MF_GRAMMAR_RULES_H

#include "base/mem.h"
#include "base/strmap.h"
#include "gguf/gguf.h" /* mf_str */

typedef enum mf_gop {
    MF_G_END,    /* of a sequence; in programs only */
    MF_G_ACCEPT, /* of the whole text; in programs only */
    MF_G_SET,    /* one byte of set `arg` */
    MF_G_CALL,   /* rule `arg` */
    MF_G_REPEAT, /* rule `arg`, min to max times */
} mf_gop;

#define MF_G_MANY UINT32_MAX /* no upper limit */
#define MF_G_NONE UINT32_MAX

typedef struct mf_gelem {
    mf_gop op;
    uint32_t arg, min, max;
} mf_gelem;

typedef struct mf_galt { /* a sequence */
    const mf_gelem *v;
    uint32_t n;
} mf_galt;

typedef struct mf_grule {
    mf_str name; /* of the named rule that it is, or is a group of */
    size_t at;   /* where in the text it is first named */
    mf_galt *alts;
    size_t n, cap;
    bool defined, nullable;
    uint32_t solid, solid_from; /* the rule for its texts other than the empty one, and back; or MF_G_NONE */
} mf_grule;

typedef struct mf_gset {
    uint64_t bits[4]; /* of the 256 bytes */
} mf_gset;

typedef struct mf_grange { /* characters lo to hi */
    uint32_t lo, hi;
} mf_grange;

typedef struct mf_grules { /* zero-initialise */
    mf_arena arena;
    mf_grule *v;
    size_t n, cap;
    mf_gset *sets;
    size_t n_sets, sets_cap;
    mf_strmap names, set_ids, class_ids;
    size_t n_elems;
} mf_grules;

void mf_grules_free(mf_grules *g);

/* The rule of that name, added unless it is there. The name is copied. */
minfer_status mf_grules_named(mf_grules *g, mf_str name, size_t at, uint32_t *rule, minfer_error *err);
/* A new rule that belongs to rule `of`. */
minfer_status mf_grules_group(mf_grules *g, uint32_t of, uint32_t *rule, minfer_error *err);
/* Adds a choice to a rule; the elements are copied. MINFER_ERR_LIMIT for too large a grammar. */
minfer_status mf_grules_choice(mf_grules *g, uint32_t rule, const mf_gelem *v, size_t n, minfer_error *err);

minfer_status mf_grules_byte(mf_grules *g, uint8_t byte, mf_gelem *out, minfer_error *err);
/* One character of n >= 1 ranges, ascending and apart, of scalar values. */
minfer_status mf_grules_class(mf_grules *g, const mf_grange *v, size_t n, mf_gelem *out, minfer_error *err);

/* ---- what can be said of rules (check.c) */

/* Refuses rules that no text can match because they never end, and rules that begin with themselves:
 * MINFER_ERR_ARG, with the name. *culprit (may be NULL) is that rule. Sets `nullable`, and turns repetitions
 * of what may be empty into ones of what is not, so that nothing goes in circles without taking a byte. */
minfer_status mf_grules_check(mf_grules *g, uint32_t *culprit, minfer_error *err);

#endif
