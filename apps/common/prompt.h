/* Prompts: from what the user gave to token ids. */
#ifndef APP_COMMON_PROMPT_H
#define APP_COMMON_PROMPT_H

#include "common/options.h"

/* Most bytes of a text that is read. */
#define APP_MAX_TEXT ((size_t)1 << 30)

/* The words after MODEL, with blanks between them, appended to out. */
bool app_words(const app_options *o, mf_buf *out);

/* The prompt of `run`: -p, the words, or stdin: a pipe whole, without one newline at its end; one line of a
 * terminal, asked for with "> " on stderr. An empty one is refused. */
minfer_status app_prompt_text(const app_options *o, mf_buf *out, minfer_error *err);

/* Text -> ids, through the chat template unless --no-template. The caller frees *ids with minfer_free. */
minfer_status app_prompt_ids(const app_options *o, const minfer_model *m, const mf_buf *text, int32_t **ids,
                             size_t *n, minfer_error *err);

/* The ids of a plain text, or, with text NULL, of the bytes of a file (-: stdin): BOS where the model asks
 * for it, special tokens with --special. A text without tokens is refused. The caller frees *ids with
 * minfer_free. */
minfer_status app_text_ids(const app_options *o, const minfer_model *m, const char *text, const char *file,
                           int32_t **ids, size_t *n, minfer_error *err);

#endif
