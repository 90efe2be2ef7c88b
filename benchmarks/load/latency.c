/* Produce-to-consume latency at a fixed rate: each message contains the time of its produce call, and the consumer (same process,
 * same clock) subtracts it on arrival. The first tenth of the messages is the warm-up and does not count.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kafka.h"

enum { QUIET_MS_MAX = 5000, DRAIN_SECONDS_MAX = 30, START_MS = 200 };

typedef struct {
    Client producer;
    int64_t messages;
    int64_t interval_ns;
    int64_t message_bytes;
} Sender;

static void sleep_until(int64_t deadline_ns) {
    struct timespec deadline = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) != 0) {
    }
}

static void *send_all(void *argument) {
    Sender *sender = argument;
    char *payload = calloc(1, (size_t)sender->message_bytes);
    if (payload == NULL) fail("no memory");
    int64_t next_ns = now_ns() + START_MS * 1000000;
    for (int64_t i = 0; i < sender->messages; i++, next_ns += sender->interval_ns) {
        sleep_until(next_ns);
        int64_t sent_ns = now_ns();
        memcpy(payload, &sent_ns, sizeof(sent_ns));
        if (rd_kafka_produce(sender->producer.topic, 0, RD_KAFKA_MSG_F_COPY, payload, (size_t)sender->message_bytes, NULL, 0,
                             NULL) != 0) {
            fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
        }
        rd_kafka_poll(sender->producer.handle, 0);
    }
    drain(&sender->producer, DRAIN_SECONDS_MAX);
    free(payload);
    return NULL;
}

static int64_t latency_of(const rd_kafka_message_t *message) {
    int64_t sent_ns;
    if (message->err) fail("consume: %s", rd_kafka_message_errstr(message));
    memcpy(&sent_ns, message->payload, sizeof(sent_ns));
    return now_ns() - sent_ns;
}

static void receive_all(rd_kafka_queue_t *queue, int64_t messages, Samples *samples) {
    for (int64_t i = 0; i < messages; i++) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(queue, QUIET_MS_MAX);
        if (message == NULL) fail("message %lld did not come within %d ms", (long long)i, QUIET_MS_MAX);
        int64_t nanoseconds = latency_of(message);
        rd_kafka_message_destroy(message);
        if (i >= messages / 10) samples_add(samples, nanoseconds);
    }
}

int run_latency(const Options *options) {
    static const Setting SETTINGS[] = {{"linger.ms", "0"}, {NULL, NULL}};
    int64_t rate = option_number(options, "--rate", 1000);
    int64_t messages = rate * option_number(options, "--seconds", 3);
    Sender sender = {producer_open(options, SETTINGS), messages, 1000000000 / rate,
                     option_number(options, "--message-bytes", 100)};
    if (sender.message_bytes < (int64_t)sizeof(int64_t)) fail("--message-bytes must leave room for a time");
    Client consumer = consumer_open(options);
    Samples samples = samples_new((size_t)messages);
    rd_kafka_queue_t *queue = consume_from(&consumer, end_offset(&consumer));

    Usage usage = usage_begin();
    pthread_t thread;
    if (pthread_create(&thread, NULL, send_all, &sender) != 0) fail("no thread");
    receive_all(queue, messages, &samples);
    pthread_join(thread, NULL);
    double seconds = (double)(now_ns() - usage.began_ns) / 1e9;
    usage_end(&usage);

    Outcome outcome = {messages, messages, sender.message_bytes, seconds, usage, &samples};
    print_outcome(&outcome);
    rd_kafka_consume_stop(consumer.topic, 0);
    rd_kafka_queue_destroy(queue);
    client_close(&consumer);
    client_close(&sender.producer);
    return 0;
}
