/* The text form of grammars, GBNF as llama.cpp reads it (docs/grammar.md). Owns the syntax, nothing else. */
#ifndef MF_GRAMMAR_GBNF_H
#define MF_GRAMMAR_GBNF_H

#include "grammar/rules.h"

/* Adds the rules of a text to g, which is empty, and sets *root to the rule of that name. Refusals are
 * MINFER_ERR_ARG and begin with line and column (in characters, from 1). g goes to mf_grules_free in any
 * case. */
minfer_status mf_gbnf_read(const char *text, size_t n, mf_grules *g, uint32_t *root, minfer_error *err);

/* Puts the line and the column of a byte of the text in front of the message in err. */
minfer_status mf_gbnf_prefix(minfer_status st, const char *text, size_t at, minfer_error *err);

#endif
