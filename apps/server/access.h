/* Who may ask: API keys, and pages of other origins. */
#ifndef APP_SERVER_ACCESS_H
#define APP_SERVER_ACCESS_H

#include "server/server.h"

/* Does one of the keys stand in these headers (either may be NULL)? Takes the same time whichever key is
 * wrong, and wherever. True when there are no keys. */
bool srv_key_fits(const srv_texts *keys, const char *authorization, const char *x_api_key);

/* What Access-Control-Allow-Origin says to a page of this origin; NULL: it is told nothing. */
const char *srv_origin_allowed(const srv_texts *origins, const char *origin);

/* Is this a type of body that is read as JSON? Also none at all, and curl's default. */
bool srv_type_fits(const char *content_type);

/* Is host a loopback address or name? */
bool srv_is_loopback(const char *host);

#endif
