/* Which variable a name means. Jinja decides that before anything runs: every name of a scope (template,
 * macro, loop body, with, capturing block) has one slot, filled from outside when the scope is entered. */
#ifndef MF_TEMPLATE_SCOPE_H
#define MF_TEMPLATE_SCOPE_H

#include "template/ast.h"

/* Fills the vars and scopes of all nodes under root and the scope of the template itself; refuses unknown
 * filters and tests (except where an if could keep them from running) and assignments to `loop` inside loops.
 */
minfer_status mf_tresolve_scopes(mf_trender *r, mf_tnode *root, mf_tscope *scope);

#endif
