/* The command line: what main hands to its helpers. Uses only the public interface. */
#ifndef GF_CLI_H
#define GF_CLI_H

#include "gpufilter.h"

/* The options that every filter command takes. */
const gf_param *gf_cli_common(size_t *count);

/* A command line of one filter, parsed. */
typedef struct gf_cli_line {
    gf_settings *filter; /* values of the filter's own parameters */
    gf_settings *common; /* values of gf_cli_common() */
    const char **operands;
    size_t operand_count;
} gf_cli_line;

/* Parses what follows the command's name. Options may follow operands; "--" ends them. */
gf_status gf_cli_parse(int argc, char **argv, const gf_filter_info *info, gf_cli_line *line,
                       gf_error *error);
void gf_cli_line_free(gf_cli_line *line);

/* Fills in an error in the form of the library's own and returns its status. */
gf_status gf_cli_fail(gf_error *error, gf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Help on standard output: of the program, of one filter. */
void gf_cli_help(void);
void gf_cli_help_filter(const gf_filter_info *info);

/* Runs a filter command; prints what it has to say. */
gf_status gf_cli_filter(const gf_filter *filter, int argc, char **argv, gf_error *error);

#endif
