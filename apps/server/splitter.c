/* Taking text apart: one step per state, each looking at the held text alone. */
#include "server/splitter.h"

#include <string.h>

enum {
    HELD_ARGS = 256,     /* arguments longer than this come out before they are complete */
    HELD_CALL = 1 << 16, /* a call of which nothing came out by then is none */
};

static const char blanks[] = " \t\r\n", blanks_or_end[] = " \t\r\n}";
static const char think_tag[] = "<think>", think_end[] = "</think>";
static const char call_tag[] = "<tool_call>", call_end[] = "</tool_call>";

void srv_splitter_init(srv_splitter *s, const srv_request *r, srv_thinking thinking, srv_part_fn *fn,
                       void *user)
{
    *s = (srv_splitter){.r = r, .fn = fn, .user = user, .state = SRV_SPLIT_START};
    if (thinking != SRV_THINKING_OPEN) return;
    s->state = SRV_SPLIT_THINK_START;
    if (!r->reasoning && !fn(user, SRV_CONTENT, 0, "<think>\n", 8)) s->failed = true;
}

void srv_splitter_free(srv_splitter *s)
{
    mf_buf_free(&s->held);
    srv_call_free(&s->call);
}

static void emit(srv_splitter *s, srv_part part, const char *text, size_t n)
{
    if (part == SRV_REASONING && !s->r->reasoning) part = SRV_CONTENT;
    if (n && !s->failed && !s->fn(s->user, part, s->n_calls ? s->n_calls - 1 : 0, text, n)) s->failed = true;
}

static void drop(srv_splitter *s, size_t n)
{
    s->held.len -= n;
    memmove(s->held.data, s->held.data + n, s->held.len);
}

static void emit_held(srv_splitter *s, srv_part part, size_t n)
{
    emit(s, part, s->held.data, n);
    drop(s, n);
}

/* ---- looking at the held text */

/* Bytes of set from `at` on. */
static size_t leading(const srv_splitter *s, size_t at, const char *set)
{
    size_t n = at;
    while (n < s->held.len && strchr(set, s->held.data[n]) && s->held.data[n]) n++;
    return n - at;
}

/* The first n bytes without what of set they end in. */
static size_t without_trailing(const srv_splitter *s, size_t n, const char *set)
{
    while (n && strchr(set, s->held.data[n - 1]) && s->held.data[n - 1]) n--;
    return n;
}

static bool has_at(const srv_splitter *s, size_t at, const char *tag)
{
    size_t n = strlen(tag);
    return s->held.len >= at + n && memcmp(s->held.data + at, tag, n) == 0;
}

/* What is held from `at` on may become the tag, and it is not the whole tag. */
static bool may_become(const srv_splitter *s, size_t at, const char *tag)
{
    size_t n = s->held.len - at;
    return n < strlen(tag) && memcmp(s->held.data + at, tag, n) == 0;
}

static bool find(const srv_splitter *s, const char *tag, size_t *at)
{
    const char *p = s->held.len ? memmem(s->held.data, s->held.len, tag, strlen(tag)) : NULL;
    if (p) *at = (size_t)(p - s->held.data);
    return p;
}

/* How much of the held text is certain to stand before a tag and what of set precedes it. */
static size_t certain(const srv_splitter *s, const char *tag, const char *set)
{
    size_t n = s->held.len, most = strlen(tag) - 1;
    for (size_t k = n < most ? n : most; k; k--) {
        if (memcmp(s->held.data + n - k, tag, k) != 0) continue;
        n -= k;
        break;
    }
    return without_trailing(s, n, set);
}

/* ---- steps: true when another one may follow */

static bool go(srv_splitter *s, srv_split_state next)
{
    s->state = next;
    return true;
}

static bool step_start(srv_splitter *s)
{
    size_t blank = leading(s, 0, blanks);
    if (blank == s->held.len || (!s->final && may_become(s, blank, think_tag))) return false;
    if (!has_at(s, blank, think_tag)) return go(s, SRV_SPLIT_ANSWER_START);
    size_t n = blank + strlen(think_tag);
    if (!s->r->reasoning) emit(s, SRV_CONTENT, s->held.data, n);
    drop(s, n);
    return go(s, SRV_SPLIT_THINK_START);
}

static bool step_skip_blanks(srv_splitter *s, srv_split_state next)
{
    if (s->r->reasoning) drop(s, leading(s, 0, blanks));
    return s->held.len && go(s, next);
}

static bool step_think(srv_splitter *s)
{
    const char *around = s->r->reasoning ? blanks : "";
    size_t at, tag = strlen(think_end);
    if (!find(s, think_end, &at)) {
        emit_held(s, SRV_REASONING, certain(s, think_end, around));
        return false;
    }
    size_t end = without_trailing(s, at, around);
    emit(s, SRV_REASONING, s->held.data, s->r->reasoning ? end : at + tag);
    drop(s, at + tag);
    return go(s, SRV_SPLIT_AFTER_THINK);
}

/* A call begins at `from` of the held text. */
static bool begin_call(srv_splitter *s, size_t from, bool tagged)
{
    srv_call_free(&s->call);
    s->call = (srv_call){.tools = s->r->tools, .n_tools = s->r->n_tools, .only = !tagged};
    s->from = s->at = from;
    s->emitted = 0;
    s->tagged = tagged;
    s->started = false;
    return go(s, SRV_SPLIT_CALL);
}

static bool step_answer_start(srv_splitter *s)
{
    static const char *const openings[] = {"```json", "```", ""};
    bool bare = s->r->tool_choice == SRV_TOOLS_AUTO && s->r->constraint == SRV_FREE;
    size_t blank = leading(s, 0, blanks);
    if (!bare) return go(s, SRV_SPLIT_ANSWER);
    if (blank == s->held.len) return false;
    for (int i = 0; i < 3; i++) {
        if (!s->final && may_become(s, blank, openings[i])) return false;
        if (!has_at(s, blank, openings[i])) continue;
        size_t from = blank + strlen(openings[i]);
        from += leading(s, from, blanks);
        if (from == s->held.len) return false;
        if (s->held.data[from] == '{') return begin_call(s, from, false);
    }
    return go(s, SRV_SPLIT_ANSWER);
}

static bool step_answer(srv_splitter *s)
{
    size_t at;
    if (s->r->tool_choice == SRV_TOOLS_NONE) {
        emit_held(s, SRV_CONTENT, s->held.len);
        return false;
    }
    if (!find(s, call_tag, &at)) {
        emit_held(s, SRV_CONTENT, certain(s, call_tag, blanks));
        return false;
    }
    size_t end = without_trailing(s, at, blanks);
    emit_held(s, SRV_CONTENT, end);
    return begin_call(s, at - end + strlen(call_tag), true);
}

static void emit_call(srv_splitter *s)
{
    if (!s->started) {
        s->n_calls++;
        s->started = true;
        emit(s, SRV_CALL_START, s->call.tool->name, strlen(s->call.tool->name));
    }
    emit(s, SRV_CALL_ARGS, s->call.args.data + s->emitted, s->call.args.len - s->emitted);
    s->emitted = s->call.args.len;
}

static bool complete_call(srv_splitter *s)
{
    if (!s->call.args.len && !mf_buf_str(&s->call.args, "{}")) s->failed = true;
    if (!s->failed) emit_call(s);
    drop(s, s->at);
    s->done = !s->r->parallel_tool_calls;
    return go(s, s->done ? SRV_SPLIT_OVER : SRV_SPLIT_AFTER_CALL);
}

/* The held text from s->at on does not continue the call. */
static bool give_up_call(srv_splitter *s)
{
    if (s->started && s->call.args_done) return complete_call(s);
    if (s->started) {
        emit_call(s);
        drop(s, s->at);
        return go(s, SRV_SPLIT_BROKEN_CALL);
    }
    emit_held(s, SRV_CONTENT, s->from);
    return go(s, SRV_SPLIT_ANSWER);
}

/* A closing tag may end a call that lacks brackets, and one whose string was not closed in its line. */
static bool tag_counts(const srv_splitter *s)
{
    const srv_json_scan *scan = &s->call.scan;
    if (s->held.data[s->at] != '<') return false;
    return (scan->state == SRV_SCAN_AFTER && scan->depth == 1) ||
           (scan->state == SRV_SCAN_STRING && s->at > s->from && s->held.data[s->at - 1] == '\n');
}

/* One byte more; true when the call is decided, one way or the other. Whether it comes out before it is
 * complete may depend on its bytes alone, not on how they came. */
static bool call_byte(srv_splitter *s)
{
    size_t hold = s->r->tool_choice == SRV_TOOLS_FORCED ? 0 : HELD_ARGS;
    if (!srv_call_byte(&s->call, s->held.data[s->at])) s->failed = true;
    if (s->failed || s->call.scan.state == SRV_SCAN_BAD) return true;
    s->at++;
    if (s->call.scan.state == SRV_SCAN_DONE || (!s->started && s->at - s->from > HELD_CALL)) return true;
    if (!s->started && srv_call_streams(&s->call) && s->call.args.len > hold) emit_call(s);
    return false;
}

static bool step_call(srv_splitter *s)
{
    while (s->at < s->held.len) {
        if (tag_counts(s)) {
            if (!s->final && may_become(s, s->at, call_end)) break;
            if (has_at(s, s->at, call_end))
                return srv_call_ready(&s->call) ? complete_call(s) : give_up_call(s);
        }
        if (!call_byte(s)) continue;
        bool whole = s->call.scan.state == SRV_SCAN_DONE && s->call.tool;
        return !s->failed && (whole ? complete_call(s) : give_up_call(s));
    }
    if (s->final) return srv_call_ready(&s->call) ? complete_call(s) : give_up_call(s);
    if (s->started) emit_call(s);
    return false;
}

static bool step_broken_call(srv_splitter *s)
{
    size_t at;
    if (!s->tagged) {
        emit_held(s, SRV_CALL_ARGS, s->held.len);
        return false;
    }
    if (!find(s, call_end, &at)) {
        emit_held(s, SRV_CALL_ARGS, certain(s, call_end, blanks_or_end));
        return false;
    }
    size_t end = without_trailing(s, at, blanks);
    if (end && s->held.data[end - 1] == '}') end = without_trailing(s, end - 1, blanks); /* the call's own */
    emit(s, SRV_CALL_ARGS, s->held.data, end);
    drop(s, at);
    s->done = !s->r->parallel_tool_calls;
    return go(s, s->done ? SRV_SPLIT_OVER : SRV_SPLIT_AFTER_CALL);
}

static bool step_after_call(srv_splitter *s)
{
    const char *end = s->tagged ? call_end : "```";
    size_t blank = leading(s, 0, blanks);
    if (blank == s->held.len || may_become(s, blank, end)) return false;
    if (has_at(s, blank, end)) {
        drop(s, blank + strlen(end));
        return go(s, SRV_SPLIT_BETWEEN_CALLS);
    }
    if (s->held.data[blank] == '{') return begin_call(s, blank, s->tagged);
    if (s->held.data[blank] != '}') return go(s, SRV_SPLIT_ANSWER);
    drop(s, blank + 1); /* one too many */
    return true;
}

static bool step(srv_splitter *s)
{
    switch (s->state) {
    case SRV_SPLIT_START: return step_start(s);
    case SRV_SPLIT_THINK_START: return step_skip_blanks(s, SRV_SPLIT_THINK);
    case SRV_SPLIT_THINK: return step_think(s);
    case SRV_SPLIT_AFTER_THINK: return step_skip_blanks(s, SRV_SPLIT_ANSWER_START);
    case SRV_SPLIT_ANSWER_START: return step_answer_start(s);
    case SRV_SPLIT_ANSWER: return step_answer(s);
    case SRV_SPLIT_CALL: return step_call(s);
    case SRV_SPLIT_BROKEN_CALL: return step_broken_call(s);
    case SRV_SPLIT_AFTER_CALL: return step_after_call(s);
    case SRV_SPLIT_BETWEEN_CALLS:
        return leading(s, 0, blanks) < s->held.len &&
               go(s, s->tagged ? SRV_SPLIT_ANSWER : SRV_SPLIT_ANSWER_START);
    case SRV_SPLIT_OVER: break;
    }
    s->held.len = 0;
    return false;
}

static void run(srv_splitter *s)
{
    while (!s->failed && s->held.len && step(s)) {}
}

bool srv_splitter_push(srv_splitter *s, const char *text, size_t n)
{
    if (!s->failed && n && !mf_buf_append(&s->held, text, n)) s->failed = true;
    run(s);
    return !s->failed;
}

/* What the last step left is what might have become more, and did not. */
bool srv_splitter_finish(srv_splitter *s)
{
    s->final = true;
    run(s);
    if (s->failed || !s->held.len) return !s->failed;
    if (s->state == SRV_SPLIT_THINK || s->state == SRV_SPLIT_THINK_START)
        emit(s, SRV_REASONING, s->held.data, without_trailing(s, s->held.len, s->r->reasoning ? blanks : ""));
    else if (s->state == SRV_SPLIT_BROKEN_CALL)
        emit(s, SRV_CALL_ARGS, s->held.data, s->held.len);
    else if (s->state != SRV_SPLIT_AFTER_CALL && s->state != SRV_SPLIT_BETWEEN_CALLS)
        emit(s, SRV_CONTENT, s->held.data, s->held.len);
    s->held.len = 0;
    return !s->failed;
}
