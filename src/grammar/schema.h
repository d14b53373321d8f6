/* JSON schemas as grammars: a text of GBNF whose texts are JSON values that satisfy the schema. Owns the
 * rules of that translation (docs/grammar.md tells what is covered); what constrains and cannot be translated
 * is refused by name, with the JSON pointer of its place. */
#ifndef MF_GRAMMAR_SCHEMA_H
#define MF_GRAMMAR_SCHEMA_H

#include "base/json.h"
#include "grammar/program.h"

/* Translates n bytes of JSON: the text is appended to gbnf, and p receives it as a program. */
minfer_status mf_schema_read(const char *json, size_t n, mf_buf *gbnf, mf_program *p, minfer_error *err);

/* ---- inside of the translation, shared by its files */

typedef struct mf_schema {
    json_t *root;
    json_t *made;       /* array that owns the schemas made by merging */
    mf_buf out;         /* complete rules */
    mf_arena arena;     /* pointers */
    const char **where; /* rule -> pointer of its schema */
    size_t n_rules, cap;
    struct mf_sref { /* a $ref that has a rule */
        uint64_t hash;
        const char *ref;
        uint32_t rule;
    } * refs;
    size_t n_refs, refs_cap;
    int depth;
    bool impossible; /* the refusal is that no value satisfies the schema */
    minfer_error *err;
} mf_schema;

/* A place in the schema: the schema there, and its JSON pointer. */
typedef struct mf_splace {
    json_t *j;
    const char *at;
} mf_splace;

enum {
    MF_JSON_NULL = 1,
    MF_JSON_BOOL = 2,
    MF_JSON_NUMBER = 4,
    MF_JSON_INTEGER = 8,
    MF_JSON_STRING = 16,
    MF_JSON_ARRAY = 32,
    MF_JSON_OBJECT = 64,
    MF_JSON_ALL = 127
}; /* NUMBER: with fractions, too */

/* The rule of a schema, written to out. */
minfer_status mf_schema_rule(mf_schema *s, mf_splace p, uint32_t *rule);
/* The same where it may be left out: *possible is false when no value satisfies it, and nothing was written.
 */
minfer_status mf_schema_try_rule(mf_schema *s, mf_splace p, uint32_t *rule, bool *possible);
/* A new rule without a text yet; and its text. */
minfer_status mf_schema_new_rule(mf_schema *s, const char *at, uint32_t *rule);
minfer_status mf_schema_put_rule(mf_schema *s, uint32_t rule, const mf_buf *text);

/* Appends the expression of one type to b; p.j is an object. */
minfer_status mf_schema_object(mf_schema *s, mf_splace p, mf_buf *b);
minfer_status mf_schema_array(mf_schema *s, mf_splace p, mf_buf *b);
minfer_status mf_schema_string(mf_schema *s, mf_splace p, mf_buf *b);
minfer_status mf_schema_number(mf_schema *s, mf_splace p, bool integer, mf_buf *b);
/* The contents of a JSON string that match a regular expression. */
minfer_status mf_schema_pattern(mf_schema *s, const char *at, const char *regex, size_t n, mf_buf *b);

/* One schema for what satisfies both; owned by s->made. */
minfer_status mf_schema_merge(mf_schema *s, mf_splace a, mf_splace b, mf_splace *both);
minfer_status mf_schema_types(mf_schema *s, mf_splace p, unsigned *types); /* 0: no `type` */
minfer_status mf_schema_keep(mf_schema *s, json_t *j); /* takes j, which may be NULL, into s->made */

/* A non-negative whole number under a keyword; *v stays as it is when there is none. */
minfer_status mf_schema_count(mf_schema *s, mf_splace p, const char *key, uint32_t *v);
/* The place below p: pointer and two steps, of which the second may be NULL. */
minfer_status mf_schema_below(mf_schema *s, mf_splace p, const char *key, const char *more, json_t *j,
                              mf_splace *out);

/* Refusals: "at: ..." */
minfer_status mf_schema_fail(mf_schema *s, minfer_status st, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
minfer_status mf_schema_impossible(mf_schema *s, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends text as a literal of GBNF; a JSON value as such a literal. */
bool mf_schema_literal(mf_buf *b, const char *text, size_t n);
bool mf_schema_value(mf_buf *b, const json_t *value);

#endif
