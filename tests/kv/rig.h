/* What tests of sessions share: engines of small caches, also mixed with the test device. */
#ifndef MF_TESTS_KV_RIG_H
#define MF_TESTS_KV_RIG_H

#include "device/test_device.h"
#include "support/support.h"

#include "runtime/engine.h"

enum { RIG_MAX_VOCAB = 600 };

typedef struct rig_options {
    minfer_cache_type cache;
    int32_t n_ctx, n_batch, threads;
    bool mixed;       /* nodes at random on the CPU and the test device */
    bool causal_only; /* the test device, where it takes part, reads no explicit windows */
} rig_options;

extern const char *const rig_models[3]; /* tiny ones, one per architecture */
extern const minfer_cache_type rig_caches[3];

minfer_model *rig_model(const char *file); /* of tests/data/tiny */
minfer_engine *rig_engine(const minfer_model *m, const rig_options *o);
size_t rig_n_vocab(const minfer_engine *e);
minfer_session *rig_session(minfer_engine *e);
void rig_feed(minfer_session *s, const int32_t *tokens, size_t n, float *logits, size_t n_logits);
/* A folder of the test program's own: group setup and teardown, and paths in it (a ring of 8). */
int rig_folder_make(void **state);
int rig_folder_drop(void **state);
const char *rig_path(const char *name);

/* Saves with a text of the host's; restores, which must give that text back. */
void rig_save(const minfer_session *s, const char *path, const char *host);
minfer_session *rig_restore(minfer_engine *e, const char *path, const char *host);

void rig_random_tokens(mf_rng *r, size_t n_vocab, int32_t *out, size_t n);

#endif
