/* Keys, origins, addresses. */
#include "server/access.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

/* 1 when equal, in a time that depends on the lengths only. */
static unsigned equal(const char *given, size_t n, const char *key)
{
    size_t n_key = strlen(key);
    unsigned differ = n != n_key;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned)(unsigned char)given[i] ^ (unsigned)(unsigned char)key[n_key ? i % n_key : 0];
    return ((differ | (0u - differ)) >> 31) ^ 1u;
}

static unsigned fits_any(const srv_texts *keys, const char *given)
{
    unsigned found = 0;
    for (size_t i = 0; i < keys->n; i++) found |= equal(given, strlen(given), keys->v[i]);
    return found;
}

bool srv_key_fits(const srv_texts *keys, const char *authorization, const char *x_api_key)
{
    static const char scheme[] = "Bearer ";
    unsigned found = keys->n == 0;
    if (authorization && strncasecmp(authorization, scheme, sizeof scheme - 1) == 0) {
        const char *key = authorization + sizeof scheme - 1;
        found |= fits_any(keys, key + strspn(key, " "));
    }
    if (x_api_key) found |= fits_any(keys, x_api_key);
    return found != 0;
}

const char *srv_origin_allowed(const srv_texts *origins, const char *origin)
{
    for (size_t i = 0; i < origins->n; i++) {
        if (strcmp(origins->v[i], "*") == 0) return "*";
        if (origin && strcasecmp(origins->v[i], origin) == 0) return origins->v[i];
    }
    return NULL;
}

bool srv_type_fits(const char *content_type)
{
    static const char *const fits[] = {"application/json", "text/json", "text/plain",
                                       "application/x-www-form-urlencoded"};
    if (!content_type) return true;
    size_t n = strcspn(content_type, "; \t");
    if (n == 0 || (n > 5 && strncasecmp(content_type + n - 5, "+json", 5) == 0)) return true;
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++)
        if (strlen(fits[i]) == n && strncasecmp(content_type, fits[i], n) == 0) return true;
    return false;
}

bool srv_is_loopback(const char *host)
{
    struct in_addr a;
    struct in6_addr b;
    if (strcasecmp(host, "localhost") == 0) return true;
    if (inet_pton(AF_INET, host, &a) == 1) return ntohl(a.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &b) == 1 && IN6_IS_ADDR_LOOPBACK(&b);
}
