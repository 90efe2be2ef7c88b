/* Encoding of one Produce request (version 7, one record), and the check of its response.
 *
 *   request    size:4 key:2 version:2 correlation:4 client:2+n | transactional:2 acks:2 timeout:4
 *              topics:4 name:2+n partitions:4 index:4 length:4 batch
 *   response   size:4 correlation:4 | topics:4 name:2+n partitions:4 index:4 error:2 base_offset:8 append_time:8 log_start:8 throttle:4
 *   batch      base_offset:8 length:4 leader_epoch:4 magic:1 crc:4 | attributes:2 last_delta:4 base_time:8 max_time:8
 *              producer:8 producer_epoch:2 sequence:4 records:4 record      (the CRC covers what follows it)
 *   record     length:v attributes:1 time_delta:v offset_delta:v key:v(-1) value:v+n headers:v(0)
 */
#ifndef SSKAFKA_LOAD_FRAME_H
#define SSKAFKA_LOAD_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_CORRELATION_AT = 8, FRAME_BYTES_MAX = 8192 };

typedef struct {
    uint8_t bytes[FRAME_BYTES_MAX];
    size_t length;
} Frame;

/* `acks`: 1 for the leader only, -1 for all in-sync replicas. */
Frame produce_frame(const char *topic, int32_t partition, int16_t acks, size_t value_bytes);

void put_int32(uint8_t *at, uint32_t value);
uint32_t get_int32(const uint8_t *at);

/* Fails unless the `length` bytes at `response` (after the size) are the response to `correlation`, with error code 0. */
void check_produce_response(const uint8_t *response, size_t length, uint32_t correlation, const char *topic);

#endif
