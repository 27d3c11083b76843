/* The cursor for image file directories. */
#include "io/meta/ifd.h"

#include <string.h>
#include <tiff.h>

const gf_ifd_form gf_ifd_classic = {2, 12, 4}, gf_ifd_big = {8, 20, 8};

size_t gf_ifd_type_bytes(uint32_t type) {
    enum { UTF8 = 129 };
    static const unsigned char sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof sizes ? sizes[type] : type == UTF8;
}

bool gf_ifd_read(gf_ifd *ifd, void *data, uint64_t size, uint64_t offset) {
    enum { MAX_NUMBER = 8 };
    const gf_ifd_file *file = &ifd->file;
    const uint64_t left = offset < file->size ? file->size - offset : 0;
    if (ifd->cause.status || size > left)
        return false;
    if (file->data) {
        memcpy(data, file->data + offset, size);
        return true;
    }
    if (offset < ifd->block_offset || offset - ifd->block_offset + size > ifd->block_bytes) {
        if (size > MAX_NUMBER) /* the value of an entry: the next entries stay in the block */
            return !file->read(file->context, data, size, offset, &ifd->cause);
        ifd->block_offset = offset;
        ifd->block_bytes = left < sizeof ifd->block ? left : sizeof ifd->block;
        if (file->read(file->context, ifd->block, ifd->block_bytes, offset, &ifd->cause))
            return false;
    }
    memcpy(data, ifd->block + (offset - ifd->block_offset), size);
    return true;
}

uint64_t gf_ifd_number(gf_ifd *ifd, uint64_t offset, size_t bytes) {
    unsigned char from[8];
    uint64_t number = 0;
    if (!gf_ifd_read(ifd, from, bytes, offset))
        return 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | from[ifd->little ? bytes - 1 - i : i];
    return number;
}

void gf_ifd_put(gf_ifd *ifd, uint64_t offset, uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        ifd->file.data[offset + (ifd->little ? i : bytes - 1 - i)] =
            (unsigned char)(number >> 8 * i);
}

bool gf_ifd_open(gf_ifd *ifd, const gf_ifd_file *file) {
    enum { CLASSIC = 42, BIG = 43 };
    char order[2] = "";
    *ifd = (gf_ifd){.file = *file};
    (void)gf_ifd_read(ifd, order, 2, 0);
    ifd->little = order[0] == 'I';
    const uint64_t version = gf_ifd_number(ifd, 2, 2);
    ifd->form = version == BIG ? &gf_ifd_big : &gf_ifd_classic;
    ifd->first = gf_ifd_number(ifd, ifd->form->offset, ifd->form->offset);
    return file->size >= 2 * ifd->form->offset && !ifd->cause.status && order[0] == order[1] &&
           (ifd->little || order[0] == 'M') && (version == CLASSIC || version == BIG);
}

bool gf_ifd_start(gf_ifd *ifd, uint64_t directory) {
    const gf_ifd_form *form = ifd->form;
    const uint64_t size = ifd->file.size, left = directory < size ? size - directory : 0;
    const uint64_t count = gf_ifd_number(ifd, directory, form->count);
    const uint64_t most = left < form->count ? 0 : (left - form->count) / form->entry;
    const bool valid = directory && left >= form->count && count <= UINT16_MAX;
    ifd->next = directory + form->count;
    ifd->left = !valid ? 0 : count < most ? count : most;
    ifd->link = valid ? ifd->next + count * form->entry : size;
    return valid && count <= most && !ifd->cause.status;
}

bool gf_ifd_next(gf_ifd *ifd, gf_ifd_entry *entry) {
    const uint64_t at = ifd->next, size = ifd->file.size;
    const size_t wide = ifd->form->offset;
    if (ifd->left == 0)
        return false;
    *entry = (gf_ifd_entry){.tag = (uint32_t)gf_ifd_number(ifd, at, 2),
                            .type = (uint32_t)gf_ifd_number(ifd, at + 2, 2),
                            .count = gf_ifd_number(ifd, at + 4, wide),
                            .at = at,
                            .value = at + 4 + wide};
    const size_t bytes = gf_ifd_type_bytes(entry->type);
    if (bytes == 0 || entry->count > wide / bytes)
        entry->value = gf_ifd_number(ifd, entry->value, wide);
    if (bytes && entry->count <= size / bytes) {
        entry->bytes = entry->count * bytes;
        entry->inside = entry->bytes <= size && entry->value <= size - entry->bytes;
    }
    ifd->next += ifd->form->entry;
    ifd->left--;
    return !ifd->cause.status;
}

bool gf_ifd_find(gf_ifd *ifd, uint64_t directory, uint32_t tag, uint32_t types,
                 gf_ifd_entry *entry) {
    (void)gf_ifd_start(ifd, directory);
    while (gf_ifd_next(ifd, entry))
        if (entry->tag == tag && entry->type < 32 && types >> entry->type & 1)
            return true;
    return false;
}

uint64_t gf_ifd_integer(gf_ifd *ifd, const gf_ifd_entry *entry) {
    enum {
        TYPES = 1 << TIFF_BYTE | 1 << TIFF_SHORT | 1 << TIFF_LONG | 1 << TIFF_IFD |
                1 << TIFF_LONG8 | 1 << TIFF_IFD8
    };
    const bool any =
        entry->inside && entry->count && entry->type < 32 && (unsigned)TYPES >> entry->type & 1;
    return any ? gf_ifd_number(ifd, entry->value, gf_ifd_type_bytes(entry->type)) : 0;
}
