/* Comparing the results of a case: with its formula, with the bits of scalar C, with what a device may not
 * touch. Each says in words where the first difference is. */
#ifndef MF_TESTS_OPS_CHECK_H
#define MF_TESTS_OPS_CHECK_H

#include "ops/rig.h"
#include "ops/want.h"

bool op_check_formula(const op_case *c, const op_want *w, const op_result *r, char why[OP_WHY]);
/* Rows of written cells by formula; all other bytes of the cache are as they were. */
bool op_check_cache(const op_case *c, const op_data *d, const op_want *w, const op_result *r,
                    char why[OP_WHY]);
bool op_check_bits(const op_case *c, const op_data *d, const op_result *want, const op_result *r,
                   char why[OP_WHY]);

/* What a table of capabilities says about a combination, read independently of mf_caps_has. */
bool op_declared(const mf_caps *caps, mf_op op, mf_type type, mf_window window, mf_type cache);

#endif
