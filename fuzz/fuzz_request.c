/* Bodies of requests: what is taken is whole, what is refused says why as JSON. The first byte chooses the
 * endpoint. */
#include "server/reply.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const char *text, size_t n)
{
    json_error_t e;
    json_t *j = json_loadb(text, n, JSON_ALLOW_NUL, &e);
    if (!j) abort();
    json_decref(j);
}

static void check_refusal(const srv_request *r, const srv_error *e)
{
    mf_buf body = {0};
    if (r->mem.head || (e->status != 400 && e->status != 404) || !e->message[0] || !srv_error_body(e, &body))
        abort();
    check_json(body.data, body.len);
    mf_buf_free(&body);
}

static void check_grammar(const srv_request *r)
{
    for (int thinking = 0; thinking < 3; thinking++) {
        mf_buf text = {0};
        srv_error e;
        if (!srv_request_gbnf(r, (srv_thinking)thinking, &text, &e) && e.status != 400) abort();
        mf_buf_free(&text);
    }
}

static void check_chat(const srv_request *r)
{
    check_json(r->chat.messages, strlen(r->chat.messages));
    if (r->chat.tools) check_json(r->chat.tools, strlen(r->chat.tools));
    if (r->chat.kwargs) check_json(r->chat.kwargs, strlen(r->chat.kwargs));
    if (!r->chat.tools != !r->n_tools || (r->tool_choice == SRV_TOOLS_NONE) != !r->n_tools) abort();
    for (size_t i = 0; i < r->n_tools; i++)
        check_json(r->tools[i].parameters, strlen(r->tools[i].parameters));
}

static void check_request(const srv_request *r)
{
    if (r->endpoint == SRV_CHAT) check_chat(r);
    for (size_t i = 0; i < r->n_prompts; i++) {
        const srv_prompt *p = &r->prompts[i];
        if (p->text ? !mf_utf8_valid(p->text, p->n_text) : !p->n_ids) abort();
        for (size_t k = 0; k < p->n_ids; k++)
            if (p->ids[k] < 0 || p->ids[k] >= 1000) abort();
    }
    if (r->endpoint > SRV_COMPLETIONS) return;
    if (r->n < 1 || srv_reply_choices(r) > SRV_MAX_CHOICES || r->max_tokens < -1) abort();
    minfer_error err;
    if (minfer_sampling_check(&r->sampling, 1000, &err) != MINFER_OK) abort(); /* the ranges are those */
    check_grammar(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"made"};
    srv_context c = {.models = names, .n_models = 1, .n_vocab = 1000, .n_embd = 8};
    srv_request r;
    srv_error e;
    if (!size) return 0;
    minfer_sampling_init(&c.sampling);
    if (srv_request_parse((srv_endpoint)(data[0] % 5), (const char *)data + 1, size - 1, &c, &r, &e))
        check_request(&r);
    else
        check_refusal(&r, &e);
    srv_request_free(&r);
    return 0;
}
