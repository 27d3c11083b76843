#include "io/png_idat.h"

#include <isa-l/crc.h>
#include <string.h>

#include "io/png_fail.h"

static uint32_t big_endian(const unsigned char bytes[4]) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static gf_status read_exactly(gf_input *input, void *data, size_t size, gf_error *error) {
    size_t got;
    gf_status status = gf_input_read(input, data, size, &got, error);

    if (status == GF_OK && got < size)
        return gf_png_fail_short(error, input->name);
    return status;
}

bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    return memcmp(header + 4, "IDAT", 4) == 0 && header[0] < 0x80;
}

void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    /* header may lie in *idat. */
    *idat = (gf_png_idat){
        .input = input, .left = big_endian(header), .crc = crc32_gzip_refl(0, header + 4, 4)};
}

/* From the end of a chunk's data into the next chunk. */
static gf_status next_chunk(gf_png_idat *idat, gf_error *error) {
    unsigned char crc[4];
    gf_status status = read_exactly(idat->input, crc, sizeof crc, error);

    if (status != GF_OK)
        return status;
    if (big_endian(crc) != idat->crc)
        return gf_png_fail_damaged(error, idat->input->name, "IDAT: CRC error");
    status = read_exactly(idat->input, idat->header, sizeof idat->header, error);
    if (status != GF_OK)
        return status;
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
        gf_status status = read_exactly(idat->input, bytes + *got, take, error);
        if (status != GF_OK)
            return status;
        idat->crc = crc32_gzip_refl(idat->crc, bytes + *got, take);
        idat->left -= (uint32_t)take;
        *got += take;
        if (idat->left == 0 && (status = next_chunk(idat, error)) != GF_OK)
            return status;
    }
    return GF_OK;
}
