/* A grammar ready to run: elements in one array, byte values in classes that the grammar cannot tell apart.
 * Immutable. Made from rules that passed mf_grules_check.
 *
 * A position is an index of nodes. An element is followed by the next index; a sequence ends with MF_G_END.
 * Node 0 is MF_G_ACCEPT: the whole text is complete. */
#ifndef MF_GRAMMAR_PROGRAM_H
#define MF_GRAMMAR_PROGRAM_H

#include "grammar/rules.h"

typedef struct mf_gpart { /* of an array */
    uint32_t first, n;
} mf_gpart;

typedef struct mf_program {
    mf_gelem *nodes;
    size_t n_nodes;
    uint32_t *alts;  /* positions where sequences begin */
    mf_gpart *rules; /* each a part of alts */
    size_t n_rules;
    mf_gset *sets;                       /* of classes, not of bytes */
    uint8_t class_of[256], example[256]; /* byte -> class; class -> one byte of it */
    uint32_t n_classes;
    uint32_t root; /* a rule */
} mf_program;

minfer_status mf_program_make(mf_program *p, const mf_grules *g, uint32_t root, minfer_error *err);
void mf_program_free(mf_program *p);

/* Reads a text and makes it a program. *culprit (may be NULL) receives the name of a rule that never ends or
 * begins with itself, as a part of text; else it is empty. */
minfer_status mf_program_read(mf_program *p, const char *text, size_t n, mf_str *culprit, minfer_error *err);

static inline bool mf_program_takes(const mf_program *p, uint32_t set, uint32_t class)
{
    return p->sets[set].bits[class / 64] >> class % 64 & 1;
}

#endif
