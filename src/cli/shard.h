/* One of the parts that many inputs are shared out in, for engines that number their tasks. */
#ifndef GF_CLI_SHARD_H
#define GF_CLI_SHARD_H

#include "outputs.h"

/* Inputs number, number + of, number + 2 * of, ..., counted from 1. All zero: all, in one run. */
typedef struct gf_cli_shard {
    uint32_t number, of;
} gf_cli_shard;

/* What --shard says; NULL: it was not given. */
gf_status gf_cli_shard_parse(const char *text, gf_cli_shard *shard, gf_error *error);
/* Leaves the shard's inputs and their outputs (NULL for none), in order. */
void gf_cli_shard_take(const gf_cli_shard *shard, gf_cli_inputs *inputs, gf_cli_output *outputs);

#endif
