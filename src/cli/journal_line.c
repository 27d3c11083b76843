#include "journal_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* Newlines in names would end a line. Returns what was written to text, which has room for twice
 * the name. */
static size_t escape(const char *name, char *text) {
    char *to = text;
    for (; *name; name++) {
        if (*name == '\n' || *name == '\\')
            *to++ = '\\';
        *to++ = *name == '\n' ? 'n' : *name;
    }
    *to = 0;
    return (size_t)(to - text);
}

static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '\\' && from[1])
            from++;
        else {
            *to++ = *from;
            continue;
        }
        *to++ = *from == 'n' ? '\n' : *from;
    }
    *to = 0;
}

static uint32_t check_of(const char *text, size_t length) {
    const uint64_t hash = gf_cli_hash(GF_CLI_HASH_START, text, length);
    return (uint32_t)(hash ^ hash >> 32);
}

#define CHECK_LENGTH 9 /* eight digits and a blank */

/* The number that *at points to, and *at behind it and the blank that must follow. */
static bool read_number(char **at, int base, uint64_t *number) {
    char *end;
    *number = strtoull(*at, &end, base);
    if (end == *at || *end != ' ')
        return false;
    *at = end + 1;
    return true;
}

bool gf_cli_line_read(char *line, size_t length, gf_cli_made *made) {
    uint64_t check, time;
    char *at = line;
    if (length < CHECK_LENGTH || strlen(line) != length || !read_number(&at, 16, &check) ||
        at != line + CHECK_LENGTH || check != check_of(at, length - CHECK_LENGTH))
        return false;
    if (!read_number(&at, 16, &made->settings) || !read_number(&at, 16, &made->input) ||
        !read_number(&at, 10, &made->size) || !read_number(&at, 10, &time))
        return false;
    made->time = (int64_t)time;
    unescape(at);
    made->name = at;
    return true;
}

size_t gf_cli_line_write(const gf_cli_made *made, char *line) {
    char check[CHECK_LENGTH + 1];
    size_t used = CHECK_LENGTH;
    used += (size_t)snprintf(line + used, GF_CLI_LINE_ROOM - CHECK_LENGTH,
                             "%016" PRIx64 " %016" PRIx64 " %" PRIu64 " %" PRIu64 " ",
                             made->settings, made->input, made->size, (uint64_t)made->time);
    used += escape(made->name, line + used);
    snprintf(check, sizeof check, "%08" PRIx32 " ",
             check_of(line + CHECK_LENGTH, used - CHECK_LENGTH));
    memcpy(line, check, CHECK_LENGTH);
    line[used++] = '\n';
    return used;
}
