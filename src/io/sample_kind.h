/* The kinds of files behind gf_sample_sink. */
#ifndef GF_SAMPLE_KIND_H
#define GF_SAMPLE_KIND_H

#include "io/sample_sink.h"

typedef struct gf_sample {
    uint64_t index; /* among all samples of the file */
    uint32_t bin;
    uint64_t x, y;
    uint32_t channel;  /* among those measured */
    const void *value; /* of layout->type, unaligned */
} gf_sample;

/* What any of these functions writes at most. */
#define GF_SAMPLE_ROOM 256

typedef struct gf_sample_kind {
    const char *name; /* and ending of files */
    bool counted;     /* binary, with a head that tells the number of samples; its size is fixed */
    size_t glue;      /* bytes before a sample that the first of a file has not */
    /* Each writes to `to` and returns where it ended. */
    char *(*head)(char *to, const gf_sample_layout *layout, uint64_t count);
    char *(*sample)(char *to, const gf_sample_layout *layout, const gf_sample *sample);
    char *(*tail)(char *to, uint64_t count);
} gf_sample_kind;

extern const gf_sample_kind gf_sample_csv, gf_sample_json, gf_sample_npy;

#endif
