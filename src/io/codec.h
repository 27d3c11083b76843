/* Formats of image files. Each is a descriptor in the directory of its code; codecs.def lists them.
 * Detection, checks, messages, help and the choice of the backend read the descriptors. */
#ifndef GF_CODEC_H
#define GF_CODEC_H

#include <string.h>

#include "core/settings.h"
#include "io/file/input.h"
#include "io/file/output.h"
#include "io/limits.h"
#include "io/stream/stream.h"

/* Open a source. Only the head of the input has been read. The source copies *input and closes it
 * in its close; on failure the caller still owns it. limits are resolved. */
typedef gf_status gf_open_source(const gf_input *input, const gf_limits *limits, gf_source **source,
                                 gf_error *error);

typedef struct gf_sink_setup {
    const struct gf_codec *codec;
    gf_output *output;
    const gf_format *format;
    const gf_metadata *metadata; /* never NULL */
    const char *compression;     /* one of gf_codec.compressions; NULL: the first */
    uint32_t quality;            /* of JPEG: 1 to 100 */
    uint64_t max_memory;
    uint64_t classic_max; /* max bytes of a TIFF that is not a BigTIFF; 0: as usual; for tests */
    uint32_t threads;     /* maximum number of encoding threads; at least 1 */
    uint64_t first;       /* first row that this process writes */
    bool header;          /* this process writes the file header */
    gf_sink *before; /* sink of the previous page of the file, closed by the caller; NULL: none */
} gf_sink_setup;

/* Open a sink for an image that the file format can store. The sink takes ownership of
 * setup->output. *sink is NULL before; on failure the caller closes it, if it is not. */
typedef gf_status gf_open_sink(const gf_sink_setup *setup, gf_sink **sink, gf_error *error);

/* Sample types and numbers of channels that a format stores: bits. */
enum {
    GF_STORES_U8 = 1 << GF_U8,
    GF_STORES_INTEGERS = GF_STORES_U8 | 1 << GF_U16,
    GF_STORES_F32 = 1 << GF_F32,
    GF_STORES_DATA = 1 << 0, /* the last of 2 or 4 channels need not be alpha */
    GF_STORES_GREY = 1 << 1,
    GF_STORES_RGB = 1 << 3,
    GF_STORES_RGBA = 1 << 4,
    GF_STORES_ANY = GF_STORES_GREY | 1 << 2 | GF_STORES_RGB | GF_STORES_RGBA
};

/* The option of gf_file_options that concerns a format; it has no effect on others. */
typedef enum gf_codec_option {
    GF_OPTION_NONE,
    GF_OPTION_QUALITY,
    GF_OPTION_COMPRESSION,
    GF_OPTION_TIFF_COMPRESSION
} gf_codec_option;

/* Time of a sample of plain rows, in ns: copy and byte swap, in either direction. */
#define GF_PLAIN_COST 0.3

enum { GF_CODEC_MAGICS = 2, GF_CODEC_COMPRESSIONS = 4 };

typedef struct gf_codec {
    const char *label;                           /* for people: "PNG" */
    const char *extensions[GF_CODEC_EXTENSIONS]; /* the first is its name, and that of outputs */
    const char *notes; /* sample types and limitations, as sentences; NULL: not in the help */

    /* Detection: the file starts with one of the magics, if there are any, and matches. A format
     * with neither is never detected. */
    const char *magics[GF_CODEC_MAGICS];
    bool (*match)(const gf_input *input); /* checks more than the magic; NULL: not needed */

    gf_open_source *open_source; /* NULL: not read */
    double decode_cost; /* ns per sample of a photograph on one core; unless the source sets it */

    gf_open_sink *open_sink;          /* NULL: not written. The following is about writing. */
    unsigned types, channels;         /* stored: GF_STORES bits */
    const char *alpha_advice;         /* if alpha is not stored; NULL: write .png or .pam */
    uint64_t max_columns;             /* and max rows; 0: unlimited */
    uint64_t max_bytes;               /* of the rows in the file; 0: unlimited */
    uint32_t grey_bytes, pixel_bytes; /* if they are limited: of a grey pixel; 0: one per channel */
    gf_metadata_form form;
    gf_codec_option option;
    const char *const *(*compressions)(void);  /* names, the default first; NULL: none */
    double encode_cost[GF_CODEC_COMPRESSIONS]; /* at each compression; as decode_cost */

    bool headerless; /* the file does not store its format: --raw has it */
    bool on_devices; /* devices decode it, and encode it as the sink at its first compression */
    bool threads;    /* rows are encoded in several threads */
    bool exact;      /* lossless: a reader of the file gets the same rows */
    /* Rows without compression: lossless, at fixed offsets, so that several processes can write
     * parts of a file. encode_cost is GF_PLAIN_COST. */
    bool plain;
    bool associated_alpha; /* stores alpha by which the other channels are multiplied */
} gf_codec;

/* Return the compressions of PNG and of TIFF. */
const char *const *gf_compressions(void);
const char *const *gf_tiff_compressions(void);

/* Return a format of the list, NULL after the last one (src/registry.c). */
const gf_codec *gf_codec_at(size_t index);

/* Return the index of a compression, their number for an unknown name. NULL: the first. */
static inline size_t gf_codec_effort(const gf_codec *codec, const char *name) {
    return name ? gf_choice_index(codec->compressions(), name, strlen(name)) : 0;
}

#endif
