/* The files of the chat page, embedded when the program is built. */
#ifndef APP_SERVER_PAGE_H
#define APP_SERVER_PAGE_H

#include <stddef.h>

typedef struct srv_page_file {
    const char *path, *type; /* as they are asked for and told */
    const unsigned char *data;
    size_t n;
} srv_page_file;
extern const srv_page_file srv_page_files[];
extern const size_t srv_n_page_files;

#endif
