/* Driving the engines of devices through a batch of files. */
#ifndef GF_BATCH_DRIVE_H
#define GF_BATCH_DRIVE_H

#include "engine/batch_held.h"

/* One of the threads. */
typedef struct gf_device_thread {
    gf_device_files *all;
    const char *device;
    pthread_t thread;
} gf_device_thread;

/* Two ways for such a thread, until all is over. */

/* The device itself, which is started while the first images are decoded. */
void *gf_drive_device(void *thread);
/* Another engine of it, as soon as there are large images enough. Without it, those that are open
 * do the work. */
void *gf_drive_further(void *thread);

#endif
