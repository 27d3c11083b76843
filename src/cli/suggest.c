#include "suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_LENGTH 31 /* no name is longer */

gf_cli_guess gf_cli_guess_begin(const char *word, size_t length) {
    /* A third of the letters may be wrong: more is another word. */
    return (gf_cli_guess){.word = word, .length = length, .distance = (length + 2) / 3};
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many letters are to be put in, left out, changed, or exchanged with the next one: the optimal
 * string alignment distance. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t rows[3][MOST_LENGTH + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        size_t *next = before;
        before = last;
        last = now;
        now = next;
    }
    return last[m];
}

void gf_cli_guess_try(gf_cli_guess *guess, const char *name) {
    const size_t length = strlen(name);
    if (guess->length == 0 || guess->length > MOST_LENGTH || length > MOST_LENGTH)
        return;
    /* The beginning of a name is as good as the name. */
    const size_t from = guess->length >= 2 && strncmp(guess->word, name, guess->length) == 0
                            ? 0
                            : distance(guess->word, guess->length, name, length);
    if (from > guess->distance)
        return;
    if (from < guess->distance)
        guess->count = 0;
    guess->distance = from;
    if (guess->count < GF_CLI_SUGGESTIONS)
        guess->names[guess->count++] = name;
}

void gf_cli_guess_text(const gf_cli_guess *guess, const char *prefix, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < guess->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s",
                                 i == 0                 ? "; did you mean "
                                 : i + 1 < guess->count ? ", "
                                                        : " or ",
                                 prefix, guess->names[i]);
    if (guess->count && used < size)
        snprintf(text + used, size - used, "?");
}
