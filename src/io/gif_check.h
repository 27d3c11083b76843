/* What stb_image looks at in a GIF only after it has cleared memory for all of its pixels. */
#ifndef GF_GIF_CHECK_H
#define GF_GIF_CHECK_H

#include <stdbool.h>
#include <stddef.h>

typedef enum gf_gif_state {
    GF_GIF_FITS,
    GF_GIF_CUT_OFF,  /* the first frame does not end in the file, or is more than it can hold */
    GF_GIF_DAMAGED,  /* the first frame is not in the picture, or there is none, or no colours */
    GF_GIF_BAD_CODES /* one of the first frame's codes stands for nothing */
} gf_gif_state;

/* Looks at everything as far as the first frame's end. stb_image decodes what FITS, and only that.
 */
gf_gif_state gf_gif_check(const unsigned char *data, size_t size);

#endif
