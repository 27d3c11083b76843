/* Two small pictures that are formulas: an unevenly lit background of 16 bits, as a microscope
 * takes it, and a ramp of binary32. */
#include "draw.h"
#include "picture.h"
#include "random.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 640, HEIGHT = 480, RAMP_WIDTH = 1024, RAMP_ROWS = 4 };

/* Light falls off from a centre that is off the middle, and the field leans to one side. The
 * constants make the ends of the range: darkest and brightest pixel nearly reach 0 and 65535. */
static double background(int x, int y) {
    double u = (double)x / WIDTH, v = (double)y / HEIGHT;
    double du = u - 0.40, dv = v - 0.42;
    double fall = 1.0 / (1.0 + 2.6 * (du * du + 0.8 * dv * dv));
    double lean = 1.0 - 0.30 * u - 0.22 * v;
    return (fall * fall * lean - 0.0665) * 89000.0;
}

bool draw_gradient(const char *path) {
    picture *p = picture_open(path, WIDTH, HEIGHT, 1, 16, PICTURE_SMALL);
    if (!p)
        return false;
    rng r = rng_seed(16);
    for (int y = 0; y < HEIGHT; y++) {
        uint8_t row[WIDTH * 2];
        for (int x = 0; x < WIDTH; x++) {
            double value = background(x, y) + 60.0 * rng_normal(&r) + 0.5;
            uint32_t sample = value < 0 ? 0 : value > 65535 ? 65535 : (uint32_t)value;
            row[2 * x] = (uint8_t)(sample >> 8);
            row[2 * x + 1] = (uint8_t)(sample & 255);
        }
        if (!picture_row(p, row))
            break;
    }
    return picture_close(p);
}

/* The bytes are placed by hand, so that the file is little-endian on every machine. */
static void put_float(uint8_t bytes[4], float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(bits >> (8 * i));
}

bool draw_ramp(const char *path) {
    uint8_t row[RAMP_WIDTH * 4];
    for (int i = 0; i < RAMP_WIDTH; i++) {
        float slope = (float)i / 100.0f; /* rounded on its own, then the sum is rounded */
        float value = (float)(i % 10) + slope;
        put_float(row + 4 * i, value);
    }
    FILE *file = fopen(path, "wb");
    if (!file)
        return picture_complain(path, NULL);
    bool ok = fprintf(file, "Pf\n%d %d\n-1.0\n", RAMP_WIDTH, RAMP_ROWS) > 0;
    for (int y = 0; y < RAMP_ROWS && ok; y++)
        ok = fwrite(row, 1, sizeof row, file) == sizeof row;
    int written = errno; /* fclose may set another */
    if (fclose(file) != 0 && ok)
        return picture_complain(path, NULL);
    errno = written;
    return ok || picture_complain(path, NULL);
}
