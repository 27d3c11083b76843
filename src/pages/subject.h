/* What has a page of its own and is completed: filters and commands, as the program's own parser
 * and help know them. */
#ifndef PAGES_SUBJECT_H
#define PAGES_SUBJECT_H

#include "commands.h"

typedef struct subject {
    const gf_filter_info *info;
    bool is_filter;
    gf_param shared[GF_CLI_MAX_COMMON]; /* the options that it has in common with others */
    size_t shared_count;
} subject;

/* Filters first, then commands, as the program lists them. False past the end. */
bool subject_at(size_t index, subject *s);
bool subject_find(const char *name, subject *s);

/* Its options, its own first; NULL past the end. */
const gf_param *subject_option(const subject *s, size_t index);
/* The shared one of this name; NULL if it is not offered. */
const gf_param *subject_shared(const subject *s, const char *name);

/* Many inputs at once, each by itself. */
bool subject_takes_many(const subject *s);

/* All options that filters share, in the order that they are told in; returns how many. */
size_t subject_all_shared(gf_param params[GF_CLI_MAX_COMMON]);

#endif
