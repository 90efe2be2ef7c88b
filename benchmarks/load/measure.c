/* Time, CPU time and latency samples of the load, and the JSON line with the result. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double process_cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* utime and stime are the 14th and 15th fields of the stat line; counting starts after the ')', because names may contain spaces. */
static double thread_cpu_seconds(const char *thread_id) {
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", thread_id);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *after_name = strrchr(line, ')');
    unsigned long user = 0, system = 0;
    if (after_name == NULL ||
        sscanf(after_name + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2) {
        return 0;
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double busiest_thread_seconds(void) {
    double busiest = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        if (entry->d_name[0] == '.') continue;
        double seconds = thread_cpu_seconds(entry->d_name);
        if (seconds > busiest) busiest = seconds;
    }
    closedir(tasks);
    return busiest;
}

Usage usage_begin(void) {
    return (Usage){now_ns(), process_cpu_seconds(), 0};
}

void usage_end(Usage *usage) {
    usage->cpu_seconds = process_cpu_seconds() - usage->cpu_seconds;
    usage->busiest_thread_seconds = busiest_thread_seconds();
}

Samples samples_new(size_t capacity) {
    int64_t *nanoseconds = malloc(capacity * sizeof(int64_t));
    if (nanoseconds == NULL) fail("no memory for %zu samples", capacity);
    return (Samples){nanoseconds, 0, capacity};
}

void samples_add(Samples *samples, int64_t nanoseconds) {
    if (samples->count < samples->capacity) samples->nanoseconds[samples->count++] = nanoseconds;
}

static int by_value(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double percentile_us(const Samples *samples, int percent) {
    size_t rank = (samples->count * (size_t)percent + 99) / 100;
    return (double)samples->nanoseconds[rank == 0 ? 0 : rank - 1] / 1000.0;
}

static void print_latencies(Samples *samples) {
    if (samples == NULL || samples->count == 0) return;
    qsort(samples->nanoseconds, samples->count, sizeof(int64_t), by_value);
    printf(", \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f", percentile_us(samples, 50),
           percentile_us(samples, 99), percentile_us(samples, 100));
}

void print_outcome(const Outcome *outcome) {
    double wall_seconds = (double)(now_ns() - outcome->usage.began_ns) / 1e9;
    printf("{\"messages\": %lld, \"timed_messages\": %lld, \"message_bytes\": %lld, \"seconds\": %.6f",
           (long long)outcome->messages, (long long)outcome->timed_messages, (long long)outcome->message_bytes,
           outcome->seconds);
    printf(", \"wall_seconds\": %.6f, \"client_cpu_seconds\": %.3f, \"client_busiest_thread_seconds\": %.3f", wall_seconds,
           outcome->usage.cpu_seconds, outcome->usage.busiest_thread_seconds);
    print_latencies(outcome->latencies);
    printf("}\n");
}
