/* Shared by the tests of PNG files: a path, and chunks that the reader carries or drops. */
#ifndef PNG_FILE_H
#define PNG_FILE_H

#include "io_util.h"
#include "png_util.h"

static inline const char *path(void) {
    return in_directory("x.png");
}

/* ---- metadata -------------------------------------------------------------------------------- */

static const png_extra carried[] = {
    {"gAMA", 0, "\x00\x00\xb1\x8f", 4, false},
    {"iCCP", 0, "not a profile\0\0but bytes", 25, false},
    {"cICP", 0, "\x09\x10\x00\x01", 4, false},
    {"tEXt", 0, "Title\0before", 12, false},
    {"pHYs", 1, "\0\0\x0b\x13\0\0\x0b\x13\1", 9, false},
    {"eXIf", 1, "MM\0*\0\0\0\x08\0\0", 10, false},
    {"zTXt", 1, "Comment\0\0not deflated", 21, false},
    {"teSt", 1, "", 0, false},
    {"tEXt", 2, "Title\0after", 11, false},
    {"iTXt", 2, "Key\0\0\0de\0\0Wert", 14, false},
    {"tIME", 2, "\x07\xe8\1\2\3\4\5", 7, false},
    {"gpUf", 2, "\0\1\2\3", 4, false},
};
static const png_extra dropped[] = {
    {"bKGD", 1, "\0\1\0\1\0\1", 6, false}, {"sBIT", 0, "\5\5\5", 3, false},
    {"hIST", 1, "\0\1", 2, false},         {"teST", 1, "unsafe", 6, false},
    {"pHYs", 1, "damaged!!", 9, true},     {"sPLT", 1, "n\0\x08", 3, false},
};
enum { CARRIED = sizeof carried / sizeof *carried, DROPPED = sizeof dropped / sizeof *dropped };

#endif
