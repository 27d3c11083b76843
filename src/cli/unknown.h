/* Words that nobody knows, and what may have been meant. */
#ifndef GF_CLI_UNKNOWN_H
#define GF_CLI_UNKNOWN_H

#include "cli.h"

/* --name or --name=value; letter: -letter instead. GF_USAGE. */
gf_status gf_cli_unknown_option(const gf_filter_info *info, const gf_cli_line *line,
                                const char *argument, char letter, gf_error *error);
/* What should be a filter or a command; or_word: or another word that a command line begins with.
 * GF_USAGE. */
gf_status gf_cli_unknown_command(const char *name, bool or_word, gf_error *error);

#endif
