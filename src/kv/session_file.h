/* Session files: one sequence of a cache as bytes (docs/session-file.md), written, verified and loaded. Owns
 * the format and its checks; what a session is, and which file belongs to it, is for the runtime to know. */
#ifndef MF_KV_SESSION_FILE_H
#define MF_KV_SESSION_FILE_H

#include "base/savefile.h"
#include "graph/alloc.h"
#include "kv/cells.h"

/* The cache a file is of, or is to go into. Every layer of cache has its regions. */
typedef struct mf_session_cache {
    const mf_alloc *cache;
    uint64_t model;      /* hash of the model's names, shapes, types and metadata */
    int32_t n_vocab;     /* tokens are below */
    int32_t n_positions; /* positions are below */
} mf_session_cache;

/* A sequence and what the host keeps with it. */
typedef struct mf_session_state {
    const mf_kv_seq *seq;
    const int32_t *tokens, *positions; /* [seq->n]; positions ascend */
    const char *host;
    size_t n_host;
} mf_session_state;

/* A verified file; everything points into its bytes. */
typedef struct mf_session_view {
    uint32_t flags, backend, n_layer, n_ctx, n_kv_embd, row_bytes;
    uint64_t model;
    uint32_t n; /* tokens */
    uint32_t n_runs, n_host;
    const uint8_t *layers, *runs, *tokens, *host;
} mf_session_view;

minfer_status mf_session_file_write(mf_savefile *f, const mf_session_cache *c, const mf_session_state *s,
                                    minfer_error *err);

/* Verifies bytes on their own: lengths, checksum, and that every value is one the writer could have written.
 * Messages begin with name. */
minfer_status mf_session_file_parse(const uint8_t *data, size_t size, const char *name, mf_session_view *v,
                                    minfer_error *err);

/* Whether the file's rows can be used in this cache; says what differs, with both values. */
minfer_status mf_session_file_match(const mf_session_view *v, const mf_session_cache *c, const char *name,
                                    minfer_error *err);

/* Tokens and positions, [v->n] each, checked where they then stand, so that a file which somebody changes
 * while it is read does no harm. */
minfer_status mf_session_file_tokens(const mf_session_view *v, const mf_session_cache *c, const char *name,
                                     int32_t *tokens, int32_t *positions, minfer_error *err);

/* Of a file that matches: the rows into q's cells, q being v->n long. */
minfer_status mf_session_file_load(const mf_session_view *v, const mf_session_cache *c, const mf_kv_seq *q,
                                   minfer_error *err);

/* The checksum of a file's bytes, for tools that make such files. */
uint64_t mf_session_checksum(const void *data, size_t n);

#endif
