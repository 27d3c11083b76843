/* Image file directories: lists of entries, the structure of TIFF files and of EXIF data.
 *
 * A cursor visits the entries of a directory, in a file or in memory, of a classic TIFF or a
 * BigTIFF, in either byte order. Any bytes are accepted: reads past the end return 0, and a
 * directory has at most 65535 entries. The caller limits the number of directories. */
#ifndef GF_IFD_H
#define GF_IFD_H

#include "gpufilter.h"

/* A file whose bytes are read by a function of the caller, or bytes in memory. */
typedef struct gf_ifd_file {
    /* Read `bytes` bytes at an offset; they lie within the file. */
    gf_status (*read)(void *context, void *data, size_t bytes, uint64_t offset, gf_error *error);
    void *context;
    uint64_t size;
    const char *name;    /* for messages */
    unsigned char *data; /* all bytes; NULL: read them */
} gf_ifd_file;

/* Bytes of the parts of a directory: number of entries, entries, and the offset of the next
 * directory. The number of values of an entry, and a value or its offset, take `offset` bytes. */
typedef struct gf_ifd_form {
    size_t count, entry, offset;
} gf_ifd_form;

extern const gf_ifd_form gf_ifd_classic, gf_ifd_big;

typedef struct gf_ifd_entry {
    uint32_t tag, type;
    uint64_t count; /* number of values of this type */
    uint64_t bytes; /* of the values; valid if they are inside */
    uint64_t at;    /* offset of the entry */
    uint64_t value; /* offset of the values */
    bool inside;    /* the type is known, and the values lie within the file */
} gf_ifd_entry;

/* Place in the directories of a file. */
typedef struct gf_ifd {
    gf_ifd_file file;
    const gf_ifd_form *form;
    bool little;         /* byte order */
    gf_error cause;      /* failure of a read; all later ones fail, too */
    uint64_t first;      /* offset of the first directory */
    uint64_t next, left; /* offset of the next entry; entries from there on */
    uint64_t link;       /* offset of the offset of the next directory */
    uint64_t block_offset, block_bytes;
    unsigned char block[4096]; /* part of a file: a directory is seldom larger */
} gf_ifd;

/* Return the bytes of a value of this type; 0 for an unknown one. */
size_t gf_ifd_type_bytes(uint32_t type);
/* Read the header. Return false if it is not that of a TIFF structure, or cannot be read. */
bool gf_ifd_open(gf_ifd *ifd, const gf_ifd_file *file);
/* Move to the first entry of a directory. Return false if the file does not contain all entries;
 * those that it contains can be visited. */
bool gf_ifd_start(gf_ifd *ifd, uint64_t directory);
/* Return the next entry. Return false after the last one. */
bool gf_ifd_next(gf_ifd *ifd, gf_ifd_entry *entry);
/* Find an entry of a directory by its tag and the bits of its possible types. */
bool gf_ifd_find(gf_ifd *ifd, uint64_t directory, uint32_t tag, uint32_t types,
                 gf_ifd_entry *entry);
/* Read bytes. Return false if they are not in the file or cannot be read. */
bool gf_ifd_read(gf_ifd *ifd, void *data, uint64_t size, uint64_t offset);
/* Return an unsigned number of up to 8 bytes; 0 if it cannot be read. */
uint64_t gf_ifd_number(gf_ifd *ifd, uint64_t offset, size_t bytes);
/* Return the first value of an entry of unsigned integers or offsets; 0 for others. */
uint64_t gf_ifd_integer(gf_ifd *ifd, const gf_ifd_entry *entry);
/* Store a number in memory, within the data. */
void gf_ifd_put(gf_ifd *ifd, uint64_t offset, uint64_t number, size_t bytes);

#endif
