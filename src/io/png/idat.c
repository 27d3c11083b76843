/* The compressed data of a PNG: the contents of its IDAT chunks, with their CRCs checked. */
#include "io/png/inflate.h"

#include <isa-l/crc.h>
#include <string.h>
#include <zlib.h>

#include "core/error.h"
#include "io/bytes.h"

gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what) {
    return gf_fail(error, GF_FAILED, "%s: the PNG is damaged (%s); get an intact copy", name, what);
}

gf_status gf_png_fail_short(gf_error *error, const char *name) {
    return gf_fail(error, GF_FAILED, "%s: the PNG ends too early; get a complete copy", name);
}

enum {
    NAME_CRC = 0x35af061e, /* CRC-32 of "IDAT" */
    SMALL_BYTES = 8        /* below this size ISA-L takes up to twice as long as zlib */
};

static uint32_t idat_crc(uint32_t crc, const unsigned char *data, size_t size) {
    return size < SMALL_BYTES ? (uint32_t)crc32(crc, data, (uInt)size)
                              : crc32_gzip_refl(crc, data, size);
}

bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    return memcmp(header + 4, "IDAT", 4) == 0 && header[0] < 0x80;
}

void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    /* header may be idat->header. */
    *idat = (gf_png_idat){.input = input, .remaining = gf_big32(header), .crc = NAME_CRC};
}

/* Check the CRC of a chunk and read the header of the next one. */
static gf_status idat_next_chunk(gf_png_idat *idat, gf_error *error) {
    unsigned char end[4 + GF_PNG_CHUNK_HEADER];
    size_t got;
    gf_status status = gf_input_read(idat->input, end, sizeof end, &got, error);
    if (status)
        return status;
    if (got >= 4 && gf_big32(end) != idat->crc)
        return gf_png_fail_damaged(error, idat->input->name, "IDAT: CRC error");
    if (got < sizeof end)
        return gf_png_fail_short(error, idat->input->name);
    memcpy(idat->header, end + 4, sizeof idat->header);
    /* libpng rejects invalid chunk headers. */
    idat->ended = !gf_png_idat_is(idat->header);
    if (!idat->ended)
        gf_png_idat_start(idat, idat->input, idat->header);
    return GF_OK;
}

gf_status gf_png_idat_read(gf_png_idat *idat, void *data, size_t size, size_t *got,
                           gf_error *error) {
    unsigned char *bytes = data;
    *got = 0;
    while (*got < size && !idat->ended) {
        const size_t capacity = size - *got;
        const size_t wanted = capacity < idat->remaining ? capacity : idat->remaining;
        size_t received;
        gf_status status = gf_input_read(idat->input, bytes + *got, wanted, &received, error);
        *got += received;
        if (!status && received < wanted)
            return gf_png_fail_short(error, idat->input->name);
        if (status)
            return status;
        idat->crc = idat_crc(idat->crc, bytes + *got - wanted, wanted);
        idat->remaining -= (uint32_t)wanted;
        if (idat->remaining == 0 && (status = idat_next_chunk(idat, error)))
            return status;
    }
    return GF_OK;
}
