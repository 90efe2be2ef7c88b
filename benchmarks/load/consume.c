/* Consume a filled partition from its start. The rate is measured from the first to the last batch received, so that it does not
 * include connecting. Offsets must be consecutive and lengths correct, so that a broker cannot gain by omitting records.
 */
#include "kafka.h"

enum { CHUNK = 10000, QUIET_MS_MAX = 5000 };

typedef struct {
    int64_t received;
    int64_t first_chunk;
    int64_t first_ns;
    int64_t last_ns;
} Progress;

static void check(const rd_kafka_message_t *message, int64_t offset, int64_t length) {
    if (message->err) fail("consume: %s", rd_kafka_message_errstr(message));
    if (message->offset != offset) fail("offset %lld came, %lld was next", (long long)message->offset, (long long)offset);
    if ((int64_t)message->len != length) fail("a message of %zu bytes came", message->len);
}

static void take(Progress *progress, rd_kafka_message_t **messages, ssize_t count, int64_t length) {
    for (ssize_t i = 0; i < count; i++) {
        check(messages[i], progress->received + i, length);
        rd_kafka_message_destroy(messages[i]);
    }
    progress->received += count;
    progress->last_ns = now_ns();
    if (progress->first_ns == 0) {
        progress->first_ns = progress->last_ns;
        progress->first_chunk = count;
    }
}

static Progress consume_until(rd_kafka_queue_t *queue, int64_t messages_max, int64_t deadline_ns, int64_t length) {
    static rd_kafka_message_t *messages[CHUNK];
    Progress progress = {0};
    while (progress.received < messages_max && now_ns() < deadline_ns) {
        int64_t left = messages_max - progress.received;
        size_t wanted = left < CHUNK ? (size_t)left : CHUNK;
        ssize_t count = rd_kafka_consume_batch_queue(queue, QUIET_MS_MAX, messages, wanted);
        if (count <= 0) fail("nothing came for %d ms after %lld messages", QUIET_MS_MAX, (long long)progress.received);
        take(&progress, messages, count, length);
    }
    return progress;
}

int run_consume(const Options *options) {
    int64_t message_bytes = option_number(options, "--message-bytes", 1000);
    int64_t messages_max = option_number(options, "--messages", 1000000);
    int64_t seconds_max = option_number(options, "--seconds", 10);
    Client client = consumer_open(options);

    Usage usage = usage_begin();
    rd_kafka_queue_t *queue = consume_from(&client, 0);
    Progress progress = consume_until(queue, messages_max, now_ns() + seconds_max * 1000000000, message_bytes);
    usage_end(&usage);

    double seconds = (double)(progress.last_ns - progress.first_ns) / 1e9;
    Outcome outcome = {progress.received, progress.received - progress.first_chunk, message_bytes, seconds, usage, NULL};
    print_outcome(&outcome);
    rd_kafka_consume_stop(client.topic, 0);
    rd_kafka_queue_destroy(queue);
    client_close(&client);
    return 0;
}
