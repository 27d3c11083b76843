/* Running a filter command on many files. */
#ifndef GF_CLI_BATCH_H
#define GF_CLI_BATCH_H

#include "cli.h"

/* Are there, or may there be, many inputs? */
bool gf_cli_is_batch(const gf_filter_info *info, const gf_cli_line *line);
/* GF_FAILED without a message: some files failed, and that has been printed. */
gf_status gf_cli_batch(const gf_filter *filter, const gf_cli_line *line, gf_error *error);

#endif
