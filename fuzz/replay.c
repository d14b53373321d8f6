/* Runs a fuzz target over files, without libFuzzer: every file of the named folders, and every prefix of the
 * small ones. */
#include "base/filemap.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PREFIX_LIMIT = 600, FILE_LIMIT = 1 << 26 };

/* Each run gets its own exact-size copy, so that a sanitizer sees the first byte read too far. */
static void run_copy(const char *data, size_t size)
{
    uint8_t *copy = mf_malloc(size);
    if (!copy) return;
    if (size) memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    mf_free(copy);
}

static int replay_file(const char *path)
{
    char *data;
    size_t size;
    minfer_error err;
    if (mf_file_read(path, FILE_LIMIT, &data, &size, &err) != MINFER_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    run_copy(data, size);
    if (size <= PREFIX_LIMIT)
        for (size_t n = 0; n < size; n++) run_copy(data, n);
    mf_free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int bad = 0, n = 0;
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        if (!d) {
            fprintf(stderr, "%s: no such folder\n", argv[i]);
            return 1;
        }
        for (struct dirent *e; (e = readdir(d));) {
            char path[1024];
            if (e->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            bad += replay_file(path);
            n++;
        }
        closedir(d);
    }
    printf("%d files\n", n);
    return bad || n == 0;
}
