/* Photoshop image resources, which contain IPTC data. Any bytes are accepted. */
#ifndef GF_IPTC_H
#define GF_IPTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A resource: signature, number, name with its length, size, data. Name and data are padded to even
 * sizes. */
typedef struct gf_resource {
    uint32_t id;             /* 0: the signature is not 8BIM */
    size_t start, data, end; /* offsets of the resource, its data, and the next resource */
    size_t size;             /* of the data */
} gf_resource;

enum { GF_RESOURCE_IPTC = 1028 };

/* Step to the next resource; from a zeroed one, to the first. Return false if there is none. */
bool gf_resource_next(const unsigned char *data, size_t size, gf_resource *resource);
/* Remove the thumbnails. Return the new size. */
size_t gf_resources_update(unsigned char *data, size_t size);
/* Return resources, preceded by one with IPTC data unless they contain some, as JPEG files store
 * it. Both sizes may be 0. The caller frees the result; NULL if out of memory. */
unsigned char *gf_resources_join(const void *iptc, size_t iptc_size, const void *resources,
                                 size_t size, size_t *joined_size);

#endif
