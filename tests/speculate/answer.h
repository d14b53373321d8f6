/* Generating with and without drafts, and comparing all that can be seen of it. */
#ifndef MF_TESTS_ANSWER_H
#define MF_TESTS_ANSWER_H

#include "support/support.h"

#include "runtime/draft.h"
#include "runtime/engine.h"

enum { MAX_IDS = 640 };

/* What one generation gave. */
typedef struct answer {
    minfer_status st;
    minfer_error err;
    int32_t ids[MAX_IDS]; /* as told to on_text, -1 among them */
    size_t n_ids, cancel; /* cancel: after so many tokens; 0: never */
    mf_buf text;
    minfer_generate_result r;
    int32_t timeline[MAX_IDS]; /* what the session holds then */
    size_t n_timeline;
} answer;

/* How to generate; everything but the draft. */
typedef struct task {
    minfer_sampling sampling;
    minfer_generate_options o;
    minfer_grammar *grammar; /* NULL: none */
    size_t cancel;
    const int32_t *prompt;
    size_t n_prompt; /* the first of these are in the session, the last one is fed */
} task;

/* Rolls s back to the prompt without its last token, feeding what is missing, and generates. */
void answer_make(answer *a, minfer_session *s, const task *t, minfer_draft *draft);
void answer_free(answer *a);

/* Fails where got differs from want in anything but time and counts of drafts; `what` names the case. */
void answer_compare(const answer *want, const answer *got, const char *what);

/* Drafts that are read from a text: right where it is, each token wrong with a share of `wrong`. */
typedef struct scripted_draft {
    minfer_draft base;
    const int32_t *text;
    size_t n;
    double wrong;
    int32_t n_vocab;
    mf_rng rng;
    size_t n_freed;
} scripted_draft;
void scripted_draft_init(scripted_draft *d, int32_t depth, const answer *truth, double wrong, int32_t n_vocab,
                         uint64_t seed);

#endif
