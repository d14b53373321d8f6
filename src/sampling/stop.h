/* Stop strings in a stream of bytes: what may be shown, and when to stop. Owns copies of the strings.
 *
 * The text is cut before the match that starts earliest in the whole stream; where several start there, the
 * shortest completes first and the cut is the same. A completed match waits while a longer string that began
 * before it may still complete. Bytes that may begin a match are held back and come out once they cannot;
 * never more of them than the longest string has. Nothing here depends on how the stream is cut into pushes.
 * A push takes time linear in its bytes, for each string.
 *
 * Order of use: bytes of tokens -> mf_stop -> mf_detok, which turns bytes into whole characters. A stop
 * string may hold any bytes, also a part of a character. */
#ifndef MF_SAMPLING_STOP_H
#define MF_SAMPLING_STOP_H

#include "base/mem.h"

typedef struct mf_stop_string {
    char *text;
    size_t len;
    size_t *back;   /* [len] at i: length of the longest proper prefix of text[0..i] that is its suffix */
    size_t matched; /* how much of it the stream ends with */
} mf_stop_string;

typedef struct mf_stop { /* zero-initialise for a stream without stop strings */
    mf_stop_string *strings;
    size_t n;
    uint64_t n_seen;         /* bytes of the stream so far */
    uint64_t first;          /* start of the earliest completed match; only with found */
    bool found, matched;     /* a match is complete; it is the earliest, and the stream has ended */
    mf_stop_string *longest; /* of those that the stream ends with the most of; its text is what is held */
} mf_stop;

/* n strings; lens NULL: terminated by NUL. An empty one is MINFER_ERR_ARG. *s needs no earlier state and is
 * free of memory after an error. */
minfer_status mf_stop_init(mf_stop *s, const char *const *strings, const size_t *lens, size_t n,
                           minfer_error *err);
void mf_stop_free(mf_stop *s);

/* Appends to out what became certain; after a match nothing more. *matched tells whether the stream has ended
 * in a match, in this push or before. false: out of memory; the stream cannot be continued. */
bool mf_stop_push(mf_stop *s, const char *bytes, size_t n, mf_buf *out, bool *matched);

/* The stream has ended: appends what was held, up to a completed match if there is one. */
bool mf_stop_finish(mf_stop *s, mf_buf *out, bool *matched);

#endif
