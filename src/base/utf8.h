/* UTF-8: decoding, encoding and where a text may be cut. Ill-formed bytes follow the Unicode Standard's table
 * 3-7: a maximal ill-formed part counts as one error. */
#ifndef MF_BASE_UTF8_H
#define MF_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MF_UTF8_BAD 0xFFFFFFFFu

/* Decodes the character at s (n >= 1 bytes are there). Returns how many bytes it takes, at least 1; *cp is
 * MF_UTF8_BAD when those bytes are ill-formed or cut off. */
size_t mf_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Writes cp (a scalar value) to out, returns 1..4. */
size_t mf_utf8_encode(uint32_t cp, char out[4]);

bool mf_utf8_valid(const char *s, size_t n);

/* How many bytes at the end of s begin a character that more bytes could complete (0..3). */
size_t mf_utf8_incomplete_tail(const char *s, size_t n);

/* Characters in s; each ill-formed part counts as one. */
size_t mf_utf8_count(const char *s, size_t n);

#endif
