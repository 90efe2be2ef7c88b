/* Produce as fast as the broker accepts: one partition, uncompressed, messages that share one payload buffer (no copy in
 * the client). The log end offset before and after is compared, so that every counted message is in the log.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka.h"

enum { CHUNK = 1000, DRAIN_SECONDS_MAX = 60 };

static Client open_with_batches_of(const Options *options, int64_t batch_bytes) {
    char batch[32];
    snprintf(batch, sizeof(batch), "%lld", (long long)batch_bytes);
    const Setting settings[] = {
        {"batch.size", batch},
        {"batch.num.messages", "1000000"},
        {"linger.ms", "10"},
        {"queue.buffering.max.messages", "1000000"},
        {"queue.buffering.max.kbytes", "262144"},
        {NULL, NULL},
    };
    return producer_open(options, settings);
}

static rd_kafka_message_t *chunk_of(void *payload, size_t length) {
    rd_kafka_message_t *messages = calloc(CHUNK, sizeof(rd_kafka_message_t));
    for (int i = 0; messages != NULL && i < CHUNK; i++) {
        messages[i].payload = payload;
        messages[i].len = length;
    }
    return messages;
}

static void *payload_of(size_t length) {
    char *payload = malloc(length);
    for (size_t i = 0; payload != NULL && i < length; i++) payload[i] = (char)('a' + i % 26);
    return payload;
}

/* All messages are identical, so messages that did not fit into the full queue need not be stored: only the count matters. */
static int64_t produce_until(Client *client, rd_kafka_message_t *chunk, int64_t messages_max, int64_t deadline_ns) {
    int64_t produced = 0;
    while (produced < messages_max && now_ns() < deadline_ns) {
        int64_t left = messages_max - produced;
        int wanted = left < CHUNK ? (int)left : CHUNK;
        int taken = rd_kafka_produce_batch(client->topic, 0, 0, chunk, wanted);
        produced += taken;
        rd_kafka_poll(client->handle, taken < wanted ? 1 : 0);
    }
    return produced;
}

int run_produce(const Options *options) {
    int64_t message_bytes = option_number(options, "--message-bytes", 1000);
    int64_t messages_max = option_number(options, "--messages", 1000000);
    int64_t seconds_max = option_number(options, "--seconds", 10);
    Client client = open_with_batches_of(options, option_number(options, "--batch-bytes", 1000000));
    void *payload = payload_of((size_t)message_bytes);
    rd_kafka_message_t *chunk = chunk_of(payload, (size_t)message_bytes);
    if (payload == NULL || chunk == NULL) fail("no memory");
    int64_t first_offset = end_offset(&client);

    Usage usage = usage_begin();
    int64_t began_ns = now_ns();
    int64_t produced = produce_until(&client, chunk, messages_max, began_ns + seconds_max * 1000000000);
    drain(&client, DRAIN_SECONDS_MAX);
    double seconds = (double)(now_ns() - began_ns) / 1e9;
    usage_end(&usage);

    int64_t stored = end_offset(&client) - first_offset;
    if (stored != produced) fail("%lld messages acknowledged, %lld in the log", (long long)produced, (long long)stored);
    Outcome outcome = {produced, produced, message_bytes, seconds, usage, NULL};
    print_outcome(&outcome);
    client_close(&client);
    free(chunk);
    free(payload);
    return 0;
}
