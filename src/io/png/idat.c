/* The compressed data of a PNG: the contents of its IDAT chunks, with their CRCs checked. */
#include "core/checksum.h"
#include "core/error.h"
#include "io/bytes.h"
#include "io/png/inflate.h"
#include <string.h>

gf_status gf_png_fail_damaged(gf_error *error, const char *name, const char *what) {
    return gf_fail(error, GF_FAILED, "%s: the PNG is damaged (%s); get an intact copy", name, what);
}

gf_status gf_png_fail_short(gf_error *error, const char *name) {
    return gf_fail(error, GF_FAILED, "%s: the PNG ends too early; get a complete copy", name);
}

bool gf_png_idat_is(const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    return memcmp(header + 4, "IDAT", 4) == 0 && header[0] < 0x80;
}

void gf_png_idat_start(gf_png_idat *idat, gf_input *input,
                       const unsigned char header[GF_PNG_CHUNK_HEADER]) {
    enum { NAME_CRC = 0x35af061e }; /* CRC-32 of "IDAT" */
    /* header may be idat->header. */
    *idat = (gf_png_idat){.input = input, .remaining = gf_big32(header), .crc = NAME_CRC};
}

gf_status gf_png_idat_read(gf_png_idat *idat, void *data, size_t size, size_t *got,
                           gf_error *error) {
    const char *name = idat->input->name;
    for (*got = 0; *got < size && !idat->ended;) {
        unsigned char *const to = (unsigned char *)data + *got, end[4 + GF_PNG_CHUNK_HEADER];
        const size_t capacity = size - *got;
        const size_t wanted = capacity < idat->remaining ? capacity : idat->remaining;
        size_t received;
        gf_status status = gf_input_read(idat->input, to, wanted, &received, error);
        *got += received;
        if (status || received < wanted)
            return status ? status : gf_png_fail_short(error, name);
        idat->crc = gf_crc32(idat->crc, to, wanted);
        idat->remaining -= (uint32_t)wanted;
        if (idat->remaining != 0)
            continue;
        /* Check the CRC of the chunk and read the header of the next one. */
        if ((status = gf_input_read(idat->input, end, sizeof end, &received, error)))
            return status;
        if (received >= 4 && gf_big32(end) != idat->crc)
            return gf_png_fail_damaged(error, name, "IDAT: CRC error");
        if (received < sizeof end)
            return gf_png_fail_short(error, name);
        memcpy(idat->header, end + 4, sizeof idat->header);
        /* libpng rejects invalid chunk headers. */
        idat->ended = !gf_png_idat_is(idat->header);
        if (!idat->ended)
            gf_png_idat_start(idat, idat->input, idat->header);
    }
    return GF_OK;
}
