/* Images on their way through devices: what the threads that decode and encode them share with
 * those that drive the devices. */
#ifndef GF_BATCH_HELD_H
#define GF_BATCH_HELD_H

#include "engine/batch_files.h"
#include "engine/task.h"

/* An image on its way. */
typedef struct gf_held {
    struct gf_held *next;
    uint64_t item;
    bool fresh;   /* it is not known yet whether it is large */
    bool once;    /* it cannot be read again */
    gf_task task; /* its source, until it is decoded */
    gf_format in_format, out_format;
    void *in, *out;
    uint64_t bytes; /* of both */
    gf_metadata metadata;
    gf_result *result;
    gf_report report;
} gf_held;

typedef struct gf_queue {
    gf_held *first, **last;
    uint64_t count;
} gf_queue;

typedef struct gf_device_files {
    gf_files *files;
    gf_queue opened;   /* to be decoded, as soon as there is room */
    gf_queue waiting;  /* for a device */
    gf_queue large;    /* for a device, from file to file */
    gf_queue finished; /* to be encoded */
    uint64_t held, held_bytes, most_bytes;
    uint64_t fresh;         /* images begun of which it is not known yet whether they are large */
    bool asking;            /* somebody waits for an item from outside */
    uint32_t starting;      /* devices that have not started */
    uint32_t driven;        /* devices that are there, or starting */
    uint32_t each;          /* threads of an engine of a device, for its reader and its writer */
    uint32_t engines;       /* open, or being opened, */
    uint32_t most_engines;  /* and as many as may be */
    uint32_t at_large;      /* of them, those that are at work on a large image */
    bool enough;            /* open no further engines */
    pthread_cond_t lacking; /* with the lock: more engines may be wanted, or all is over */
} gf_device_files;

/* Under the lock: puts an image last, or those of a list first; takes out the one that *at points
 * to. */
void gf_held_put(gf_queue *queue, gf_held *held);
void gf_held_put_back(gf_queue *queue, gf_held *list);
gf_held *gf_held_take_out(gf_queue *queue, gf_held **at);
/* Takes the lock, puts an image last, and wakes who waits for it. */
void gf_held_hand_on(gf_device_files *all, gf_queue *queue, gf_held *held);
/* Under the lock: from now on it takes so many bytes. */
void gf_held_take_room(gf_device_files *all, gf_held *held, uint64_t bytes);
/* Frees an image, of which nothing is told. */
void gf_held_release(gf_device_files *all, gf_held *held);
/* Frees what was read of it: it takes no more room, and is run from file to file. */
void gf_held_shed(gf_device_files *all, gf_held *held);
/* Sheds it, and lets a device run it. */
void gf_held_make_large(gf_device_files *all, gf_held *held);
/* Are there more large images than engines? Under the lock. */
bool gf_held_lacks_engines(const gf_device_files *all);
/* Waits until all devices have started: before that nothing is told, since one that cannot ends the
 * batch as if it had not begun. False if one could not. */
bool gf_held_may_tell(gf_device_files *all);

#endif
