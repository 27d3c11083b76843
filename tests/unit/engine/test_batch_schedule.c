/* The scheduler of batches in small cases: every order of events, every result of a step, and an
 * end at any time. All items are reported, every wait ends, and limits are kept. */
#include "engine/batch/schedule.h"
#include "testing.h"

#include <string.h>

enum { COUNT = 3, CODERS = 2, DRIVERS = 3, POOL = COUNT + CODERS + DRIVERS };

/* A batch. Zero members: coders only, the number of drivers, no limit. */
typedef struct world_case {
    const char *name;
    uint64_t count;
    uint32_t coders, coder_kinds, devices, drivers;
    bool png, with_cpu, quick;   /* quick: explored without each rule */
    int formats, faults, laters; /* failures, default 2; times that a shared list has no item now */
    uint64_t window, images, streams;
    double few;
} world_case;

/* The whole state. It is saved and restored at one address. */
typedef struct world_state {
    gf_schedule schedule;
    gf_schedule_worker workers[CODERS + DRIVERS];
    gf_schedule_driver drivers[DRIVERS];
    gf_schedule_item pool[POOL];
    bool used[POOL], reported[COUNT], ended_early;
    uint64_t asked;
    int faults, laters;
} world_state;

static world_state world;
static const world_case *now;
static const char *failure; /* the invariant that does not hold; NULL: none */

/* ---- visited states -------------------------------------------------------------------------- */

enum { ON_PATH = 1, EXPLORED = 2 };
static struct {
    uint64_t hash;
    int mark;
} * seen;
static const uint64_t seen_size = UINT64_C(1) << 19;
static uint64_t seen_count;

static uint64_t world_hash(void) {
    const unsigned char *bytes = (const unsigned char *)&world;
    uint64_t hash = 88172645463325252u;
    for (size_t i = 0; i + 8 <= sizeof world; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

static int *seen_find(uint64_t hash) {
    uint64_t i = hash % seen_size;
    while (seen[i].hash && seen[i].hash != hash)
        i = (i + 1) % seen_size;
    if (!seen[i].hash)
        seen_count++;
    assert_true(seen_count < seen_size / 4 * 3);
    seen[i].hash = hash;
    return &seen[i].mark;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void fail_with(const char *what) {
    failure = failure ? failure : what;
}

static void prepare(uint32_t worker) {
    for (int i = 0; i < POOL && !world.workers[worker].spare; i++)
        if (!world.used[i]) {
            world.used[i] = true;
            world.workers[worker].spare = &world.pool[i];
        }
    assert_non_null(world.workers[worker].spare);
}

static void release(gf_schedule_item *item) {
    memset(item, 0, sizeof *item);
    world.used[item - world.pool] = false;
}

typedef struct outcome {
    gf_event result;
    bool failed;
    uint32_t parts;
    bool is_fault, is_later;
} outcome;

static const outcome done = {.result = GF_IS_DONE, .parts = 1};
static const outcome refused = {.result = GF_IS_REFUSED, .parts = 1};
static const outcome broken = {.result = GF_IS_REFUSED, .parts = 1, .is_fault = true};
static const outcome lost = {.result = GF_IS_LOST, .parts = 1, .is_fault = true};

/* List what may happen in a step. */
static int outcomes_of(uint32_t worker, outcome list[4]) {
    const gf_event step = world.workers[worker].step;
    int n = 0;
    list[n++] = done;
    switch (step) {
    case GF_DO_ASK:
        list[0].result = world.asked < now->count ? GF_IS_DONE : GF_IS_LOST;
        list[n] = refused;
        list[n++].is_later = true;
        break;
    case GF_DO_OPEN:
        list[0].parts = 2;
        list[n++] = refused;
        break;
    case GF_DO_UPLOAD:
    case GF_DO_ALLOCATE:
        list[n++] = broken;
        break;
    case GF_DO_OPEN_ENGINE:
        list[0] = now->png ? done : refused;
        list[n++] = broken;
        list[n++] = lost;
        break;
    case GF_DO_DECODE:
    case GF_DO_ENCODE:
        list[n] = done;
        list[n++].failed = step == GF_DO_ENCODE; /* a file was not decoded */
        list[n++] = broken;
        list[n++] = lost;
        break;
    case GF_DO_WRITE:
    case GF_DO_RUN:
        list[n] = done;
        list[n].failed = true;
        list[n++].is_fault = true;
        if (worker >= now->coders)
            list[n++] = lost;
        break;
    case GF_DO_REPORT:
        list[n++] = broken; /* start no more items */
        break;
    default:
        break;
    }
    return n;
}

/* Check and note a report. */
static void note_report(const gf_schedule_item *item) {
    if (world.reported[item->number])
        fail_with("an item is reported twice");
    world.reported[item->number] = true;
    for (uint64_t i = 0; i < item->number && now->window && !world.schedule.aborted; i++)
        if (!world.reported[i])
            fail_with("an item is reported before an earlier one");
}

/* End the step of a worker. */
static void perform(uint32_t worker, const outcome *what) {
    gf_schedule *schedule = &world.schedule;
    const gf_event step = world.workers[worker].step;
    gf_schedule_item *item = world.workers[worker].item;
    world.faults -= what->is_fault;
    world.laters -= what->is_later;
    if (step == GF_DO_ASK && what->result == GF_IS_DONE)
        item->number = world.asked++;
    if (step == GF_DO_OPEN) {
        item->format = (gf_format){.width = now->formats ? 1 + item->number % 2 * 4 : 1};
        item->bytes = item->format.width;
    }
    if (step == GF_DO_UPLOAD || (step == GF_DO_OPEN && item->several_parts))
        item->parts = what->parts;
    if (step == GF_DO_WRITE || step == GF_DO_RUN)
        item->failed = what->failed;
    if (step == GF_DO_ENCODE) {
        const gf_schedule_driver *driver = &world.drivers[worker - now->coders];
        for (gf_schedule_item *one = driver->group; one; one = one->next)
            one->computed = !what->failed || one != driver->group;
    }
    if (step == GF_DO_REPORT)
        note_report(item);
    prepare(worker);
    gf_schedule_done(schedule, worker, what->result);
    if (item && (item->state == GF_ITEM_NEXT || item->state == GF_ITEM_REPORTED))
        release(item);
}

/* ---- invariants ------------------------------------------------------------------------------ */

static bool is_busy(uint32_t worker) {
    return world.workers[worker].step > GF_DO_END;
}

/* Return whether a worker has a step. */
static bool any_busy(void) {
    bool busy = false;
    for (uint32_t i = 0; i < now->coders + now->drivers; i++)
        busy = busy || is_busy(i);
    return busy;
}

static void check_limits(void) {
    const gf_schedule *schedule = &world.schedule;
    uint64_t held = 0, memory = 0;
    if (schedule->broken)
        fail_with("a transition is not in the tables");
    for (uint32_t i = 0; i < now->drivers; i++) {
        if (world.drivers[i].used > world.drivers[i].size)
            fail_with("an engine has too little memory");
        held += world.drivers[i].held + world.drivers[i].uploading;
    }
    for (int i = 0; i < POOL; i++)
        memory += world.used[i] && world.pool[i].state >= GF_ITEM_UPLOADING &&
                  world.pool[i].state <= GF_ITEM_SINGLE;
    if (now->images && memory > now->images + now->coders + now->drivers)
        fail_with("too many images are in memory");
    if (held > memory)
        fail_with("the memory of an engine is not released");
    if (schedule->counts[GF_ITEM_REPORTING] > 1 || schedule->counts[GF_ITEM_ASKING] > 1)
        fail_with("calls are not serialized");
    if (now->window && schedule->begun > schedule->reported + now->window)
        fail_with("the window of unreported items is too large");
    if (schedule->aborted && !world.ended_early && world.schedule.coder_kinds & GF_BY_CPU)
        fail_with("a batch ends although CPU workers could run it");
}

/* Check that nothing remains to be assigned: a further call must change nothing. */
static void check_assigned(void) {
    static world_state before;
    memcpy(&before, &world, sizeof world);
    gf_schedule_dispatch(&world.schedule);
    if (memcmp(&before, &world, sizeof world) != 0)
        fail_with("a worker with work is idle");
    memcpy(&world, &before, sizeof world);
}

/* No worker has a step: check the end of the batch. */
static void check_end(void) {
    gf_schedule *schedule = &world.schedule;
    uint64_t reported = 0, left = 0;
    for (uint32_t i = 0; i < now->coders + now->drivers; i++)
        if (world.workers[i].step != GF_DO_END)
            fail_with("a worker waits forever");
    for (uint64_t i = 0; i < now->count; i++)
        reported += world.reported[i];
    for (gf_schedule_item *item; (item = gf_schedule_remove(schedule)); left++)
        if (item->state == GF_ITEM_FINISHED)
            fail_with("a finished item is not reported");
    if (reported != schedule->reported || reported + left != schedule->begun)
        fail_with("an item is lost");
    if (!schedule->aborted && (left || (!schedule->stop && reported != now->count)))
        fail_with("an item is not reported");
}

/* ---- exploration ----------------------------------------------------------------------------- */

static uint64_t states, ends;
static bool prints = true; /* print the events that lead to a failure */

static void explore(void);

/* Explore what follows an event, and return to the state before it. After a failure, print the
 * events that led to it, the last one first. */
static void follow(uint32_t worker, const outcome *what, const world_state *before) {
    const gf_event step = world.workers[worker].step;
    if (failure || (what && (world.faults < what->is_fault || world.laters < what->is_later)))
        return;
    if (what) {
        perform(worker, what);
    } else {
        world.schedule.aborted = world.ended_early = true;
        world.faults--;
        gf_schedule_dispatch(&world.schedule);
    }
    explore();
    memcpy(&world, before, sizeof world);
    if (failure && prints && what)
        print_message("worker %u ended step %d with %d\n", worker, step, what->result);
}

static void explore(void) {
    const uint64_t hash = world_hash();
    int *mark = seen_find(hash);
    if (*mark == ON_PATH)
        fail_with("the batch does not end");
    if (*mark || failure)
        return;
    *mark = ON_PATH;
    states++;
    check_limits();
    check_assigned();
    AUTO(free) world_state *before = test_alloc(sizeof world);
    memcpy(before, &world, sizeof world);
    if (!any_busy()) {
        ends++;
        check_end();
        memcpy(&world, before, sizeof world);
    } else if (!world.ended_early && world.faults > 0) {
        follow(0, NULL, before);
    }
    for (uint32_t i = 0; i < now->coders + now->drivers; i++) {
        outcome list[4];
        for (int k = 0, n = is_busy(i) ? outcomes_of(i, list) : 0; k < n; k++)
            follow(i, &list[k], before);
    }
    *seen_find(hash) = EXPLORED;
}

/* Explore a case. Return the invariant that does not hold, or NULL. */
static const char *explore_case(const world_case *one, const gf_schedule_rule *items,
                                const gf_schedule_rule *drivers) {
    now = one;
    failure = NULL;
    memset(&world, 0, sizeof world);
    memset(seen, 0, seen_size * sizeof *seen);
    seen_count = states = ends = 0;
    world.faults = one->faults ? one->faults : 2;
    world.laters = one->laters;
    gf_schedule *schedule = &world.schedule;
    schedule->count = schedule->expected = one->count;
    schedule->shared = one->laters;
    schedule->window = one->window;
    schedule->fail_fast = one->window;
    schedule->coders = one->coders;
    schedule->coder_kinds = one->coder_kinds ? one->coder_kinds : GF_BY_CODER;
    schedule->with_cpu = one->with_cpu;
    schedule->devices = one->devices;
    schedule->driver_count = one->drivers;
    schedule->engines = one->drivers;
    schedule->may_read_png = one->png;
    schedule->at_once = one->coders;
    schedule->few = one->few;
    schedule->max_images = one->images;
    schedule->max_streams = one->streams;
    schedule->item_rules = items;
    schedule->driver_rules = drivers;
    schedule->workers = world.workers;
    schedule->drivers = world.drivers;
    for (uint32_t i = 0; i < one->coders + one->drivers; i++)
        prepare(i);
    gf_schedule_start(schedule);
    explore();
    return failure;
}

#define BOTH (GF_BY_CPU | GF_BY_CODER)
static const world_case cases[] = {
    {.name = "cpu", .count = 3, .coders = 2, .coder_kinds = GF_BY_CPU},
    {.name = "cpu in order", .count = 3, .coders = 2, .coder_kinds = GF_BY_CPU, .window = 2},
    {.name = "cpu shared",
     .quick = true,
     .count = 3,
     .coders = 2,
     .coder_kinds = GF_BY_CPU,
     .laters = 2},
    {.name = "single", .quick = true, .count = 3, .coders = 2, .devices = 1, .drivers = 2},
    {.name = "single, two devices", .count = 3, .coders = 1, .devices = 2, .drivers = 2},
    {.name = "single, shared", .count = 3, .coders = 1, .devices = 1, .drivers = 2, .laters = 1},
    {.name = "png", .count = 3, .coders = 2, .devices = 1, .drivers = 1, .png = true},
    {.name = "png, two drivers", .count = 2, .coders = 2, .devices = 1, .drivers = 2, .png = true},
    {.name = "png, in order",
     .quick = true,
     .count = 3,
     .coders = 1,
     .devices = 1,
     .drivers = 2,
     .png = true,
     .formats = 2,
     .window = 2,
     .faults = 1,
     .images = 1},
    {.name = "png, formats",
     .quick = true,
     .count = 3,
     .coders = 2,
     .devices = 1,
     .drivers = 1,
     .png = true,
     .formats = 2,
     .faults = 1},
    {.name = "png, full groups",
     .count = 3,
     .coders = 1,
     .devices = 1,
     .drivers = 2,
     .png = true,
     .faults = 1,
     .streams = 1},
    {.name = "png, few",
     .quick = true,
     .count = 2,
     .coders = 2,
     .devices = 1,
     .drivers = 2,
     .png = true,
     .few = 9},
    {.name = "png, shared",
     .count = 2,
     .coders = 1,
     .devices = 1,
     .drivers = 2,
     .png = true,
     .laters = 1,
     .faults = 1},
    {.name = "png, two devices", .count = 2, .coders = 1, .devices = 2, .drivers = 3, .png = true},
    {.name = "auto",
     .count = 2,
     .coders = 2,
     .coder_kinds = BOTH,
     .devices = 1,
     .drivers = 2,
     .png = true},
    {.name = "both",
     .quick = true,
     .count = 3,
     .coders = 2,
     .coder_kinds = BOTH,
     .devices = 1,
     .drivers = 2,
     .png = true,
     .with_cpu = true,
     .faults = 1},
    {.name = "both, few",
     .count = 3,
     .coders = 2,
     .coder_kinds = BOTH,
     .devices = 1,
     .drivers = 1,
     .png = true,
     .with_cpu = true,
     .few = 2},
};

static void all_orders_of_events(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *reason = explore_case(&cases[i], NULL, NULL);
        print_message("%s: %" PRIu64 " states, %" PRIu64 " ends\n", cases[i].name, states, ends);
        if (reason)
            fail_msg("%s: %s", cases[i].name, reason);
    }
}

/* Without any one of the rules, some batch does not end well. */
static void every_rule_is_needed(void **state) {
    static const struct {
        const gf_schedule_rule *rules;
        bool of_items;
    } tables[] = {{gf_item_rules, true}, {gf_driver_rules, false}};
    (void)state;
    prints = false;
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (size_t rule = 0; tables[t].rules[rule].by; rule++) {
            gf_schedule_rule without[64];
            size_t count = 0;
            const char *reason = NULL;
            for (size_t i = 0; i == 0 || tables[t].rules[i - 1].by; i++)
                if (i != rule)
                    without[count++] = tables[t].rules[i];
            for (size_t i = sizeof cases / sizeof cases[0]; i > 0 && !reason; i--)
                if (cases[i - 1].quick)
                    reason = explore_case(&cases[i - 1], tables[t].of_items ? without : NULL,
                                          tables[t].of_items ? NULL : without);
            if (!reason)
                fail_msg("rule %zu of table %zu is not needed", rule, t);
        }
    prints = true;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_orders_of_events),
                                       cmocka_unit_test(every_rule_is_needed)};
    seen = test_alloc(seen_size * sizeof *seen);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(seen);
    return failed;
}
