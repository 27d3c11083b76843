/* Our deflate encoder: any plan must decompress to the same bytes, and every SIMD level must
 * write the same stream. */
#include "fuzz.h"

#include "io/flate/deflate.h"

enum { MAX_BYTES = 8192 };

static size_t pack(const fuzz_bytes *input, gf_isa isa, unsigned char *out) {
    static gf_deflate_plan plan;
    static gf_deflate_hash seen;
    const gf_deflate_simd *simd = gf_deflate_simd_of(isa);
    fuzz_bytes bytes = *input;
    gf_bit_writer writer = {.at = out};
    const uint8_t how = fuzz_byte(&bytes);
    const size_t pixel = 1 + fuzz_byte(&bytes) % 8, row = 1 + fuzz_below(&bytes, 600);
    const size_t blocks = 1 + how % 3;
    for (size_t b = 0; b < blocks; b++) {
        const unsigned char *from = bytes.data + bytes.size * b / blocks;
        const size_t n = (size_t)(bytes.data + bytes.size * (b + 1) / blocks - from);
        if ((how >> (3 + b) & 1) != 0)
            gf_deflate_plan_matches(from, n, pixel, row, &seen, &plan);
        else
            gf_deflate_plan_runs(simd, from, n, &plan);
        unsigned char *before = writer.at;
        gf_deflate_write(simd, &plan, from, n, b == blocks - 1, &writer);
        FUZZ_CHECK((size_t)(writer.at - before) <= gf_deflate_bound(n), "larger than its bound");
        if ((how & 0x80) != 0 && b + 1 < blocks)
            gf_deflate_sync(&writer);
    }
    gf_align_bits(&writer);
    return (size_t)(writer.at - out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char first[4 * MAX_BYTES], other[4 * MAX_BYTES], back[MAX_BYTES + 1];
    const fuzz_bytes bytes = {data, size};
    z_stream stream = {.next_in = first, .next_out = back, .avail_out = sizeof back};
    if (size < 5 || size > MAX_BYTES)
        return 0;
    const size_t packed = pack(&bytes, GF_ISA_PORTABLE, first);
    for (int isa = 1; isa < GF_ISA_COUNT; isa++) {
        if (!gf_isa_available((gf_isa)isa))
            continue;
        FUZZ_CHECK(pack(&bytes, (gf_isa)isa, other) == packed && memcmp(first, other, packed) == 0,
                   "level %d writes different bytes", isa);
    }
    stream.avail_in = (uInt)packed;
    if (inflateInit2(&stream, -15) != Z_OK)
        abort();
    FUZZ_CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib: %s",
               stream.msg != NULL ? stream.msg : "no end");
    FUZZ_CHECK(stream.avail_in == 0 && stream.total_out == size - 4 &&
                   memcmp(back, data + 4, size - 4) == 0,
               "different bytes");
    (void)inflateEnd(&stream);
    return 0;
}
