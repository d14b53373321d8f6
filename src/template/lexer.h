/* Template text to tokens, with Jinja's rules for white space (trim_blocks and lstrip_blocks on, one newline
 * at the end dropped, all line ends made \n). Comments and white space inside tags are gone. */
#ifndef MF_TEMPLATE_LEXER_H
#define MF_TEMPLATE_LEXER_H

#include "template/value.h"

typedef enum mf_ttok {
    MF_TOK_EOF,
    MF_TOK_DATA, /* text between tags: value */
    MF_TOK_PRINT_BEGIN,
    MF_TOK_PRINT_END,
    MF_TOK_BLOCK_BEGIN,
    MF_TOK_BLOCK_END,
    MF_TOK_NAME,   /* value, a string */
    MF_TOK_STRING, /* value, unescaped */
    MF_TOK_NUMBER, /* value, an int or float */
    MF_TOK_ADD,
    MF_TOK_SUB,
    MF_TOK_MUL,
    MF_TOK_DIV,
    MF_TOK_FLOORDIV,
    MF_TOK_MOD,
    MF_TOK_POW,
    MF_TOK_TILDE,
    MF_TOK_LBRACKET,
    MF_TOK_RBRACKET,
    MF_TOK_LPAREN,
    MF_TOK_RPAREN,
    MF_TOK_LBRACE,
    MF_TOK_RBRACE,
    MF_TOK_EQ,
    MF_TOK_NE,
    MF_TOK_GT,
    MF_TOK_GE,
    MF_TOK_LT,
    MF_TOK_LE,
    MF_TOK_ASSIGN,
    MF_TOK_DOT,
    MF_TOK_COLON,
    MF_TOK_PIPE,
    MF_TOK_COMMA,
    MF_TOK_SEMICOLON,
    MF_TOK_COUNT,
} mf_ttok;

typedef struct mf_ttoken {
    uint8_t type; /* mf_ttok */
    uint32_t line, column;
    mf_tval value;
} mf_ttoken;

typedef struct mf_ttokens {
    mf_ttoken *v; /* the last one is EOF */
    size_t n, cap;
} mf_ttokens;

/* src is valid UTF-8. Tokens and their strings are in r's arena. */
minfer_status mf_tlex_all(mf_trender *r, const char *src, size_t n, mf_ttokens *out);
/* "end of print statement", "name", ... */
const char *mf_ttok_name(mf_ttok t);
/* A syntax error at a place. */
minfer_status mf_tsyntax_error(mf_trender *r, uint32_t line, uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
