/* Reading grammar files. */
#include "common/grammar.h"

#include "base/filemap.h"

#include <string.h>

enum { MAX_FILE = 1 << 26 };

minfer_status app_grammar_check(const app_options *o, minfer_error *err)
{
    const char *file = o->grammar ? o->grammar : o->json_schema;
    if (o->grammar && o->json_schema)
        return mf_fail(err, MINFER_ERR_ARG, "--grammar and --json-schema cannot both be given");
    if (file && strcmp(file, "-") == 0 && !o->prompt && !o->words.n && !o->tokens.n)
        return mf_fail(err, MINFER_ERR_ARG, "stdin cannot be the prompt and the %s at once",
                       o->grammar ? "grammar" : "schema");
    return MINFER_OK;
}

minfer_status app_grammar_load(const app_options *o, minfer_grammar **out, minfer_error *err)
{
    const char *file = o->grammar ? o->grammar : o->json_schema;
    char *text;
    size_t n;
    *out = NULL;
    if (!file) return MINFER_OK;
    MF_TRY(mf_file_read(file, MAX_FILE, &text, &n, err));
    minfer_status st = o->grammar ? minfer_grammar_create(text, n, out, err)
                                  : minfer_grammar_create_schema(text, n, out, err);
    mf_free(text);
    if (st != MINFER_OK) mf_fail_prefix(err, st, "%s", strcmp(file, "-") ? file : "stdin");
    return st;
}
