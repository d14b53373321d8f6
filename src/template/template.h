/* Chat templates: Jinja as Hugging Face's transformers renders it (trim_blocks and lstrip_blocks on,
 * keep_trailing_newline off). Owns lexer, parser, evaluator, filters, tests; knows nothing of tokens or
 * models. A parsed template is immutable and may be rendered by many threads at once. */
#ifndef MF_TEMPLATE_TEMPLATE_H
#define MF_TEMPLATE_TEMPLATE_H

#include "base/mem.h"

typedef struct mf_template mf_template;

/* Parses n bytes. An error gives line and column ("line 3, column 14: ..."). */
minfer_status mf_template_parse(const char *src, size_t n, mf_template **out, minfer_error *err);
void mf_template_free(mf_template *t);

/* What a rendering sees. JSON texts; NULL means absent. */
typedef struct mf_template_input {
    const char *messages;       /* array; required */
    const char *tools;          /* array or null */
    const char *kwargs;         /* object: further top-level variables (enable_thinking, documents, ...) */
    const char *special_tokens; /* object: bos_token, eos_token, ... */
    bool add_generation_prompt;
    int64_t now; /* seconds since 1970 for strftime_now, UTC; 0 = the current time */
} mf_template_input;

typedef struct mf_template_limits { /* 0 = the default */
    size_t steps;                   /* evaluated nodes; default 10,000,000 */
    size_t depth;                   /* nested evaluation; default 200 */
    size_t output_bytes;            /* default 64 MiB */
    size_t memory_bytes;            /* values made while rendering; default 256 MiB */
} mf_template_limits;

/* Appends the rendering to out; on an error out is as it was. limits may be NULL. An exception the template
 * raises is MINFER_ERR_ARG with the template's message; a limit is MINFER_ERR_LIMIT; other runtime errors
 * name line and column. */
minfer_status mf_template_render(const mf_template *t, const mf_template_input *in,
                                 const mf_template_limits *limits, mf_buf *out, minfer_error *err);

#endif
