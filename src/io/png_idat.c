#include "io/png_idat.h"

#include <isa-l/crc.h>
#include <string.h>
#include <zlib.h>

#include "io/png_fail.h"

enum {
    NAME_CRC = 0x35af061e, /* CRC-32 of "IDAT" */
    SMALL_BYTES = 8        /* for fewer ISA-L takes up to twice as long as zlib */
};

static uint32_t big_endian(const unsigned char bytes[4]) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size) {
    return size < SMALL_BYTES ? (uint32_t)crc32(crc, data, (uInt)size)
                              : crc32_gzip_refl(crc, data, size);
}

bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    return memcmp(header + 4, "IDAT", 4) == 0 && header[0] < 0x80;
}

void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    /* header may lie in *idat. */
    *idat = (gf_png_idat){.input = input, .left = big_endian(header), .crc = NAME_CRC};
}

/* From the end of a chunk's data into the next chunk. */
static gf_status next_chunk(gf_png_idat *idat, gf_error *error) {
    unsigned char end[4 + GF_PNG_CHUNK_HEADER];
    size_t got;
    gf_status status = gf_input_read(idat->input, end, sizeof end, &got, error);

    if (status != GF_OK)
        return status;
    if (got >= 4 && big_endian(end) != idat->crc)
        return gf_png_fail_damaged(error, idat->input->name, "IDAT: CRC error");
    if (got < sizeof end)
        return gf_png_fail_short(error, idat->input->name);
    memcpy(idat->header, end + 4, sizeof idat->header);
    /* What is no chunk at all is for libpng to refuse. */
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
        const size_t room = size - *got;
        const size_t take = room < idat->left ? room : idat->left;
        size_t taken;
        gf_status status = gf_input_read(idat->input, bytes + *got, take, &taken, error);
        if (status == GF_OK && taken < take)
            return gf_png_fail_short(error, idat->input->name);
        if (status != GF_OK)
            return status;
        idat->crc = crc_of(idat->crc, bytes + *got, take);
        idat->left -= (uint32_t)take;
        *got += take;
        if (idat->left == 0 && (status = next_chunk(idat, error)) != GF_OK)
            return status;
    }
    return GF_OK;
}
