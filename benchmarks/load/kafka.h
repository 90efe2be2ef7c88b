/* The librdkafka handles that the loads share: one topic, partition 0, the same settings whatever the broker. */
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

/* Starts reading partition 0 at `offset` into a queue of its own. */
rd_kafka_queue_t *consume_from(Client *client, int64_t offset);

/* Where the next record of partition 0 will go. */
int64_t end_offset(Client *client);

/* Waits until nothing is left to deliver; fails when a delivery failed or the time is over. */
void drain(Client *producer, int64_t seconds_max);

#endif
