/* What is settled about a batch of files before any of them is begun. */
#ifndef GF_BATCH_PLAN_H
#define GF_BATCH_PLAN_H

#include "engine/batch_files.h"
#include "engine/engine.h"

#define GF_FILES_MAX_DEVICES 64u

/* What device engines are opened with. */
typedef struct gf_files_devices {
    uint32_t count;
    char names[GF_FILES_MAX_DEVICES][12]; /* "": the backend's own choice */
} gf_files_devices;

/* Refuses what no item could make good: a filter of two images, settings that contradict each other
 * whatever the image. Shares the threads out. */
gf_status gf_files_check(gf_files *files, gf_error *error);
/* Fills in files->threads, at_once and each. Each file under way is two of those that the process
 * may have open. */
void gf_files_share(gf_files *files, uint32_t threads, uint64_t open_files);
/* Bytes of an image, in and out together; out may be of no width. */
uint64_t gf_files_bytes(const gf_format *in, const gf_format *out);
/* Images of more of them go through a device each by itself. */
#define GF_FILES_SMALL (UINT64_C(64) << 20)
/* How many engines a device has at most, for large images that are under way at once. */
uint32_t gf_files_engines(const gf_files *files, uint32_t devices);
/* What auto expects of all of them, if they are like this one. */
gf_forecast gf_files_expect(const gf_files *files, const gf_plan *plan,
                            const gf_codec_costs *codec);
/* Which devices run them; none: the threads of the CPU do. Settles the backend of
 * files->options.engine, and the reason of auto. */
gf_status gf_files_choose(gf_files *files, gf_files_devices *devices, gf_error *error);

#endif
