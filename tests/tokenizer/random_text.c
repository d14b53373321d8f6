/* Random well-formed text. */
#include "tokenizer/random_text.h"
#include "support/support.h"

#include "base/utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

/* ASCII twice, blanks, Latin, marks twice, Greek and Cyrillic, Devanagari, jamo twice, kana with voicing
 * marks, ideographs, syllables, compatibility characters, emoji, musical symbols that decompose, everything.
 */
static const range ranges[] = {
    {0, 0x7F},          {0x20, 0x7E},     {0x2000, 0x200D}, {0xA0, 0x24F},      {0x300, 0x345},
    {0x300, 0x330},     {0x370, 0x45F},   {0x900, 0x96F},   {0x1100, 0x11FF},   {0x1161, 0x11C2},
    {0x3041, 0x309A},   {0x4E00, 0x4E40}, {0xAC00, 0xAC40}, {0xF900, 0xFB06},   {0x1F300, 0x1F64F},
    {0x1D15E, 0x1D164}, {0x1E00, 0x1EFF}, {0x0, 0xD7FF},    {0xE000, 0x10FFFF},
};

uint32_t random_char(mf_rng *r)
{
    range g = ranges[random_below(r, sizeof ranges / sizeof *ranges)];
    return g.first + random_below(r, g.last - g.first + 1);
}

void random_text(mf_rng *r, uint32_t max_chars, mf_buf *out)
{
    out->len = 0;
    for (uint32_t n = random_below(r, max_chars + 1); n > 0; n--) {
        char bytes[4];
        assert_true(mf_buf_append(out, bytes, mf_utf8_encode(random_char(r), bytes)));
    }
    assert_true(mf_buf_append(out, "", 0)); /* data is not NULL even when empty */
}
