/* What the files of gguf/ share: the parts of a model and the steps that fill them. Not for other folders. */
#ifndef MF_GGUF_INTERNAL_H
#define MF_GGUF_INTERNAL_H

#include "base/filemap.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "gguf/cursor.h"
#include "gguf/gguf.h"

typedef struct mf_gguf_slot {
    mf_gguf_kv kv;
    size_t first_str; /* index in strs while that array still grows */
} mf_gguf_slot;

typedef struct mf_gguf_part { /* one file */
    char *path;
    mf_filemap map;      /* empty when the bytes are the caller's */
    const uint8_t *data; /* the whole file */
    size_t size;         /* bytes */
    uint32_t version, alignment;
    mf_gguf_slot *slots;
    size_t n_kv, cap_kv;
    mf_strmap kv_index; /* key -> slot */
    mf_str *strs;       /* all strings of all values */
    size_t n_strs, cap_strs;
} mf_gguf_part;

struct mf_gguf {
    mf_gguf_part *parts;
    size_t n_parts, cap_parts;
    mf_gguf_tensor *tensors; /* of all parts */
    size_t n_tensors, cap_tensors;
    mf_strmap tensor_index; /* name -> tensor */
    mf_arena names;         /* terminated copies, also the keys of tensor_index */
};

/* What bytes that do not begin with GGUF's magic number look like, in a few words. */
const char *mf_gguf_identify(const uint8_t *data, size_t size);

/* Reads n_kv entries of metadata at c into p, then p->alignment. */
minfer_status mf_gguf_read_metadata(mf_gguf_part *p, mf_cursor *c, uint64_t n_kv, minfer_error *err);

/* Reads n tensor entries at c, which belong to the last part of g, and places their data behind them. */
minfer_status mf_gguf_read_directory(mf_gguf *g, mf_cursor *c, uint64_t n, minfer_error *err);

/* Refuses a count of entries that the bytes left could not hold, or that is beyond all reason. */
minfer_status mf_gguf_check_count(const mf_cursor *c, uint64_t n, size_t min_bytes, const char *what,
                                  minfer_error *err);

/* Maps and reads one more file as the last part of g. */
minfer_status mf_gguf_add_part(mf_gguf *g, const char *path, minfer_error *err);
void mf_gguf_drop_parts(mf_gguf *g); /* back to empty */

/* g holds the file path alone: adds the other parts of its model, if it has any. */
minfer_status mf_gguf_complete_split(mf_gguf *g, const char *path, minfer_error *err);

const mf_gguf_kv *mf_gguf_part_find(const mf_gguf_part *p, const char *key);
minfer_status mf_gguf_part_u32(const mf_gguf_part *p, const char *key, uint32_t *out, bool *found,
                               minfer_error *err);

/* The end of a long path, so that a message has room for its cause. */
const char *mf_gguf_shown_path(const char *path);

#endif
