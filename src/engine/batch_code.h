/* Decoding and encoding for devices. */
#ifndef GF_BATCH_CODE_H
#define GF_BATCH_CODE_H

#include "engine/batch_held.h"

/* Decodes and encodes until all is over. */
void gf_code_images(gf_device_files *all);

#endif
