/* What a shell can offer, as far as the descriptors tell. */
#ifndef PAGES_COMPLETE_H
#define PAGES_COMPLETE_H

#include <stddef.h>

#include "subject.h"

typedef enum complete_kind {
    COMPLETE_NOTHING, /* takes no value */
    COMPLETE_UNKNOWN, /* a number, or a text that nobody can guess */
    COMPLETE_WORDS,   /* one of some words */
    COMPLETE_LIST,    /* some of them, with commas in between */
    COMPLETE_FILES,
    COMPLETE_IMAGES,
    COMPLETE_FOLDERS
} complete_kind;

#define COMPLETE_MAX_WORDS 64

/* The words are NULL-terminated. */
typedef struct complete_values {
    complete_kind kind;
    const char *words[COMPLETE_MAX_WORDS + 1];
} complete_values;

complete_values complete_option(const gf_param *param);
complete_values complete_operands(const subject *s);

/* Puts the endings of images' names, each once, with something in between. */
void complete_put_endings(const char *between);

/* Puts a text as the inside of a string in single quotes; quote is what stands for one of those. */
void complete_put_quoted(const char *text, const char *quote);
/* Puts the words with something in between. */
void complete_put_words(const complete_values *values, const char *between);

void complete_bash(void);
void complete_zsh(void);
void complete_fish(void);

#endif
