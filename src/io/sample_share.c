/* In the file stand all samples of a bin, in the order of ranks, before those of the next bin. */
#include "io/sample_share.h"

#include <stdlib.h>

#include "error.h"
#include "io/spool.h"

struct gf_sample_share {
    gf_output *output;
    gf_spool *spool;
    uint32_t bins;
    uint32_t last;    /* bin that came */
    uint64_t begin;   /* of the first byte of all ranks */
    size_t glue;      /* bytes that are not written there */
    uint64_t *sizes;  /* of this rank's bytes of each bin, and behind them the samples */
    uint64_t *places; /* the same of the ranks before; in the end: where those bytes begin */
    uint64_t *sums;   /* the same of all */
};

gf_status gf_sample_share_open(gf_output *output, uint32_t bins, gf_sample_share **share,
                               gf_error *error) {
    const size_t count = (size_t)bins + 1;
    gf_sample_share *new = calloc(1, sizeof *new);
    gf_status status = GF_OK;

    *share = NULL;
    if (new != NULL)
        new->sizes = calloc(3 * count, sizeof *new->sizes);
    if (new == NULL || new->sizes == NULL)
        status = gf_fail_memory(error, gf_output_name(output), 3 * count * sizeof *new->sizes,
                                "the places of samples");
    else
        status = gf_spool_open(output, &new->spool, error);
    if (status != GF_OK) {
        gf_sample_share_close(new);
        return status;
    }
    new->output = output;
    new->bins = bins;
    new->places = new->sizes + count;
    new->sums = new->places + count;
    *share = new;
    return GF_OK;
}

void gf_sample_share_close(gf_sample_share *share) {
    if (share == NULL)
        return;
    gf_spool_close(share->spool);
    free(share->sizes);
    free(share);
}

gf_status gf_sample_share_add(gf_sample_share *share, uint32_t bin, const void *bytes, size_t size,
                              gf_error *error) {
    if (bin >= share->bins || bin < share->last)
        return gf_fail(error, GF_FAILED, "%s: samples of bin %u of %u come behind those of bin %u",
                       gf_output_name(share->output), bin, share->bins, share->last);
    share->last = bin;
    share->sizes[bin] += size;
    return gf_spool_add(share->spool, bytes, size, error);
}

/* ---- where to -------------------------------------------------------------------------------- */

void gf_sample_share_meet(gf_sample_share *share, const gf_ranks *ranks, uint64_t samples,
                          size_t glue, gf_sample_place *place) {
    const uint32_t bins = share->bins;

    share->sizes[bins] = samples;
    ranks->scan(ranks->context, share->sizes, share->places, share->sums, (size_t)bins + 1);
    place->samples = share->sums[bins];
    place->end = place->begin;
    share->glue = glue;
    share->begin = place->begin;
    if (place->samples != 0)
        share->begin = place->end = place->begin - glue;
    for (uint32_t bin = 0; bin < bins; bin++) {
        share->places[bin] += place->end;
        place->end += share->sums[bin];
    }
}

/* Some bytes, all of one bin. */
static gf_status write_piece(const gf_sample_share *share, const unsigned char *data, size_t size,
                             uint64_t at, gf_error *error) {
    const size_t skip = at == share->begin ? share->glue : 0;

    return gf_output_write_at(share->output, data + skip, size - skip, at + skip, error);
}

gf_status gf_sample_share_write(gf_sample_share *share, gf_error *error) {
    const unsigned char *data = NULL;
    size_t size = 0;
    gf_status status = GF_OK;

    for (uint32_t bin = 0; bin < share->bins && status == GF_OK;) {
        if (share->sizes[bin] == 0) {
            bin++;
            continue;
        }
        if (size == 0)
            status = gf_spool_next(share->spool, &data, &size, error);
        const size_t n = share->sizes[bin] < size ? (size_t)share->sizes[bin] : size;
        if (status == GF_OK)
            status = write_piece(share, data, n, share->places[bin], error);
        share->sizes[bin] -= n;
        share->places[bin] += n;
        data += n;
        size -= n;
    }
    return status;
}
