/* Open librdkafka producers and consumers.
 *
 * Delivery reports are enabled only for failures: a report per message would cost the client more than the message. The simple
 * consumer (no group) is used, so that no coordinator is involved. `queued.min.messages` and `fetch.queue.backoff.ms` keep
 * librdkafka from pausing its fetches, by up to a second, if the broker fills its queue faster than it is drained.
 */
#include <string.h>

#include "kafka.h"

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque) {
    (void)handle;
    (void)opaque;
    if (message->err) fail("delivery failed: %s", rd_kafka_err2str(message->err));
}

static void on_error(rd_kafka_t *handle, int error, const char *reason, void *opaque) {
    (void)opaque;
    fail("%s: %s (%s)", rd_kafka_name(handle), rd_kafka_err2str(error), reason);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char reason[256];
    if (rd_kafka_conf_set(conf, name, value, reason, sizeof(reason)) != RD_KAFKA_CONF_OK) fail("%s", reason);
}

static void set_all(rd_kafka_conf_t *conf, const Setting *settings) {
    for (const Setting *setting = settings; setting->name != NULL; setting++) set(conf, setting->name, setting->value);
}

static Client client_open(const Options *options, rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char reason[256];
    set(conf, "bootstrap.servers", option_required(options, "--bootstrap"));
    set(conf, "socket.nagle.disable", "true");
    const char *ca = option_text(options, "--ca", NULL);
    if (ca != NULL) {
        set(conf, "security.protocol", "ssl");
        set(conf, "ssl.ca.location", ca);
    }
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_t *handle = rd_kafka_new(type, conf, reason, sizeof(reason));
    if (handle == NULL) fail("%s", reason);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, option_required(options, "--topic"), NULL);
    if (topic == NULL) fail("topic: %s", rd_kafka_err2str(rd_kafka_last_error()));
    return (Client){handle, topic};
}

Client producer_open(const Options *options, const Setting *settings) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "acks", option_text(options, "--acks", "1"));
    set(conf, "delivery.report.only.error", "true");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set_all(conf, settings);
    return client_open(options, RD_KAFKA_PRODUCER, conf);
}

Client consumer_open(const Options *options) {
    static const Setting SETTINGS[] = {
        {"queued.min.messages", "1000000"},
        {"fetch.queue.backoff.ms", "10"},
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set_all(conf, SETTINGS);
    return client_open(options, RD_KAFKA_CONSUMER, conf);
}

void client_close(Client *client) {
    rd_kafka_topic_destroy(client->topic);
    rd_kafka_destroy(client->handle);
}

rd_kafka_queue_t *consume_from(Client *client, int64_t offset) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client->handle);
    if (rd_kafka_consume_start_queue(client->topic, 0, offset, queue) != 0) {
        fail("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    return queue;
}

int64_t end_offset(Client *client) {
    int64_t low, high;
    rd_kafka_resp_err_t error =
        rd_kafka_query_watermark_offsets(client->handle, rd_kafka_topic_name(client->topic), 0, &low, &high, 10000);
    if (error) fail("end offset: %s", rd_kafka_err2str(error));
    return high;
}

void drain(Client *producer, int64_t seconds_max) {
    int64_t deadline_ns = now_ns() + seconds_max * 1000000000;
    while (rd_kafka_outq_len(producer->handle) > 0) {
        if (now_ns() > deadline_ns) fail("%d messages undelivered", rd_kafka_outq_len(producer->handle));
        rd_kafka_poll(producer->handle, 1);
    }
}
