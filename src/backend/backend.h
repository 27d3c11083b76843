/* Interface between the stream and a backend: submit a strip, wait for its output.
 *
 * A job is a chain of nodes: filters that read an edge, an image, and make another one. A strip is
 * a group of consecutive rows of the source, and the rows of all other edges that can be computed
 * from then on. Each edge has a ring: a buffer in which consecutive strips share rows. A slot is
 * the context of one strip in flight; their number limits the strips in flight. */
#ifndef GF_BACKEND_H
#define GF_BACKEND_H

#include "core/filter.h"
#include "core/thread.h"
#include "io/png/png.h"

/* ---- chains and their division into strips (cut.c) --------------------------------------------
 */

/* Edge 0 is the source, and edge i + 1 is the output of node i, without an image if its filter only
 * measures. */
enum { GF_MAX_NODES = 63, GF_MAX_EDGES = GF_MAX_NODES + 1 };

typedef struct gf_node {
    const gf_plan *plan;
    uint32_t from; /* edge that it reads, of an earlier node */
} gf_node;

/* A node with two inputs reads the same rows of a second image, which has a source of its own. Its
 * output rows depend on the same rows only. */
static inline bool gf_node_has_second(const gf_node *node) {
    return node->plan->inputs == 2;
}

/* The nodes of a job, at least one; the first one reads edge 0. */
typedef struct gf_nodes {
    const gf_node *node;
    uint32_t count;
    uint64_t written; /* bit e: the consumer reads the image of edge e */
} gf_nodes;

/* Rows of one edge in a cut. */
typedef struct gf_edge_cut {
    uint64_t start;     /* first row that is read or computed */
    uint64_t deliver;   /* first row for the consumer */
    uint64_t end;       /* of the rows that are computed, and delivered */
    uint64_t max_rows;  /* most new rows of a strip */
    uint64_t keep;      /* most rows before them that nodes read again, or with `apart` compute */
    uint64_t ring_rows; /* rows of the ring */
    size_t stride;      /* of its rows in bytes, a multiple of GF_ROW_ALIGN; 0: no image */
} gf_edge_cut;

/* Division of an image, or of a range of its rows, into strips. Strip k ends at one row of the
 * source, and at the row of each other edge up to which rows can be computed then. Further
 * positions follow the last row of the source, up to the one at which the last rows of all edges
 * are due: no strip is higher than the others because it has the last rows of a halo. */
typedef struct gf_cut {
    const gf_nodes *nodes;
    gf_range source; /* positions between which rows become due; end 0: to the last */
    bool apart; /* strips share rows of the source only, and compute those of other edges again */
    uint64_t height; /* positions per strip */
    uint64_t strips;
    uint32_t slots;
    const gf_rows *in; /* images of all inputs in memory, in order; NULL: they are in rings */
    gf_rows out;       /* image of the last edge in memory; data NULL: it is in a ring */
    uint64_t bytes;    /* of the strips in memory at once, set by gf_choose_geometry */
    gf_edge_cut edge[GF_MAX_EDGES];
} gf_cut;

/* Divide into strips of a height, with rings for a number of slots. The caller has set nodes,
 * source and images in memory. */
void gf_cut_set(gf_cut *cut, uint64_t height, uint32_t slots);
/* Return the bytes of the rings of all inputs: of the source, and of the second image of each node
 * that has one, with a strip per slot. *at: receives the position of the latter, for each node. */
size_t gf_cut_ring_bytes(const gf_cut *cut, size_t at[GF_MAX_NODES]);
/* Return the number of rows of an edge. */
uint64_t gf_edge_rows(const gf_nodes *nodes, uint32_t edge);
/* Return the least position at which the rows of an edge before `end` are due. */
uint64_t gf_cut_position(const gf_nodes *nodes, uint32_t edge, uint64_t end);
/* Return a range of rows of an edge without those that are due together with rows before it, and
 * with those that are due together with its last one: an enlarged image has several rows for one
 * position. */
gf_range gf_cut_together(const gf_nodes *nodes, uint32_t edge, gf_range rows);
/* Return the new rows of strip k of an edge; may be empty. */
gf_range gf_cut_rows(const gf_cut *cut, uint32_t edge, uint64_t k);
/* Return the rows of an edge that strip k has: the new ones, and those before that nodes need. */
gf_range gf_cut_needs(const gf_cut *cut, uint32_t edge, uint64_t k);
/* Store the rows of all edges that strip k needs for the rows that it delivers: new rows of written
 * edges and of nodes that measure. Rows of the source that others of these rows need, too, are
 * among those of gf_cut_needs. */
void gf_cut_alone(const gf_cut *cut, uint64_t k, gf_range rows[GF_MAX_EDGES]);

/* ---- rings (cut.c) --------------------------------------------------------------------------- */

/* The most strips in flight. */
#define GF_MAX_SLOTS (8u * GF_MAX_DEVICES)

/* Positions of the strips of an edge in its ring. The new rows of a strip follow those of the strip
 * before, or, where the ring ends, follow a copy of the rows that both share at its start. */
typedef struct gf_ring {
    uint32_t edge;
    unsigned char *memory;
    uint64_t rows; /* capacity */
    uint64_t end;  /* position after the last strip */
    struct gf_ring_use {
        uint64_t first, end;
    } use[GF_MAX_SLOTS]; /* of strip k: at k % GF_MAX_SLOTS */
} gf_ring;

/* Reserve rows for strip k, called in order of strips: `kept` ones that it shares with strip k - 1,
 * and `rows` new ones. Strips before `released` are no longer used. Return false if strips in
 * use have the memory. *at: position of the first row. */
bool gf_ring_place(gf_ring *ring, uint64_t k, uint64_t released, uint64_t kept, uint64_t rows,
                   uint64_t *at);
/* Set the rows of strip k of an edge (gf_cut_needs), and copy those that it shares with strip k - 1
 * if they are elsewhere. complete: they can be copied. Return false while there is no room. */
bool gf_ring_take(gf_ring *ring, const gf_cut *cut, uint64_t k, uint64_t released, bool complete,
                  gf_rows *rows);

/* ---- slots ----------------------------------------------------------------------------------- */

/* Output of a node for one strip. */
typedef struct gf_node_rows {
    gf_rows second;          /* the same rows of its second image; data NULL: it has none */
    gf_rows rows;            /* new rows of its edge; data NULL: no image */
    unsigned char *records;  /* of these rows */
    unsigned char *payloads; /* in image order, payload_stride bytes apart */
    size_t payload_stride;
    uint32_t payload_pieces; /* number of payloads; 0: the filter has none, or the strip no rows */
} gf_node_rows;

/* Context of one strip in flight. */
typedef struct gf_slot {
    uint32_t index;
    uint64_t strip;
    gf_rows in;        /* rows of the source that the strip needs */
    gf_node_rows *out; /* of each node; complete after gf_backend.wait, `second` before submit */
} gf_slot;

/* Strip geometry requested by a backend. */
typedef struct gf_strip_request {
    bool whole_image;      /* the whole image is one strip */
    uint64_t bytes;        /* approximate bytes per strip, of the largest edge */
    uint32_t halos;        /* minimum rows in halos; halved down to 1 while strips exceed max */
    uint64_t max;          /* maximum bytes of all strips when raised */
    uint64_t extra;        /* bytes allocated in addition to the strips */
    uint32_t slots;        /* number of slots */
    bool apart;            /* strips share rows of the source only */
    bool in_memory;        /* strips may be parts of images in memory: no alignment is needed */
    bool fits_source;      /* fit the strips to the rows that the source decodes together */
    uint32_t pieces;       /* maximum payloads per strip, before gf_payload_pieces limits them */
    uint32_t golden_parts; /* parts of a strip that golden computes concurrently; 0: none */
} gf_strip_request;

/* Return the number of payloads of a node per strip: at most `wanted`, at most one per row, and few
 * enough that their headers stay small compared with their contents. */
uint32_t gf_payload_pieces(const gf_cut *cut, uint32_t node, uint32_t wanted);
/* Return the bytes of one of `pieces` equal payloads of a strip; 0: the filter has none. */
size_t gf_payload_stride(const gf_cut *cut, uint32_t node, uint32_t pieces);

/* Interfaces for images in device memory: jobs, memory, and PNG files. `state` is that of the
 * backend (gf_backend.open). Each function that takes a stream checks it first. */

/* Images of a run. */
typedef struct gf_job_images {
    uint64_t count; /* more than 1 only if rows are independent or the filter has no measure */
    uint64_t rows;  /* of each one: the height of the plan, or a multiple for images without a gap
                     * whose rows are independent */
    const gf_pixels *in;      /* inputs of all images in order */
    const gf_out_pixels *out; /* NULL: the filter makes no image */
} gf_job_images;

/* Measurements of a run, in host memory. */
typedef struct gf_device_part {
    gf_rows records; /* one per row, without image rows; data NULL: none */
    void *state;     /* NULL: none */
    void *payload;   /* NULL: none */
} gf_device_part;

/* A job is one plan (gf_device_job in gpufilter.h), used by one thread at a time. */
typedef struct gf_job_functions {
    /* See gf_filter_cuda. NULL: never. */
    bool (*join)(void *state, const gf_plan *before, gf_plan *plan);
    /* Create a job. The plan must outlive it. */
    gf_status (*open)(void *state, const gf_plan *plan, void **job, gf_error *error);
    /* Check the pointers, and queue images. part: receives the measurements of all rows to pass to
     * the functions below, if the filter has a measure. */
    gf_status (*run)(void *job, const gf_job_images *images, gf_cuda_stream stream,
                     gf_device_part **part, gf_error *error);
    /* Return device memory of the job for its runs on a stream; the contents are lost when it
     * grows. */
    gf_status (*workspace)(void *job, gf_cuda_stream stream, size_t size, unsigned char **memory,
                           gf_error *error);
    /* Queue the copy of measurements to host memory. */
    gf_status (*fetch)(void *job, gf_device_part *part, gf_error *error);
    /* Wait until the measurements are in host memory. Called after fetch. */
    gf_status (*wait)(void *job, gf_device_part *part, gf_error *error);
    /* Return the memory of measurements to the job. Waits if they are not complete. */
    void (*release)(void *job, gf_device_part *part);
    void (*close)(void *job); /* waits for all work */
    /* Wait for a stream. */
    gf_status (*wait_stream)(void *state, gf_cuda_stream stream, gf_error *error);
} gf_job_functions;

/* After `workspace`, several threads may call the functions below it at once. */
typedef struct gf_memory_functions {
    /* Return the bytes of device memory that are free. */
    uint64_t (*free_bytes)(void *state);
    /* Return device memory of at least `size` bytes and a stream, which the engine keeps for one
     * caller. The contents of the memory are lost when it grows. */
    gf_status (*workspace)(void *state, size_t size, void **memory, void **stream, gf_error *error);
    /* Take host memory that devices copy quickly, and give it back. */
    gf_status (*take_host)(void *state, gf_buffer *host, gf_error *error);
    void (*return_host)(void *state, const gf_buffer *host);
    /* Upload bytes through that host memory, and wait. from: host->data or other memory. */
    gf_status (*upload)(void *state, void *to, const void *from, size_t bytes,
                        const gf_buffer *host, gf_error *error);
    /* Download an encoded image to that host memory, in pieces, and write them to a sink. */
    gf_status (*download)(void *state, const void *from, size_t bytes, const gf_buffer *host,
                          gf_sink *sink, gf_error *error);
} gf_memory_functions;

/* Images to encode (gf_encode_png_device). */
typedef struct gf_device_encoding {
    const gf_format *format; /* of all images */
    uint64_t count;
    const gf_pixels *in;
    gf_buffer *out;
    uint64_t *largest; /* receives counts of maximum samples, alpha excluded; NULL: not counted */
    uint32_t threads;  /* of the CPU, for parts with LZ77 matches */
    gf_cuda_stream stream;
} gf_device_encoding;

/* The IDAT data of a PNG file in device memory. */
typedef struct gf_device_file {
    gf_png_scan scan;
    const void *data; /* aligned to 4 bytes; at least gf_png_scan_bytes */
    /* Offsets of the parts in data, then their sizes: those of gf_png_scan_copy. */
    const size_t *places;
} gf_device_file;

/* Files to decode, in host memory (gf_decode_png_device) or in device memory. */
typedef struct gf_device_decoding {
    uint64_t count;
    const gf_out_pixels *out;
    gf_cuda_stream stream;
    /* Files in host memory. Those that the device does not decode are left to the CPU. */
    const gf_buffer *files;
    const gf_format *formats; /* of the files */
    gf_error *errors;         /* one per file, with status GF_OK */
    uint32_t threads;         /* of the CPU */
    bool always;              /* use the device even if the CPU is expected to be faster */
    /* Files in device memory; NULL: in host memory. The call waits for them. */
    const gf_device_file *uploaded;
    bool *decoded; /* receives which ones have no error; the CPU reports those of the others */
} gf_device_decoding;

/* Both functions check the pointers of host calls first. */
typedef struct gf_png_functions {
    gf_status (*encode)(void *state, const gf_device_encoding *call, gf_error *error);
    gf_status (*decode)(void *state, const gf_device_decoding *call, gf_error *error);
} gf_png_functions;

/* Functions of a backend. `state` belongs to an engine, `run` to one image. */
typedef struct gf_backend {
    const char *name; /* "cpu" */
    /* Start threads or devices. Return GF_NO_BACKEND with the reason if that fails. */
    gf_status (*open)(const gf_engine_options *options, void **state, gf_error *error);
    void (*close)(void *state);
    /* Describe the backend: "2 threads, avx2". */
    void (*describe)(const void *state, char *text, size_t size);
    /* Return the strip geometry that suits the backend for images of this chain. */
    gf_strip_request (*request)(const void *state, const gf_nodes *nodes);
    /* Prepare one image and allocate the buffers of all slots. *ring: memory for the rings of all
     * inputs (gf_cut_ring_bytes). */
    gf_status (*begin)(void *state, const gf_cut *cut, gf_slot *slots, unsigned char **ring,
                       void **run, gf_error *error);
    /* Start to compute a filled slot, in image order; may return before the output is complete. The
     * slot's strip before it has been released by the consumer. */
    gf_status (*submit)(void *run, gf_slot *slot, gf_error *error);
    /* Wait until the slot's output is complete. submit may run concurrently in another thread. */
    gf_status (*wait)(void *run, gf_slot *slot, gf_error *error);
    /* Add the busy times of uploading, computing and downloading, and the seconds that each node
     * has computed. Called after the last wait. */
    void (*busy)(void *run, gf_busy busy[GF_STAGE_COUNT], double *nodes);
    /* Merge all states of a node into *state, which is empty. Called after the last wait. */
    gf_status (*collect)(void *run, uint32_t node, void *state, gf_error *error);
    /* Wait for submitted work. Free the run and the buffers, or keep these for the next image. */
    void (*end)(void *run);
    /* For images in device memory. NULL: images must be in host memory. */
    const gf_job_functions *jobs;
    const gf_memory_functions *memory;
    const gf_png_functions *png;
    /* List devices, as gf_devices. NULL: the backend has none. */
    gf_status (*devices)(gf_device *devices, size_t capacity, size_t *count, gf_error *error);
} gf_backend;

/* A started backend. */
typedef struct gf_started {
    const gf_backend *backend;
    void *state; /* of the backend */
} gf_started;

extern const gf_backend gf_backend_golden, gf_backend_cpu, gf_backend_cuda;
/* Golden on the strips of another backend, for --verify: it has no name and no request. */
extern const gf_backend gf_backend_verify;

typedef enum gf_backend_index { GF_GOLDEN, GF_CPU, GF_CUDA, GF_BACKEND_COUNT } gf_backend_index;

/* Return a backend; NULL if it is not built in. Defined by the registry. */
const gf_backend *gf_backend_at(int index);

/* Compute a part of a strip with the filter's CPU function, or with golden if there is none. */
gf_status gf_compute_part(const gf_plan *plan, const gf_strip *strip, uint32_t part, uint32_t parts,
                          void *scratch, gf_isa isa, gf_error *error);

/* Allocate n aligned blocks of `bytes` bytes; 0 bytes are valid. Return NULL if out of memory. */
void *gf_aligned_alloc(size_t n, size_t bytes);

#endif
