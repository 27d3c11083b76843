#include "agree.h"

typedef struct gf_outcome {
    uint32_t rank;
    gf_status status;
    gf_error error;
} gf_outcome;

static void keep_lowest(const void *context, void *data, const void *other) {
    gf_outcome *kept = data;
    const gf_outcome *new = other;
    (void)context;
    if (new->status && (!kept->status || new->rank < kept->rank))
        *kept = *new;
}

gf_status gf_follow_first(const gf_ranks *ranks, gf_status status, gf_error *error) {
    gf_outcome outcome = {.status = status};
    if (gf_alone(ranks))
        return status;
    if (status && error)
        outcome.error = *error;
    ranks->broadcast(ranks->context, &outcome, sizeof outcome);
    if (outcome.status && error)
        *error = outcome.error;
    return outcome.status;
}

gf_status gf_ranks_agree(const gf_ranks *ranks, gf_status status, gf_error *error) {
    gf_outcome outcome = {.status = status};
    if (gf_alone(ranks))
        return status;
    outcome.rank = ranks->rank;
    if (status && error)
        outcome.error = *error;
    ranks->reduce(ranks->context, &outcome, sizeof outcome, keep_lowest, NULL);
    if (outcome.status && error && ranks->rank == 0)
        *error = outcome.error;
    return gf_follow_first(ranks, outcome.status, error);
}
