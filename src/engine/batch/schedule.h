/* Scheduler of a batch: which worker does what next. It opens no file, starts no thread and takes
 * no lock: the caller serializes the calls (workers.c), and a test explores all orders of events.
 *
 * A worker that is idle has nothing to do: gf_schedule_done, with which a worker ends its step,
 * assigns steps to all idle workers that have one. Items and drivers change their state only by the
 * tables gf_item_rules and gf_driver_rules. */
#ifndef GF_SCHEDULE_H
#define GF_SCHEDULE_H

#include "core/image.h"
#include "core/machine.h"

/* Maximum engines per device. Reading, computing and writing use three. */
#define GF_BATCH_MAX_ENGINES 4u
/* Maximum engines per device for PNG files: while one waits for its files, others compute. */
#define GF_BATCH_MAX_PNG_ENGINES 8u
#define GF_BATCH_MAX_DRIVERS (GF_MAX_DEVICES * GF_BATCH_MAX_PNG_ENGINES)
#define GF_BATCH_MAX_WORKERS (GF_MAX_THREADS + GF_BATCH_MAX_DRIVERS)

/* Kinds of workers, as bits. A thread of a batch that shares its list between the CPU and devices
 * is a CPU worker and a coder. */
enum {
    GF_BY_CPU = 1,    /* runs items from file to file, on the cpu or golden backend */
    GF_BY_CODER = 2,  /* opens files for devices, uploads PNG files, writes what devices computed */
    GF_BY_DRIVER = 4, /* has an engine of a device: computes PNG files, runs items on its own */
};

/* State of an item. "Queue": waits for a worker. "Step": a worker is busy with it. */
typedef enum gf_item_state {
    GF_ITEM_NEXT,      /* not started */
    GF_ITEM_ASKING,    /* step: the work source chooses it */
    GF_ITEM_NEW,       /* queue: started */
    GF_ITEM_OPENING,   /* step: find out whether a device decodes the file */
    GF_ITEM_OPENED,    /* queue: a PNG file, waits for memory of an engine */
    GF_ITEM_UPLOADING, /* step */
    GF_ITEM_UPLOADED,  /* in the group of a driver */
    GF_ITEM_COMPUTING, /* step of the driver, with its group */
    GF_ITEM_COMPUTED,  /* queue: an encoded file in the memory of an engine */
    GF_ITEM_WRITING,   /* step */
    GF_ITEM_SINGLE,    /* queue: runs on its own, from file to file */
    GF_ITEM_RUNNING,   /* step: from file to file */
    GF_ITEM_FINISHED,  /* queue: waits for its report */
    GF_ITEM_REPORTING, /* step: one at a time */
    GF_ITEM_REPORTED,
    GF_ITEM_STATES
} gf_item_state;

/* State of a driver and of the PNG files in its engine. */
typedef enum gf_driver_state {
    GF_DRIVER_CLOSED, /* its engine is not needed yet */
    GF_DRIVER_OPENING,
    GF_DRIVER_PLAIN, /* the engine runs no PNG files in groups */
    GF_DRIVER_BARE,  /* no memory for PNG files yet */
    GF_DRIVER_ALLOCATING,
    GF_DRIVER_EMPTY,   /* memory, no files */
    GF_DRIVER_FILLING, /* files are uploaded, more may follow */
    GF_DRIVER_FULL,    /* no more files */
    GF_DRIVER_DECODING,
    GF_DRIVER_ENCODING, /* filters and encodes */
    GF_DRIVER_WRITING,  /* the memory holds computed files */
    GF_DRIVER_LEAVING,  /* its engine failed; coders still use the memory */
    GF_DRIVER_CLOSING,
    GF_DRIVER_GONE,
    GF_DRIVER_STATES
} gf_driver_state;

/* Steps that a worker begins, results with which it ends them, and what happens to a group. */
typedef enum gf_event {
    GF_DO_NOTHING, /* idle */
    GF_DO_END,     /* the batch is over: the thread ends */
    GF_DO_START,   /* not a step: start the next item of this process's list */
    GF_DO_ASK,
    GF_DO_OPEN,
    GF_DO_UPLOAD,
    GF_DO_WRITE,
    GF_DO_RUN,
    GF_DO_REPORT,
    GF_DO_OPEN_ENGINE,
    GF_DO_ALLOCATE,
    GF_DO_DECODE,
    GF_DO_ENCODE,
    GF_DO_CLOSE_ENGINE,
    GF_IS_DONE,
    /* The item runs in another way. From a driver: no memory, no PNG files, or its group failed but
     * not the device. GF_DO_ASK: no item now. GF_DO_REPORT: start no more items. */
    GF_IS_REFUSED,
    /* The engine failed, did not open, or has no memory for an item. GF_DO_ASK: no more items. */
    GF_IS_LOST,
    GF_IS_CLOSED, /* the group takes no more files */
    GF_IS_CLEAR,  /* no file is left in the memory */
} gf_event;

/* One permitted transition: `from` becomes `to`. by: the kinds of workers that may cause it. */
typedef struct gf_schedule_rule {
    unsigned char from, event, to, by;
} gf_schedule_rule;

/* The tables. Each ends with a rule of by 0. */
extern const gf_schedule_rule gf_item_rules[], gf_driver_rules[];

/* An item in progress. The owner embeds it. */
typedef struct gf_schedule_item {
    struct gf_schedule_item *next; /* in its queue or group */
    uint64_t number;               /* index in the list; set by GF_DO_ASK or the scheduler */
    gf_item_state state;
    bool failed; /* set by GF_DO_WRITE and GF_DO_RUN */
    /* A PNG file. GF_DO_OPEN refuses more than max_bytes, and with several_parts one stream. */
    uint64_t max_bytes;
    bool several_parts;
    gf_format format; /* set by GF_DO_OPEN, ... */
    uint64_t bytes;   /* ... as the device memory for the image */
    uint32_t parts;   /* deflate streams; set by GF_DO_OPEN and GF_DO_UPLOAD. 0: unknown */
    uint32_t driver;  /* from GF_DO_UPLOAD: whose memory it uses, ... */
    uint64_t offset;  /* ... from this byte */
    bool computed;    /* set by GF_DO_ENCODE; false: another way is needed */
} gf_schedule_item;

typedef struct gf_schedule_queue {
    gf_schedule_item *first, **last;
} gf_schedule_queue;

typedef struct gf_schedule_driver {
    gf_driver_state state;
    /* Memory for PNG files, in bytes, and how much of it is reserved. wanted: set for
     * GF_DO_ALLOCATE, with the format of one of the files. */
    uint64_t size, used, wanted;
    gf_format format;        /* of the group */
    gf_schedule_item *group; /* uploaded or computed together */
    uint32_t count;          /* items in the group */
    uint64_t streams;        /* deflate streams of the group */
    uint32_t uploading;      /* files that have memory, and are not in the group yet */
    uint32_t held;           /* computed files that are not written yet */
} gf_schedule_driver;

typedef struct gf_schedule_worker {
    gf_event step;                   /* GF_DO_NOTHING: idle */
    gf_schedule_item *item;          /* of the step, if it has one */
    gf_schedule_item *spare;         /* that the worker may start: set while it is idle */
    struct gf_schedule_worker *idle; /* another idle coder */
} gf_schedule_worker;

typedef struct gf_schedule {
    /* Constant during the batch. */
    const gf_schedule_rule *item_rules, *driver_rules; /* NULL: the tables above */
    uint64_t count, expected; /* items of the list, and those that this process will run */
    uint64_t window; /* report in order: maximum items started and unreported; 0: in any order */
    bool shared;     /* other processes run items of the same list */
    bool fail_fast;  /* start no more items after a failure */
    uint32_t coders; /* workers 0 to coders - 1, of these kinds; the drivers follow */
    uint32_t coder_kinds;
    bool with_cpu;    /* CPU workers and devices share the list, from the start */
    uint32_t devices; /* driver i belongs to device i % devices */
    uint32_t driver_count;
    uint32_t engines;  /* maximum items that run on their own at once on devices */
    bool may_read_png; /* engines may turn out to run PNG files */
    uint32_t at_once;  /* files read and written at the same time */
    double few;        /* fewer files of one stream each: CPU threads finish them sooner */
    uint64_t
        max_images; /* maximum items in memory of devices or waiting for an engine; 0: default */
    uint64_t max_streams; /* deflate streams that close a group; 0: default */
    void (*wake)(void *context, uint32_t worker); /* a step was assigned; NULL: not used */
    void *context;

    /* Items. */
    uint64_t begun, reported;
    bool stop;    /* start no more items: also if the work source has none */
    bool aborted; /* the owner may set it: steps end, and what has finished is reported */
    bool broken;  /* a transition is not in the tables: a defect of the program */
    gf_schedule_queue queues[GF_ITEM_STATES]; /* of the states that are queues */
    uint64_t counts[GF_ITEM_STATES];          /* number of items, without those not started */

    /* PNG files on devices. */
    uint32_t parts;          /* deflate streams of the file that was read last */
    bool few_left;           /* devices decode no other files of one stream */
    uint64_t wanted_bytes;   /* for a group, or for all files that are left */
    gf_format wanted_format; /* of one of them */
    uint64_t engine_bytes;   /* maximum memory of an engine; the owner may reduce it */

    /* Workers. */
    gf_schedule_worker *workers, *idle; /* idle: list of coders */
    gf_schedule_driver *drivers;
    uint64_t in_state[GF_DRIVER_STATES]; /* number of drivers */
    uint32_t starting;                   /* devices whose first engine is being opened */
    bool no_more_engines;                /* open no additional engines */
} gf_schedule;

/* Prepare a schedule whose constants and workers are set, and assign the first steps. */
void gf_schedule_start(gf_schedule *schedule);
/* End the step of a worker with GF_IS_DONE, GF_IS_REFUSED or GF_IS_LOST. The owner frees the item
 * of the step if its state is then GF_ITEM_NEXT or GF_ITEM_REPORTED. */
void gf_schedule_done(gf_schedule *schedule, uint32_t worker, gf_event result);
/* Assign steps to idle workers, after a change of `aborted`. */
void gf_schedule_dispatch(gf_schedule *schedule);
/* Remove an item that an aborted batch has left; NULL: none. */
gf_schedule_item *gf_schedule_remove(gf_schedule *schedule);

#endif
