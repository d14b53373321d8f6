/* Samplers as the options want them. */
#ifndef APP_CLI_SAMPLER_H
#define APP_CLI_SAMPLER_H

#include "common/options.h"

/* What the user gave, else what the model's file recommends, else the defaults. *seed: the one that is used,
 * a random one where none is given. grammar: NULL for none; the sampler keeps what it uses of it. */
minfer_status cli_sampler_create(const app_options *o, const minfer_model *m, minfer_grammar *grammar,
                                 minfer_sampler **out, uint64_t *seed, minfer_error *err);

#endif
