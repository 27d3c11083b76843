/* Names of pipeline stages, and sums of busy times. */
#include "core/clock.h"

const char *gf_stage_name(gf_stage stage) {
    static const char *const names[GF_STAGE_COUNT] = {
        [GF_DECODING] = "decoding",   [GF_UPLOADING] = "uploading",
        [GF_COMPUTING] = "computing", [GF_DOWNLOADING] = "downloading",
        [GF_ENCODING] = "encoding",
    };
    return (unsigned)stage < GF_STAGE_COUNT ? names[stage] : NULL;
}

void gf_busy_add(gf_busy *sum, gf_busy more) {
    sum->seconds += more.seconds;
    if (more.workers > sum->workers)
        sum->workers = more.workers;
}
