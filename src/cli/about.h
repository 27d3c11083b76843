/* Facts about the program as a whole: for its help, and for its manual pages. */
#ifndef GF_CLI_ABOUT_H
#define GF_CLI_ABOUT_H

#include <stdbool.h>
#include <stddef.h>

/* A kind of files. */
typedef struct gf_about_format {
    const char *name;
    const char *endings; /* of their names, the one that is written first; a space between them */
    bool read;           /* without an option that says what it is */
    bool written;
    const char *holds; /* what it can hold, and what is special about it: a sentence */
} gf_about_format;

/* An exit code. */
typedef struct gf_about_exit {
    const char *code;
    const char *brief; /* for all filters and commands, in a few words */
    const char *most;  /* a sentence, of those that are no tests */
    const char *test;  /* a sentence, of a filter that is one */
} gf_about_exit;

/* Something with a name, and a sentence about it. */
typedef struct gf_about_name {
    const char *name, *what;
} gf_about_name;

extern const char gf_about_summary[]; /* what it is, in a line */
/* Each ends with a row of NULL. */
extern const gf_about_format gf_about_formats[];
extern const gf_about_exit gf_about_exits[];
extern const gf_about_name gf_about_words[];       /* besides filters and commands: "help" */
extern const gf_about_name gf_about_environment[]; /* every variable that is read */

#endif
