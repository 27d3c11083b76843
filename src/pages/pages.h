/* Manual pages and completions, made from the tables that the program's parser and help read. */
#ifndef PAGES_H
#define PAGES_H

#include <stdbool.h>
#include <stdio.h>

#include "commands.h"

/* A filter or a command. */
typedef struct subject {
    const gf_filter_info *info;
    bool is_filter;
    gf_param shared[GF_CLI_MAX_COMMON]; /* the options that it has in common with others */
    size_t shared_count;
} subject;

/* Describe a filter or, after the filters, a command; false past the end. */
bool subject_at(size_t index, subject *s);
/* True if one of the shared options has this name. */
bool subject_shares(const subject *s, const char *name);

/* Print why a file cannot be read or written, and end the program. */
_Noreturn void source_fail(const char *path);
/* Writes what replaces "@NAME@" and a line break behind it; false if the name is not known. */
typedef bool template_gap(const char *name, FILE *out);
/* Copy a template, a file of the project, with its gaps filled. */
void template_fill(const char *path, template_gap *gap, FILE *out);

/* Write a page of mdoc(7). Lines of the text that begin with '.' are mdoc already. All others are
 * prose: an empty line separates paragraphs, lines that begin with two spaces, a name and two
 * spaces are the items of a list, lines that begin with four spaces are literal, `words` and
 * --options are bold, and each sentence begins a line. */
void roff_put(const char *text, FILE *out);

/* Write the text of gpufilter(1), or of the page of a subject, for roff_put. */
void man_overview(const char *date, FILE *page);
void man_subject(const subject *s, const char *date, FILE *page);

/* Fill the gaps in a completion. */
bool complete_gap(const char *name, FILE *out);

#endif
