/* The cache of model files: what lies in its folders, and which of it a name means. Reads folders, never the
 * files in them; opens nothing, downloads nothing, and leaves nothing behind. Behind minfer_hub_list and
 * minfer_hub_resolve.
 *
 *   DIR/FILE.gguf                       FILE                          put there by hand or by tools
 *   DIR/hf/OWNER/REPO/FILE.gguf         hf:OWNER/REPO:FILE
 *   DIR/ollama/MODEL/TAG.gguf           ollama:MODEL:TAG
 *
 * REPO or MODEL is up to two folders; folders below them are part of FILE ("Q8_0/big"). FILE is without .gguf
 * and, for a split model, without its part number: all parts are one model. Hidden names, empty files and
 * files of other endings are passed over. Links are followed. */
#ifndef MF_HUB_HUB_H
#define MF_HUB_HUB_H

#include "base/mem.h"

typedef struct mf_hub_model {
    const char *name;       /* as shown: "hf:owner/repo:Q8_0/big" */
    const char *repo;       /* "hf:owner/repo"; "" for files in DIR itself */
    const char *file;       /* "Q8_0/big", the end of name */
    const char *path;       /* of the file, of a split model the first part that is there */
    uint64_t bytes;         /* of all parts that are there */
    uint32_t part, n_parts; /* of path; 0 when not split */
} mf_hub_model;

typedef struct mf_hub {   /* zero-initialise */
    mf_hub_model *models; /* sorted by name */
    size_t n, cap;
    mf_arena arena; /* their strings */
} mf_hub;

/* A folder that does not exist has no models; one that cannot be read is MINFER_ERR_IO. */
minfer_status mf_hub_scan(const char *dir, mf_hub *out, minfer_error *err);
void mf_hub_free(mf_hub *h);

/* How well what a user typed fits a model, from not at all to best; the case of ASCII letters never matters.
 */
typedef enum mf_hub_fit {
    MF_HUB_NO_FIT,
    MF_HUB_PREFIX, /* the beginning of the file's name up to one of - . _ : / (but 2 is no prefix of 2.5) */
    MF_HUB_UNQUANTIZED, /* the file's name without its quantization; or only that, after REPO: */
    MF_HUB_FILE,        /* the file's name, or all of REPO */
    MF_HUB_NAME,        /* the name as shown */
} mf_hub_fit;

/* typed may end in .gguf and may have a part number. With hf: or ollama: in front, REPO has to fit whole. */
mf_hub_fit mf_hub_fits(const mf_hub_model *m, const char *typed);

/* Does typed begin with hf: or ollama:? */
bool mf_hub_has_source(const char *typed);

/* Length of a file's name (n bytes, without .gguf) before a part number "-00001-of-00003"; n when it has
 * none. Receives both numbers, or zeros. */
size_t mf_hub_split(const char *s, size_t n, uint32_t *part, uint32_t *n_parts);

/* Length of a name before its quantization: "-Q4_K_M", ".Q4_1", "-UD-IQ2_XXS", "_f16"; n when it has none. */
size_t mf_hub_unquantized(const char *s, size_t n);

/* Length without ".gguf" in any case; n when it has none. */
size_t mf_hub_stem(const char *s, size_t n);

#endif
