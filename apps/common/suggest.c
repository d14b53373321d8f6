/* Names near to what was typed. */
#include "common/options.h"

#include <string.h>

enum { LONGEST = 32 };

/* Levenshtein distance of names of at most LONGEST bytes; a swap of neighbours counts as one. */
static size_t distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (na > LONGEST || nb > LONGEST) return LONGEST;
    for (size_t i = 0; i <= na; i++) d[i][0] = i;
    for (size_t j = 0; j <= nb; j++) d[0][j] = j;
    for (size_t i = 1; i <= na; i++)
        for (size_t j = 1; j <= nb; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[na][nb];
}

const char *app_nearest(const char *typed, app_name_fn *names, const void *user)
{
    const char *best = NULL, *name;
    size_t n = strlen(typed), least = n < 3 ? 1 : n < 6 ? 2 : 3;
    for (size_t i = 0; (name = names(user, i)); i++) {
        size_t d = *name ? distance(typed, name) : LONGEST;
        size_t common = strlen(name) < n ? strlen(name) : n; /* one may be the beginning of the other */
        bool begins = common >= 3 && strncmp(name, typed, common) == 0;
        if (d > least && !(begins && !best)) continue;
        best = name;
        if (d < least) least = d;
    }
    return best;
}

static const char *command_name(const void *user, size_t i)
{
    (void)user;
    return i < APP_N_COMMANDS ? app_commands[i].name : NULL;
}

const char *app_nearest_command(const char *typed)
{
    return app_nearest(typed, command_name, NULL);
}
