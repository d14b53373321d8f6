/* Chat templates: Jinja as Hugging Face's transformers renders it (trim_blocks and lstrip_blocks on,
 * keep_trailing_newline off). Owns lexer, parser, evaluator, filters, tests; knows nothing of tokens or
 * models. A parsed template is immutable and may be rendered by many threads at once. What the language has
 * and where it differs from Jinja stands in docs/templates.md. */
#ifndef MF_TEMPLATE_TEMPLATE_H
#define MF_TEMPLATE_TEMPLATE_H

#include "base/mem.h"

typedef struct mf_template mf_template;

/* Parses n bytes of UTF-8, at most 1 MiB. MINFER_ERR_FORMAT: a syntax error, an unknown filter or test
 * ("line 3, column 14: ...", lines and characters counted from 1); MINFER_ERR_UNSUPPORTED: include, import,
 * extends, block and autoescape, with the place; MINFER_ERR_LIMIT: too long. *out is NULL after an error. err
 * may be NULL. */
minfer_status mf_template_parse(const char *src, size_t n, mf_template **out, minfer_error *err);
void mf_template_free(mf_template *t);

/* What a rendering sees. JSON texts; NULL means absent. Values are given to the template as they are: whoever
 * wants null content as "" or tool arguments as objects rather than text puts them so before. */
typedef struct mf_template_input {
    const char *messages;       /* array; required */
    const char *tools;          /* array or null; the template always sees `tools`, none when absent */
    const char *kwargs;         /* object: further top-level variables (enable_thinking, documents, ...) */
    const char *special_tokens; /* object: bos_token, eos_token, ...; kwargs of the same name win */
    bool add_generation_prompt;
    int64_t now; /* seconds since 1970 that strftime_now shows as they are (UTC; a caller who wants local time
                  * adds its offset); 0 = the current time */
} mf_template_input;

typedef struct mf_template_limits { /* 0 = the default */
    size_t steps; /* work: evaluated nodes, items, and 32 bytes of text each; default 10,000,000 */
    size_t depth; /* nested statements, expressions, calls and values; default 1000, which takes less than
                   * 400 KiB of stack */
    size_t output_bytes; /* default 64 MiB */
    size_t memory_bytes; /* values made while rendering, inputs included; default 256 MiB */
} mf_template_limits;

/* Appends the rendering to out; on an error out is as it was. limits and err may be NULL.
 * MINFER_ERR_ARG: an input that is not the JSON it must be (named), or raise_exception, whose message stands
 * alone. MINFER_ERR_FORMAT: the template failed, as "line 3, column 14: TypeError: ..." with the class Jinja
 * or Python would name. MINFER_ERR_LIMIT: a limit, or an integer beyond 64 bits. MINFER_ERR_UNSUPPORTED: the
 * filter random, complex numbers. MINFER_ERR_NOMEM. */
minfer_status mf_template_render(const mf_template *t, const mf_template_input *in,
                                 const mf_template_limits *limits, mf_buf *out, minfer_error *err);

#endif
