/* A source of rows that lie in a file as they are: behind a header, as text, or without either. */
#ifndef GF_ROW_SOURCE_H
#define GF_ROW_SOURCE_H

#include "io/kinds.h"
#include "io/pnm.h"
#include "io/row_reader.h"

typedef struct gf_row_source {
    gf_source base;
    gf_input input;
    gf_pnm_header header;
    uint64_t max_memory;
    gf_row_order order;
    gf_row_reader *reader; /* NULL: what comes, comes in its order */
    uint64_t y;            /* of the next row */
    unsigned char *held;   /* a PFM that cannot be read backwards, once read */
    bool returned;         /* from a pipe: the header ends in CR, */
    bool fed;              /* and the first byte behind it is LF */
    bool raw;              /* no header: rows are all that there may be */
} gf_row_source;

/* Says what the rows are and where: format, order and all else that is not 0. */
typedef gf_status gf_open_rows(gf_row_source *source, const gf_limits *limits, gf_error *error);

/* As gf_open_source, with what `open` finds out. */
gf_status gf_row_source_open(gf_open_rows *open, const gf_input *input, const gf_limits *limits,
                             gf_source **opened, gf_error *error);

/* For gf_open_rows. Files that know no size (in /proc) call themselves empty. */
bool gf_row_source_knows_size(const gf_row_source *source);
/* Where the last row ends. */
uint64_t gf_row_source_end(const gf_row_source *source);
/* Where rows have a place, they can be read from there, by many. */
gf_status gf_row_source_open_reader(gf_row_source *source, uint32_t threads, gf_error *error);
/* The file ends in row y. */
gf_status gf_row_source_fail_short(const gf_row_source *source, uint64_t y, gf_error *error);

#endif
