/* The command line: what main hands to its helpers. Uses only the public interface. */
#ifndef GF_CLI_H
#define GF_CLI_H

#include <stdio.h>

#include "gpufilter.h"
#include "progress.h"

/* A command line of one filter or command, parsed. */
typedef struct gf_cli_line {
    gf_settings *filter;    /* values of its own parameters */
    gf_settings *common;    /* values of the parameters that it shares with others */
    const gf_param *params; /* those shared parameters */
    size_t param_count;
    const char **operands;
    size_t operand_count;
    gf_raw raw; /* what --raw says, if it was given */
} gf_cli_line;

/* Parses what follows the command's name by its own table of parameters and one that it shares with
 * others. Options may follow operands; "--" ends them. */
gf_status gf_cli_parse(int argc, char **argv, const gf_filter_info *info, const gf_param *common,
                       size_t common_count, gf_cli_line *line, gf_error *error);
void gf_cli_line_free(gf_cli_line *line);

#define GF_CLI_MAX_COMMON 40

/* The options that a filter (NULL: any) shares with others and has a use for; returns how many. */
size_t gf_cli_common(const gf_filter_info *info, gf_param params[GF_CLI_MAX_COMMON]);
/* Refuses those that contradict each other, or are about what was not asked for. */
gf_status gf_cli_check_common(const gf_filter_info *info, const gf_cli_line *line, gf_error *error);

/* What they say of the engine, and of files. The line must outlive the latter. */
gf_engine_options gf_cli_engine_options(const gf_settings *common);
gf_file_options gf_cli_file_options(const gf_cli_line *line);
/* And of how far it has come; lines: where there is no terminal. */
gf_cli_show gf_cli_show_of(const gf_settings *common, bool lines);
/* What inputs without a header hold; NULL if they have one. */
const gf_raw *gf_cli_raw(const gf_cli_line *line);

/* Print the line of an error on standard error, after what was printed before it. */
void gf_cli_complain(const gf_error *error);
/* Print text for people, with '?' for each byte that is not printable: names of files may hold
 * newlines and escape sequences. */
void gf_cli_print_text(FILE *file, const char *text);
/* Print a file's name likewise; "-" as what it stands for, "standard input" or "standard output".
 */
void gf_cli_print_name(FILE *file, const char *name, const char *standard);
/* Print the name of an output on a line of standard output: its exact bytes but on a terminal. */
void gf_cli_list_output(const char *name);

void gf_cli_version(void);
/* Help on standard output: of the program, of one filter, of a command and the options that it
 * shares with filters.
 */
void gf_cli_help(void);
void gf_cli_help_filter(const gf_filter_info *info);
void gf_cli_help_command(const gf_filter_info *info, const gf_param *shared, size_t count);

/* Runs a filter command; prints what it has to say. GF_FAILED without a message: a test whose
 * answer is no. Failures of such a filter are GF_USAGE, to be told from that answer by the exit
 * code. */
gf_status gf_cli_filter(const gf_filter *filter, int argc, char **argv, gf_error *error);

#endif
