/* Entry point: the first argument is the name of the load, the others are its options. */
#include <stdio.h>
#include <string.h>

#include "load.h"

typedef struct {
    const char *name;
    int (*run)(const Options *options);
    const char *help;
} Load;

static const Load LOADS[] = {
    {"produce", run_produce, "--bootstrap A --topic T --message-bytes N --batch-bytes N --messages N --seconds N"},
    {"consume", run_consume, "--bootstrap A --topic T --message-bytes N --messages N --seconds N"},
    {"latency", run_latency, "--bootstrap A --topic T --message-bytes N --rate N --seconds N"},
    {"requests", run_requests,
     "--host H --port P --topic T --partitions N --connections N --in-flight N --message-bytes N --requests N --seconds N"},
};

static const size_t LOAD_COUNT = sizeof(LOADS) / sizeof(LOADS[0]);

static int usage(void) {
    fprintf(stderr, "usage:\n");
    for (size_t i = 0; i < LOAD_COUNT; i++) fprintf(stderr, "  load %s %s\n", LOADS[i].name, LOADS[i].help);
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 2) return usage();
    Options options = {argc - 2, argv + 2};
    for (size_t i = 0; i < LOAD_COUNT; i++) {
        if (strcmp(argv[1], LOADS[i].name) == 0) return LOADS[i].run(&options);
    }
    return usage();
}
