#include "shard.h"

#include <stdlib.h>

#define MOST_SHARDS 1000000

/* Digits alone, and what ends them: returns what follows, NULL for what is no number up to
 * MOST_SHARDS. */
static const char *read_number(const char *text, char end, uint32_t *number) {
    const char *at = text;
    for (*number = 0; *at >= '0' && *at <= '9'; at++) {
        *number = 10 * *number + (uint32_t)(*at - '0');
        if (*number > MOST_SHARDS)
            return NULL;
    }
    return at > text && *at == end ? at + 1 : NULL;
}

gf_status gf_cli_shard_parse(const char *text, gf_cli_shard *shard, gf_error *error) {
    *shard = (gf_cli_shard){0};
    if (!text)
        return GF_OK;
    const char *rest = read_number(text, '/', &shard->number);
    if (rest && read_number(rest, 0, &shard->of) && shard->number >= 1 &&
        shard->number <= shard->of)
        return GF_OK;
    return gf_set_error(error, GF_USAGE,
                        "--shard '%s': must be K/N, the K-th of N parts, with 1 <= K <= N <= %d, "
                        "such as 1/4",
                        text, MOST_SHARDS);
}

void gf_cli_shard_take(const gf_cli_shard *shard, gf_cli_inputs *inputs, gf_cli_output *outputs) {
    size_t count = 0;
    if (!shard->of)
        return;
    for (size_t i = 0; i < inputs->count; i++) {
        if (i % shard->of != shard->number - 1) {
            free(inputs->list[i].path);
            if (outputs)
                free(outputs[i].path);
            continue;
        }
        inputs->list[count] = inputs->list[i];
        if (outputs)
            outputs[count] = outputs[i];
        count++;
    }
    inputs->count = count;
}
