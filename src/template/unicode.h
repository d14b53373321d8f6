/* Unicode as Python's str sees it: classes of characters, case, white space, line ends. Data from utf8proc;
 * where that is simpler than Python's (see docs/templates.md), the difference is listed. */
#ifndef MF_TEMPLATE_UNICODE_H
#define MF_TEMPLATE_UNICODE_H

#include "template/value.h"

/* The character at p, or the one that ends at end (more than start); returns its bytes. Valid UTF-8 only. */
size_t mf_tuc_at(const char *p, uint32_t *cp);
size_t mf_tuc_before(const char *start, const char *end, uint32_t *cp);

bool mf_tuc_is_space(uint32_t cp);   /* str.isspace, strip(), \s */
bool mf_tuc_is_newline(uint32_t cp); /* where splitlines() cuts */
bool mf_tuc_is_printable(uint32_t cp);
bool mf_tuc_is_alpha(uint32_t cp);
bool mf_tuc_is_decimal(uint32_t cp);
bool mf_tuc_is_digit(uint32_t cp);
bool mf_tuc_is_numeric(uint32_t cp);
bool mf_tuc_is_upper(uint32_t cp);
bool mf_tuc_is_lower(uint32_t cp);
bool mf_tuc_is_title(uint32_t cp);
bool mf_tuc_is_word(uint32_t cp); /* \w */
bool mf_tuc_is_ident(uint32_t cp, bool first);

typedef enum mf_tcase { MF_CASE_UPPER, MF_CASE_LOWER, MF_CASE_TITLE, MF_CASE_FOLD } mf_tcase;
/* Appends the character at offset i of s in another case; *used is its length. */
minfer_status mf_tuc_convert(mf_trender *r, mf_tsb *out, mf_tcase to, const mf_tstr *s, size_t i,
                             size_t *used);
/* The whole of s. */
minfer_status mf_tuc_convert_all(mf_trender *r, mf_tcase to, const mf_tstr *s, mf_tval *out);
/* First character title case, the rest lower. */
minfer_status mf_tuc_capitalize(mf_trender *r, const mf_tstr *s, mf_tval *out);

#endif
