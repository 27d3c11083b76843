/* Limits on what an input may make us hold; every message names the option that raises the limit.
 */
#ifndef GF_LIMITS_H
#define GF_LIMITS_H

#include "io/io.h"

/* What the options say, NULL for nothing; so many threads may read a file. */
gf_limits gf_limits_of(const gf_file_options *options, uint32_t threads);

/* The limits with every 0 replaced by its default. limits may be NULL. */
gf_limits gf_limits_resolve(const gf_limits *limits);

/* Checks sizes as a file gives them, before anything is computed from them: GF_FAILED if one is 0
 * or their product is over limits->max_pixels. */
gf_status gf_check_pixels(uint64_t width, uint64_t height, const gf_limits *limits,
                          const char *name, gf_error *error);

/* Checks bytes that are about to be held, before they are allocated; what names them ("the image",
 * "a row"). */
gf_status gf_check_memory(uint64_t bytes, uint64_t max_memory, const char *name, const char *what,
                          gf_error *error);

#endif
