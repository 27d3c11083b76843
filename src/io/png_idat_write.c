#include "io/png_idat_write.h"

#include <isa-l/crc.h>
#include <string.h>

const unsigned char gf_png_idat_name[4] = {'I', 'D', 'A', 'T'};

void gf_png_put32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

gf_status gf_png_idat_write(gf_output *output, unsigned char *data, size_t size, uint32_t crc,
                            gf_error *error) {
    gf_png_put32(data - 8, (uint32_t)size);
    memcpy(data - 4, gf_png_idat_name, 4);
    gf_png_put32(data + size, crc);
    return gf_output_write(output, data - 8, size + 12, error);
}

/* What a chunk's end overwrites is the next one's beginning: it is put back. */
gf_status gf_png_idat_write_parts(gf_output *output, unsigned char *data, size_t size, size_t most,
                                  gf_error *error) {
    gf_status status = GF_OK;
    while (size && !status) {
        const size_t part = size < most ? size : most;
        unsigned char behind[4];
        memcpy(data - 4, gf_png_idat_name, 4);
        memcpy(behind, data + part, 4);
        status =
            gf_png_idat_write(output, data, part, crc32_gzip_refl(0, data - 4, part + 4), error);
        memcpy(data + part, behind, 4);
        data += part;
        size -= part;
    }
    return status;
}
