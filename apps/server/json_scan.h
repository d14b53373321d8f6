/* JSON read byte by byte, as a model writes it: is it still JSON, and is it complete? Owns no text. */
#ifndef APP_SERVER_JSON_SCAN_H
#define APP_SERVER_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

enum { SRV_SCAN_DEPTH = 64 };

typedef enum srv_scan_state {
    SRV_SCAN_VALUE,        /* a value comes; zero, so that a zeroed scan is ready */
    SRV_SCAN_VALUE_OR_END, /* after [ */
    SRV_SCAN_KEY,          /* after , in an object */
    SRV_SCAN_KEY_OR_END,   /* after { */
    SRV_SCAN_COLON,
    SRV_SCAN_AFTER, /* a value is complete: , or a closing bracket */
    SRV_SCAN_STRING,
    SRV_SCAN_ESCAPE,
    SRV_SCAN_HEX,
    SRV_SCAN_WORD,      /* true, false, null */
    SRV_SCAN_MINUS,     /* numbers: after - */
    SRV_SCAN_ZERO,      /* after a leading 0 */
    SRV_SCAN_DIGITS,    /* before the point */
    SRV_SCAN_POINT,     /* after it */
    SRV_SCAN_FRACTION,  /* its digits */
    SRV_SCAN_EXPONENT,  /* after e */
    SRV_SCAN_EXP_SIGN,  /* after its sign */
    SRV_SCAN_EXP_DIGIT, /* its digits */
    SRV_SCAN_DONE,
    SRV_SCAN_BAD,
} srv_scan_state;

typedef struct srv_json_scan { /* zero-initialise */
    srv_scan_state state;
    int depth;        /* open brackets */
    uint64_t objects; /* bit d - 1: the d-th of them is { */
    bool key;         /* the string being read is a key */
    uint8_t n_hex;    /* hex digits still to come */
    const char *word; /* what is left of a word */
} srv_json_scan;

/* Takes one byte. Control characters within strings are let pass (models write line ends there); anything
 * else that is no JSON leads to SRV_SCAN_BAD, which stays. Numbers outside of brackets are not taken. */
void srv_json_scan_byte(srv_json_scan *s, char c);

#endif
