/* What the template tests share: rendering with variables given as one JSON object. */
#ifndef MF_TESTS_TEMPLATE_RENDER_JSON_H
#define MF_TESTS_TEMPLATE_RENDER_JSON_H

#include "support/support.h"
#include "template/template.h"

#include <jansson.h>
#include <stdlib.h>

/* 2023-11-14 22:13:20 UTC, as make_golden.py has it */
#define TEST_NOW 1700000000

static inline char *dump_member(json_t *vars, const char *name)
{
    json_t *v = json_object_get(vars, name);
    return v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
}

/* Renders src with vars: messages, tools and add_generation_prompt go where they belong, the rest are kwargs.
 */
static inline minfer_status render_json(const char *src, size_t n, json_t *vars, mf_buf *out,
                                        minfer_error *err)
{
    mf_template *t;
    minfer_status st = mf_template_parse(src, n, &t, err);
    if (st != MINFER_OK) return st;
    char *messages = dump_member(vars, "messages"), *tools = dump_member(vars, "tools");
    char *kwargs = json_dumps(vars, JSON_ENCODE_ANY);
    mf_template_input in = {
        .messages = messages ? messages : "[]",
        .tools = tools,
        .kwargs = kwargs,
        .add_generation_prompt = json_is_true(json_object_get(vars, "add_generation_prompt")),
        .now = TEST_NOW};
    st = mf_template_render(t, &in, NULL, out, err);
    free(messages);
    free(tools);
    free(kwargs);
    mf_template_free(t);
    return st;
}

#endif
