/* librdkafka handles of the loads: one topic, partition 0, the same settings for every broker. */
#ifndef SSKAFKA_LOAD_KAFKA_H
#define SSKAFKA_LOAD_KAFKA_H

#include <librdkafka/rdkafka.h>

#include "load.h"

typedef struct {
    rd_kafka_t *handle;
    rd_kafka_topic_t *topic;
} Client;

typedef struct {
    const char *name;
    const char *value;
} Setting;

Client producer_open(const Options *options, const Setting *settings);
Client consumer_open(const Options *options);
void client_close(Client *client);

/* Start reading partition 0 at `offset` into its own queue. */
rd_kafka_queue_t *consume_from(Client *client, int64_t offset);

/* Return the log end offset of partition 0. */
int64_t end_offset(Client *client);

/* Wait until everything is delivered; fail if a delivery failed or the time is over. */
void drain(Client *producer, int64_t seconds_max);

#endif
