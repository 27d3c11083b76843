/* JSON, to a stream. */
#ifndef GF_CLI_JSON_H
#define GF_CLI_JSON_H

#include <stdio.h>

#include "gpufilter.h"

/* Quoted and escaped; bytes that are no UTF-8 become U+FFFD. */
void gf_json_text(FILE *file, const char *text);
/* A number; quoted where JSON cannot hold it exactly: integers above 2^53, "nan", "inf", "-inf". */
void gf_json_value(FILE *file, const gf_value *value);
/* {"width": 768, "height": 512, "channels": 3, "type": "u8"} */
void gf_json_format(FILE *file, const gf_format *format);

#endif
