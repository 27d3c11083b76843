/* The seeds of the fuzzing corpus: make_seeds FOLDER writes them into a folder for each harness. */
#include <sys/stat.h>
#include <zlib.h>

#include "../png_both.h"
#include "cli/journal_file.h"
#include "cli/journal_line.h"
#include "seeds.h"

static const char *root;
static int count;

void seed_put(const char *harness, const void *data, size_t size) {
    char path[2048];

    (void)snprintf(path, sizeof path, "%s/%s", root, harness);
    if (mkdir(path, 0777) != 0 && access(path, W_OK) != 0) {
        perror(path);
        exit(1);
    }
    (void)snprintf(path, sizeof path, "%s/%s/%04d", root, harness, count++);
    put_bytes(path, data, size);
}

/* ---- PNG ------------------------------------------------------------------------------------- */

static void put_png(const png_spec *spec) {
    png_bytes file;

    png_make(spec, &file, NULL, NULL);
    seed_put("fuzz_png", file.data, file.size);
    free(file.data);
}

static void put_pngs(void) {
    static const png_extra extras[] = {
        {"gAMA", 0, "\0\0\xb1\x8f", 4, false},
        {"cHRM", 0, "\0\0z&\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0u0\0\0\xea`\0\0:\x98\0\0\x17p", 32,
         false},
        {"sRGB", 0, "\0", 1, false},
        {"pHYs", 1, "\0\0\x0b\x13\0\0\x0b\x13\1", 9, false},
        {"tIME", 1, "\x07\xea\1\1\0\0\0", 7, false},
        {"tEXt", 1, "Title\0a title", 13, false},
        {"eXIf", 1, "MM\0*\0\0\0\x08\0\0", 10, false},
        {"cICP", 0, "\x09\x10\0\1", 4, false},
        {"sBIT", 0, "\5\5\5", 3, false},
        {"bKGD", 1, "\0\1\0\1\0\1", 6, false},
        {"abCd", 2, "whatever", 8, false},
        {"iTXt", 2, "Title\0\0\0en\0Title\0a title", 22, false},
        {"tEXt", 2, "Author\0damaged", 14, true},
    };
    uint32_t seed = 5;

    for (size_t kind = 0; kind < KINDS; kind++)
        for (int interlaced = 0; interlaced < 2; interlaced++)
            for (int transparent = 0; transparent < (kinds[kind][0] < 4 ? 2 : 1); transparent++)
                for (int filter = 0; filter <= PNG_ROWS_RANDOM; filter++)
                    put_png(&(png_spec){.width = 7 + (uint32_t)filter,
                                        .height = 6,
                                        .color = kinds[kind][0],
                                        .depth = kinds[kind][1],
                                        .interlaced = interlaced != 0,
                                        .transparent = transparent != 0,
                                        .filter = (png_rows)filter,
                                        .seed = (uint32_t)filter});
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++)
        put_png(&(png_spec){.width = 5,
                            .height = 4,
                            .color = i % 2 != 0 ? 3 : 2,
                            .depth = 8,
                            .palette_count = 17,
                            .extras = &extras[i],
                            .extra_count = i % 4 == 0 ? sizeof extras / sizeof *extras - i : 1});
    for (int i = 0; i < 60; i++) {
        const png_spec spec = random_spec(&seed, 40);
        put_png(&spec);
    }
}

/* A stream for fuzz_inflate, behind what it begins with: rows of 11 bytes, some of them, in chunks
 * of so many bytes. */
static void put_stream(int level, int strategy, unsigned piece) {
    unsigned char data[4096] = {10, 0, 19, (unsigned char)piece, (unsigned char)(piece >> 8)};
    unsigned char raw[20 * 11];
    z_stream stream = {
        .next_in = raw, .avail_in = sizeof raw, .next_out = data + 5, .avail_out = sizeof data - 5};

    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (unsigned char)(i % 11 == 0 ? i / 11 % 5 : i * i % 7);
    if (deflateInit2(&stream, level, Z_DEFLATED, 15, 8, strategy) != Z_OK ||
        deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    seed_put("fuzz_inflate", data, 5 + stream.total_out);
    (void)deflateEnd(&stream);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_text(const char *harness, const char *text) {
    seed_put(harness, text, strlen(text));
}

#define PUT(harness, literal) seed_put(harness, literal, sizeof(literal) - 1)

static void put_rows(void) {
    put_text("fuzz_pnm", "P2\n# a comment\n3 2\n255\n0 1 2\n253 254 255\n");
    put_text("fuzz_pnm", "P3 1 2 65535 1 2 3 65535 0 9\n");
    PUT("fuzz_pnm", "P5\n3 2\n255\nabcdef");
    PUT("fuzz_pnm", "P5 2 2 65535\n\0\1\2\3\4\5\6\7");
    PUT("fuzz_pnm", "P6\n1 2\n255\nabcdef");
    PUT("fuzz_pnm", "P6\r1 1\r65535\r\n12345");
    PUT("fuzz_pnm", "P5\r2 1\r255\r\nx");
    PUT("fuzz_pnm",
        "P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
        "abcdefgh");
    PUT("fuzz_pnm", "P7\n# c\nWIDTH 1\nHEIGHT 2\nDEPTH 2\nMAXVAL 65535\nENDHDR\nabcdefgh");
    PUT("fuzz_pnm", "P7\nMAXVAL 255\nDEPTH 1\nHEIGHT 2\nWIDTH 2\nTUPLTYPE GRAYSCALE\nENDHDR\nabcd");
    PUT("fuzz_pnm", "Pf\n2 2\n-1.0\n\0\0\x80?\0\0\0\0\0\0\xc0\x7f\1\0\0\0");
    PUT("fuzz_pnm", "PF\n1 2\n1\n?\x80\0\0@\0\0\0@@\0\0\x80\0\0\0\x7f\x80\0\0\x7f\xc0\0\1");
    PUT("fuzz_pnm", "P4\n8 1\n\xff");
    PUT("fuzz_raw", "3x2:u8\nabcdef");
    PUT("fuzz_raw", "2x1x3:u16be+4\nhead123456abcdef");
    PUT("fuzz_raw", "1x1x4:f32be\n0123456789abcdef");
    PUT("fuzz_raw", "2x2:u16le+1\n?12345678");
    PUT("fuzz_raw", "4x1x2:f32+0\n0123456789abcdef0123456789abcdef");
}

/* ---- command lines --------------------------------------------------------------------------- */

/* Words, and what follows the empty one that ends them. */
static void put_line(const char *harness, const char *words, const void *tail, size_t size) {
    char line[4096];
    size_t length = strlen(words);

    memcpy(line, words, length);
    for (size_t i = 0; i < length; i++)
        line[i] = line[i] == ' ' ? '\0' : line[i];
    line[length++] = '\0';
    if (tail != NULL) {
        line[length++] = '\0';
        memcpy(line + length, tail, size);
        length += size;
    }
    seed_put(harness, line, length);
}

static void put_lines(void) {
    static const char *const lines[] = {
        "smooth a.x out.png",
        "smooth --keep-brightness --axis xy --radius 3 a.x out.png -v",
        "smooth -k --stages enhance,blur --gain=1.5 --weight 0.25 --tile 256 a.x -",
        "smooth - out.pam --format pam --force",
        "smooth a.x b.png c.ppm --out-dir o --name {stem}-{index:3}{ext} --threads 2",
        "smooth --out-dir o --files-from a.x --resume --json",
        "smooth --out-dir . --force b.png c.ppm --fail-fast --shard=1/2",
        "smooth --raw 3x2:u8 a.x out.raw --band-rows 1 --max-memory 1M",
        "smooth --compression small --strip --simd portable --backend golden b.png out.png",
        "hist a.x --bins 8 --extract 3",
        "hist b.png --channel all --plot h.svg --per-row --csv",
        "hist b.png -n 8 -x 3 --out v.npy --mask m.png --range 0,255 --json",
        "axis-sum b.png --axis y --json --max-pixels 1K",
        "axis-sum c.ppm --csv --plot p.png --log",
        "dot b.png b.png --json",
        "compare b.png c.ppm --diff d.png",
        "compare b.png a.x --csv",
        "normalize c.ppm out.ppm --verbose --max-chunk 1M",
        "info a.x b.png c.ppm --json",
        "devices --json",
        "help hist",
        "smooth --help",
        "-- --version",
    };
    png_bytes file;
    const png_spec spec = {.width = 6, .height = 5, .color = 6, .depth = 8};

    png_make(&spec, &file, NULL, NULL);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        put_line("fuzz_options", lines[i], NULL, 0);
        put_line("fuzz_cli", lines[i], file.data, file.size);
        put_line("fuzz_cli", lines[i], "P5\n2 3\n255\nabcdef", 17);
    }
    put_line("fuzz_cli", lines[5], "a.x\nb.png\nc.ppm\nno.png\n", 23);
    put_line("fuzz_cli", lines[7], "abcdef", 6);
    free(file.data);
}

static void put_journals(void) {
    char text[1024] = GF_CLI_JOURNAL_HEADER;
    size_t size = strlen(text);

    PUT("fuzz_journal", GF_CLI_JOURNAL_TITLE "1\n");
    PUT("fuzz_journal", "something else\n");
    for (uint64_t i = 0; i < 3; i++) {
        static const char *const names[] = {"a.png", "folder/b\\c\nd.png", "a.png"};
        const gf_cli_made made = {i * 77, ~i, 12345 * i, -(int64_t)i, names[i]};
        size += gf_cli_line_write(&made, text + size);
        seed_put("fuzz_journal", text, size);
    }
    PUT("fuzz_list", "\0a.png\nb.png\n\n-\nc d.png");
    PUT("fuzz_list", "\1a.png\0b\nc.png\0-\0");
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void put_pixels(void) {
    unsigned char data[600];
    uint32_t seed = 9;

    for (unsigned i = 0; i < 64; i++) {
        const size_t size = 20 + i * 9;
        for (size_t k = 0; k < size; k++)
            data[k] = (unsigned char)(i % 3 == 0   ? next_random(&seed)
                                      : i % 3 == 1 ? k * i / 4
                                                   : (k / 30 % 2) * 200);
        data[0] = (unsigned char)next_random(&seed);
        data[1] = (unsigned char)next_random(&seed);
        data[2] = (unsigned char)(i * 4 + (i >> 4));
        data[3] = (unsigned char)(1 + i);
        seed_put("fuzz_deflate", data, size);
        seed_put("fuzz_encoder", data, size);
        data[1] = (unsigned char)i;
        seed_put("fuzz_stream", data, size);
    }
    PUT("fuzz_stream", "\3\0\x27\0\x20\0\x10\0radius=3 axis=y\0abcdefgh");
    PUT("fuzz_stream", "\x0a\1\7\0\x20\0\x10\0bins=7 extract=2\0abcdefgh");
}

int main(int argc, char **argv) {
    if (argc != 2 || (mkdir(argv[1], 0777) != 0 && access(argv[1], W_OK) != 0)) {
        fprintf(stderr, "usage: make_seeds FOLDER\n");
        return 2;
    }
    root = argv[1];
    put_pngs();
    for (int level = 0; level <= 9; level += 3)
        for (int strategy = Z_DEFAULT_STRATEGY; strategy <= Z_FIXED; strategy++)
            put_stream(level, strategy, level == 3 ? 1 : 2000);
    put_rows();
    put_stb_seeds();
    put_lines();
    put_journals();
    put_pixels();
    printf("%d seeds in %s\n", count, root);
    return 0;
}
