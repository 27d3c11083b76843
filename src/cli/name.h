/* Names of outputs, made of names of inputs. */
#ifndef GF_CLI_NAME_H
#define GF_CLI_NAME_H

#include "gpufilter.h"

/* From a base name's last dot on; "" if it has none. The dot of a hidden file begins no ending. */
const char *gf_cli_ending(const char *base);
/* Is this how files of pictures are called? raw: pictures without a header, whose name alone would
 * tell nothing: what cameras make is called so, too. */
bool gf_cli_is_picture(const char *name, bool raw);
/* Does the ending say how to write it? */
bool gf_cli_is_written(const char *name);

/* Refuses what --name cannot be. */
gf_status gf_cli_template_check(const char *template, gf_error *error);
/* The name for an input of this base name, the index-th from 1. format: of --format, or NULL. NULL
 * if out of memory; free() it. */
char *gf_cli_template_fill(const char *template, const char *base, const char *format,
                           uint64_t index);

#endif
