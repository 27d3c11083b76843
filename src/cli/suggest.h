/* What somebody may have meant. */
#ifndef GF_CLI_SUGGEST_H
#define GF_CLI_SUGGEST_H

#include <stddef.h>

#define GF_CLI_SUGGESTIONS 3

typedef struct gf_cli_guess {
    const char *names[GF_CLI_SUGGESTIONS]; /* the likeliest first */
    size_t count;
    size_t distance; /* of these from the word */
    const char *word;
    size_t length;
} gf_cli_guess;

/* A word, of which only the first `length` bytes count, that is no name. */
gf_cli_guess gf_cli_guess_begin(const char *word, size_t length);
/* One of the names that there are, which must live as long as the guess. */
void gf_cli_guess_try(gf_cli_guess *guess, const char *name);
/* "; did you mean --bins or --min?", each name behind that prefix, or "" */
void gf_cli_guess_text(const gf_cli_guess *guess, const char *prefix, char *text, size_t size);

#endif
