/* The tensors of a model, counted by type. */
#ifndef APP_CLI_TYPES_H
#define APP_CLI_TYPES_H

#include "minfer.h"

typedef struct cli_type {
    const char *name;
    size_t n;
    uint64_t bytes;
} cli_type;

enum { CLI_MAX_TYPES = 64 };

/* In the order in which types occur; returns how many there are. */
size_t cli_types(const minfer_model *m, size_t n_tensors, cli_type types[CLI_MAX_TYPES]);

#endif
