#include "about.h"

#include <stdio.h>
#include <string.h>

const char gf_about_summary[] = "image filters with the same bits on CPU and GPU";

const gf_about_format gf_about_formats[] = {
    {"PNG", "png", true, true,
     "Every colour type and depth, interlaced, too; 16 bits stay 16. Its metadata go along from PNG "
     "to PNG."},
    {"PGM", "pgm pnm", true, true, "Grey, 8 or 16 bits; text or binary in, binary out."},
    {"PPM", "ppm pnm", true, true, "RGB, 8 or 16 bits; text or binary in, binary out."},
    {"PBM", "pbm", false, false, "Not read: pbmtopgm makes a PGM of it."},
    {"PAM", "pam", true, true, "1 to 4 channels, 8 or 16 bits."},
    {"PFM", "pfm", true, true, "Grey or RGB, binary32."},
    {"JPEG", "jpg jpeg", true, true, "Grey or RGB, 8 bits; loses by its nature."},
    {"BMP", "bmp", true, true, "8 bits."},
    {"TGA", "tga", true, true, "8 bits; has no mark, so it is known by its name."},
    {"PSD", "psd", true, false, "RGB; the picture of all layers together."},
    {"GIF", "gif", true, false, "Its first frame."},
    {"HDR", "hdr", true, true, "RGB, read as binary32; loses by its nature."},
    {"raw rows", "raw", false, true,
     "Samples without a header; read with --raw, written little-endian."},
    {0}};

const gf_about_exit gf_about_exits[] = {
    {"0", "good", "All that was asked for was done.", "The images are the same."},
    {"1", "a file failed or images differ",
     "A file, an image, memory or the system failed. A line on standard error says which, why, and "
     "what to do.",
     "The images differ."},
    {"2", "usage (or compare could not compare)", "An option or an operand is not acceptable.",
     "The images could not be compared, or an option or an operand is not acceptable."},
    {"3", "no such backend or device", "The backend or device that was asked for is not there.",
     "The backend or device that was asked for is not there."},
    {"128 + n", "on signal n", "Signal n ended the program, as a shell tells it.",
     "Signal n ended the program, as a shell tells it."},
    {0}};

const gf_about_name gf_about_words[] = {
    {"help", "tell what there is, or about one filter or command"},
    {"version", "print the version"},
    {0}};

const gf_about_name gf_about_environment[] = {
    {"NO_COLOR", "If it is set, and not empty, there are no colours but by --color always."},
    {"TERM", "Without it, or if it is dumb, there are neither colours nor a bar."},
    {"LC_ALL",
     "The first of LC_ALL, LC_CTYPE and LANG that is set says whether bars in tables are "
     "drawn in UTF-8, or with number signs."},
    {"LC_CTYPE", NULL},
    {"LANG", NULL},
    {"OMPI_COMM_WORLD_SIZE",
     "Any of these is how a program that was built with MPI knows that a "
     "launcher such as mpirun started it. Others do not look at them."},
    {"PMIX_RANK", NULL},
    {"PMI_RANK", NULL},
    {"PMI_SIZE", NULL},
    {0}};
