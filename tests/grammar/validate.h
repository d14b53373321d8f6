/* A plain validator of JSON values against the schemas of these tests; knows nothing of grammars. */
#ifndef MF_TESTS_GRAMMAR_VALIDATE_H
#define MF_TESTS_GRAMMAR_VALIDATE_H

#include <jansson.h>
#include <stdbool.h>

/* root: what $ref looks into. Keywords it does not know: false. */
bool is_valid(const json_t *root, const json_t *schema, const json_t *value);

#endif
