/* The messages of a conversation, as JSON: which of them the model still sees, and where its exchanges begin.
 * An exchange is a message of the user with all that follows it up to the next one. Owns no tokens and knows
 * no model. */
#ifndef MF_RUNTIME_HISTORY_H
#define MF_RUNTIME_HISTORY_H

#include "base/json.h"

typedef struct mf_history {
    json_t *messages; /* array: a system message, where there is one, then the exchanges */
    size_t dropped;   /* exchanges from the first on that the model does not see any more; never the last */
} mf_history;

minfer_status mf_history_init(mf_history *h, minfer_error *err);
void mf_history_free(mf_history *h);

/* A copy that shares its messages with h: they never change, only lists of them do. */
minfer_status mf_history_copy(const mf_history *h, mf_history *out, minfer_error *err);

/* Reads what mf_history_write wrote, or an array of messages alone. Each message is an object whose role and
 * content are strings; a system (or developer) message stands first, and the others begin with one of the
 * user. What is refused is named by its place. h is as before after an error. */
minfer_status mf_history_read(mf_history *h, const char *json, size_t n, minfer_error *err);
/* Appends the whole history as JSON, readable by people. */
minfer_status mf_history_write(const mf_history *h, mf_buf *out, minfer_error *err);

/* text is UTF-8; what is not is refused with the place of its first bad byte. */
minfer_status mf_history_add(mf_history *h, const char *role, const char *text, size_t n, minfer_error *err);
/* text NULL: without a system message. */
minfer_status mf_history_set_system(mf_history *h, const char *text, size_t n, minfer_error *err);
/* The system message as JSON, or NULL; it belongs to h. */
const json_t *mf_history_system(const mf_history *h);

size_t mf_history_exchanges(const mf_history *h);
/* Where exchange k begins in the messages; their number for k = exchanges. */
size_t mf_history_start(const mf_history *h, size_t k);
/* Forgets the messages from place n on. */
void mf_history_truncate(mf_history *h, size_t n);

/* What the model sees when `dropped` exchanges are left out, as JSON for a template: the caller frees it with
 * free. NULL: out of memory. */
char *mf_history_visible(const mf_history *h, size_t dropped);

#endif
