#include "engine/batch_held.h"

#include <stdlib.h>

#include "io/metadata.h"

/* ---- queues: all under the lock -------------------------------------------------------------- */

void gf_held_put(gf_queue *queue, gf_held *held) {
    held->next = NULL;
    *queue->last = held;
    queue->last = &held->next;
    queue->count++;
}

void gf_held_put_back(gf_queue *queue, gf_held *list) {
    gf_held **end = &list;
    for (; *end; end = &(*end)->next)
        queue->count++;
    if (!queue->first)
        queue->last = end;
    *end = queue->first;
    queue->first = list;
}

gf_held *gf_held_take_out(gf_queue *queue, gf_held **at) {
    gf_held *held = *at;
    *at = held->next;
    if (!*at)
        queue->last = at;
    held->next = NULL;
    queue->count--;
    return held;
}

/* ---- an image -------------------------------------------------------------------------------- */

void gf_held_hand_on(gf_device_files *all, gf_queue *queue, gf_held *held) {
    pthread_mutex_lock(&all->files->lock);
    gf_held_put(queue, held);
    pthread_cond_broadcast(&all->files->moved);
    pthread_mutex_unlock(&all->files->lock);
}

static void free_pixels(gf_held *held) {
    free(held->in);
    free(held->out);
    held->in = held->out = NULL;
}

/* Under the lock: it takes no more room, and what it is is known. */
static void settle(gf_device_files *all, gf_held *held) {
    all->held_bytes -= held->bytes;
    all->held -= held->bytes > 0;
    all->fresh -= held->fresh;
    held->bytes = 0;
    held->fresh = false;
}

void gf_held_take_room(gf_device_files *all, gf_held *held, uint64_t bytes) {
    settle(all, held);
    held->bytes = bytes;
    all->held_bytes += bytes;
    all->held++;
}

void gf_held_release(gf_device_files *all, gf_held *held) {
    gf_task_end(&held->task);
    free_pixels(held);
    pthread_mutex_lock(&all->files->lock);
    settle(all, held);
    pthread_mutex_unlock(&all->files->lock);
    gf_metadata_clear(&held->metadata);
    gf_result_free(held->result);
    free(held);
}

/* What only an image in memory needs. */
static void drop_image(gf_held *held) {
    gf_task_end(&held->task);
    held->task = (gf_task){0};
    free_pixels(held);
    gf_metadata_clear(&held->metadata);
    gf_metadata_init(&held->metadata);
}

void gf_held_shed(gf_device_files *all, gf_held *held) {
    drop_image(held);
    pthread_mutex_lock(&all->files->lock);
    settle(all, held);
    pthread_mutex_unlock(&all->files->lock);
}

void gf_held_make_large(gf_device_files *all, gf_held *held) {
    drop_image(held);
    pthread_mutex_lock(&all->files->lock);
    /* Under one lock: nobody may find it to be neither fresh nor large, and take another. */
    settle(all, held);
    gf_held_put(&all->large, held);
    pthread_cond_broadcast(&all->files->moved);
    if (gf_held_lacks_engines(all))
        pthread_cond_signal(&all->lacking);
    pthread_mutex_unlock(&all->files->lock);
}

bool gf_held_lacks_engines(const gf_device_files *all) {
    return all->starting == 0 && !all->enough && all->large.count + all->at_large > all->engines;
}

bool gf_held_may_tell(gf_device_files *all) {
    gf_files *files = all->files;
    pthread_mutex_lock(&files->lock);
    while (all->starting && !files->status)
        pthread_cond_wait(&files->moved, &files->lock);
    const bool started = all->starting == 0;
    pthread_mutex_unlock(&files->lock);
    return started;
}
