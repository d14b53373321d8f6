/* The tensors of a model, counted by type. */
#include "cli/types.h"

#include <string.h>

size_t cli_types(const minfer_model *m, size_t n_tensors, cli_type types[CLI_MAX_TYPES])
{
    size_t n = 0;
    for (size_t i = 0; i < n_tensors; i++) {
        minfer_tensor_info t;
        size_t k = 0;
        minfer_model_tensor(m, i, &t);
        while (k < n && strcmp(types[k].name, t.type) != 0) k++;
        if (k == CLI_MAX_TYPES) continue;
        if (k == n) types[n++] = (cli_type){.name = t.type};
        types[k].n++;
        types[k].bytes += t.bytes;
    }
    return n;
}
