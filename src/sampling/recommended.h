/* The sampling that a model's file recommends. */
#ifndef MF_SAMPLING_RECOMMENDED_H
#define MF_SAMPLING_RECOMMENDED_H

#include "gguf/gguf.h"

/* Puts the values of the file's general.sampling.* keys into the fields of *p whose bit (MINFER_SAMPLING_...)
 * is not set in `given`:
 *   temp, top_k, top_p, min_p, xtc_probability, xtc_threshold, penalty_repeat, penalty_last_n, mirostat,
 *   mirostat_tau, mirostat_eta
 * as the GGUF writers of llama.cpp name them; general.sampling.sequence has no meaning here, where the order
 * is fixed. A value of another type or out of the field's range is MINFER_ERR_FORMAT, naming file, key and
 * value, and leaves *p as it was. */
minfer_status mf_sampling_recommended(const mf_gguf *g, unsigned given, minfer_sampling *p,
                                      minfer_error *err);

#endif
