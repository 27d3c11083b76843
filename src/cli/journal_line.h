/* A line of the record of outputs, as text: CHECK SETTINGS INPUT SIZE TIME NAME. */
#ifndef GF_CLI_JOURNAL_LINE_H
#define GF_CLI_JOURNAL_LINE_H

#include <stddef.h>

#include "journal.h"

#define GF_CLI_LINE_ROOM 128

/* A line without its newline; false if it is none. made->name is within it. */
bool gf_cli_line_read(char *line, size_t length, gf_cli_made *made);
/* Writes a line and its newline, into room for twice the name and GF_CLI_LINE_ROOM more; returns
 * its length. */
size_t gf_cli_line_write(const gf_cli_made *made, char *line);

#endif
