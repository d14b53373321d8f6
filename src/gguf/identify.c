/* What a file that is no GGUF is instead: users meet error pages, pointers and other formats under the name
 * model.gguf, and a message that says so saves them the search. Owns nothing. */
#include "gguf/internal.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <strings.h>

static const struct {
    const char *bytes;
    size_t n;
    const char *what;
} signatures[] = {
    {"version https://git-lfs", 23,
     "a Git LFS pointer: the model itself has not been fetched (git lfs pull)"},
    {"PK\x03\x04", 4, "a zip archive, perhaps a PyTorch checkpoint: convert it to GGUF first"},
    {"\x80\x02", 2, "a Python pickle, perhaps a PyTorch checkpoint: convert it to GGUF first"},
    {"\x80\x03", 2, "a Python pickle, perhaps a PyTorch checkpoint: convert it to GGUF first"},
    {"\x80\x04", 2, "a Python pickle, perhaps a PyTorch checkpoint: convert it to GGUF first"},
    {"lmgg", 4, "an old GGML file from before GGUF: convert the model anew"},
    {"fmgg", 4, "an old GGMF file from before GGUF: convert the model anew"},
    {"tjgg", 4, "an old GGJT file from before GGUF: convert the model anew"},
    {"algg", 4, "an old GGLA adapter from before GGUF: convert it anew"},
    {"FUGG", 4, "a big-endian GGUF file: only little-endian ones can be read"},
    {"\x1f\x8b", 2, "a gzip file: unpack it first"},
    {"\x28\xb5\x2f\xfd", 4, "a zstd file: unpack it first"},
    {"BZh", 3, "a bzip2 file: unpack it first"},
    {"\xfd"
     "7zXZ",
     5, "an xz file: unpack it first"},
    {"7z\xbc\xaf", 4, "a 7z archive: unpack it first"},
    {"\x89HDF", 4, "an HDF5 file: convert the model to GGUF first"},
};

enum { LOOK_AT = 512 }; /* bytes that tell text from data */

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

static bool is_text(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((p[i] < 32 && p[i] != '\t' && p[i] != '\n' && p[i] != '\r') || p[i] == 127) return false;
    return mf_utf8_valid((const char *)p, n - mf_utf8_incomplete_tail((const char *)p, n));
}

/* A header length of 8 bytes and JSON. */
static bool is_safetensors(const uint8_t *p, size_t n)
{
    return n >= 10 && p[8] == '{' && mf_load_u64(p) < (uint64_t)1 << 32;
}

static const char *kind_of_text(const uint8_t *p, size_t n)
{
    size_t i = 0;
    while (i < n && (p[i] <= ' ' || p[i] == 0xEF || p[i] == 0xBB || p[i] == 0xBF)) i++;
    const char *s = (const char *)p + i;
    if (n - i >= 5 && (strncasecmp(s, "<html", 5) == 0 || strncasecmp(s, "<!doc", 5) == 0))
        return "an HTML page, perhaps the error page of a download";
    if (n > i && p[i] == '<') return "an XML or HTML text, perhaps the error page of a download";
    if (n > i && p[i] == '{') return "a JSON text, perhaps the error message of a download";
    return "a text file";
}

const char *mf_gguf_identify(const uint8_t *data, size_t size)
{
    if (size == 0) return "an empty file";
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (size >= signatures[i].n && memcmp(data, signatures[i].bytes, signatures[i].n) == 0)
            return signatures[i].what;
    size_t n = size < LOOK_AT ? size : LOOK_AT;
    if (all_zero(data, n)) return "zero bytes, perhaps a download that never finished";
    if (is_safetensors(data, size)) return "a safetensors file: convert it to GGUF first";
    if (is_text(data, n)) return kind_of_text(data, n);
    return "of an unknown format";
}
