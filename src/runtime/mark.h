/* Marks in chat messages: which characters of them would begin a special token if the text around them came
 * from the template. Each such character is replaced by a stand-in, a printable symbol that occurs nowhere
 * else, the messages are rendered, and the stand-ins are turned back: where they ended up no special token
 * may begin. Lengths, places, case and surrounding blanks stay as they are, so most of what a template does
 * to its messages gives the same with stand-ins; the caller compares the two renderings. Knows nothing of
 * templates. */
#ifndef MF_RUNTIME_MARK_H
#define MF_RUNTIME_MARK_H

#include "tokenizer/tokenizer.h"

#include <jansson.h>

enum { MF_STANDIN_FIRST = 0x2500, MF_STANDIN_COUNT = 0x700, MF_MARK_TOKENS = 64, MF_MARK_CHARS = 64 };

typedef enum mf_mark_scope {
    MF_MARK_ALWAYS,
    MF_MARK_OTHERS, /* not in the messages of the assistant */
    MF_MARK_NEVER,
} mf_mark_scope;

typedef struct mf_mark {
    const mf_tokenizer *tok;
    bool used[MF_STANDIN_COUNT]; /* symbols that occur already */
    uint32_t chars[MF_MARK_CHARS], standins[MF_MARK_CHARS];
    size_t n_chars;
    int32_t ids[MF_MARK_TOKENS]; /* special tokens that occur in the messages */
    mf_mark_scope scopes[MF_MARK_TOKENS];
    size_t n_ids;
    bool any;     /* something has to be marked */
    int32_t only; /* mark this token alone; -1: all, as their scopes say */
} mf_mark;

void mf_mark_init(mf_mark *m, const mf_tokenizer *tok);

/* Takes in all strings and keys of a JSON value: symbols that are used, special tokens, whole or cut off at
 * an end. More than MF_MARK_TOKENS different ones are MINFER_ERR_LIMIT. */
minfer_status mf_mark_scan(mf_mark *m, const json_t *j, minfer_error *err);
void mf_mark_scan_text(mf_mark *m, const char *text, size_t n); /* symbols alone */

/* A copy of j with stand-ins in its strings and keys. assistant: j is a message of the assistant. NULL with
 * err filled on failure. */
json_t *mf_mark_copy(mf_mark *m, const json_t *j, bool assistant, minfer_error *err);

/* text with its stand-ins turned back, appended to out; *places receives the bytes of out where they are. */
typedef struct mf_places { /* zero-initialise */
    size_t *at;
    size_t n, cap;
} mf_places;
bool mf_mark_restore(const mf_mark *m, const char *text, size_t n, mf_buf *out, mf_places *places);

#endif
