/* Sorting as Python's sorted(): stable, by keys, with errors where two keys have no order. */
#ifndef MF_TEMPLATE_SORT_H
#define MF_TEMPLATE_SORT_H

#include "template/value.h"

/* Sorts items by keys (of the same length, sorted along with them). */
minfer_status mf_tsort(mf_trender *r, mf_tlist *items, mf_tlist *keys, bool reverse);
/* The entries of a dictionary as tuples, in the order of their keys. */
minfer_status mf_tsort_entries(mf_trender *r, const mf_tdict *d, mf_tlist **out);

#endif
