/* Common to all loads: options, clock, the CPU time of the process, latency samples, and the JSON line that a run prints.
 *
 * Rules: a load is limited in number and time, checks the responses of the broker, and fails (exit 1, reason on stderr)
 * instead of reporting a rate of failed requests. All latency samples are kept and sorted, so percentiles are exact.
 */
#ifndef SSKAFKA_LOAD_H
#define SSKAFKA_LOAD_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int count;
    char **words;
} Options;

const char *option_text(const Options *options, const char *name, const char *fallback);
int64_t option_number(const Options *options, const char *name, int64_t fallback);
const char *option_required(const Options *options, const char *name);

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

int64_t now_ns(void);

/* CPU time of this process since `usage_begin`, and of its busiest thread, to tell a saturated client from a saturated broker. */
typedef struct {
    int64_t began_ns;
    double cpu_seconds;
    double busiest_thread_seconds;
} Usage;

Usage usage_begin(void);
void usage_end(Usage *usage);

typedef struct {
    int64_t *nanoseconds;
    size_t count;
    size_t capacity;
} Samples;

Samples samples_new(size_t capacity);
void samples_add(Samples *samples, int64_t nanoseconds);

typedef struct {
    int64_t messages;         /* acknowledged, or received, in all: what broker CPU is divided by */
    int64_t timed_messages;   /* those that `seconds` covers: what the rate is made of */
    int64_t message_bytes;
    double seconds;
    Usage usage;
    Samples *latencies;       /* NULL where the load has none */
} Outcome;

void print_outcome(const Outcome *outcome);

int run_produce(const Options *options);
int run_consume(const Options *options);
int run_latency(const Options *options);
int run_requests(const Options *options);

#endif
