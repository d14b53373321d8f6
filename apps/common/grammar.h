/* Grammars and JSON schemas that the user gives as files. */
#ifndef APP_COMMON_GRAMMAR_H
#define APP_COMMON_GRAMMAR_H

#include "common/options.h"

/* Refuses what cannot be meant: a grammar and a schema at once; stdin for one of them and for the prompt. */
minfer_status app_grammar_check(const app_options *o, minfer_error *err);

/* The grammar that was asked for, or NULL; refusals name the file. */
minfer_status app_grammar_load(const app_options *o, minfer_grammar **out, minfer_error *err);

#endif
