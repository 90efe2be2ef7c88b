#include "frame.h"

#include <string.h>
#include <time.h>

#include "load.h"

void put_int32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

uint32_t get_int32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void add(Frame *frame, const void *bytes, size_t length) {
    if (frame->length + length > FRAME_BYTES_MAX) fail("a request must fit into %d bytes", FRAME_BYTES_MAX);
    memcpy(frame->bytes + frame->length, bytes, length);
    frame->length += length;
}

static void add_integer(Frame *frame, int64_t value, size_t width) {
    uint8_t bytes[8];
    for (size_t i = 0; i < width; i++) bytes[i] = (uint8_t)((uint64_t)value >> (8 * (width - 1 - i)));
    add(frame, bytes, width);
}

static void add_string(Frame *frame, const char *text) {
    add_integer(frame, (int64_t)strlen(text), 2);
    add(frame, text, strlen(text));
}

/* Zigzag, then 7 bits per byte, lowest bits first. */
static void add_varint(Frame *frame, int32_t value) {
    uint32_t left = ((uint32_t)value << 1) ^ (uint32_t)(value >> 31);
    for (; left >= 0x80; left >>= 7) add_integer(frame, (int64_t)(left & 0x7f) | 0x80, 1);
    add_integer(frame, left, 1);
}

/* Bit by bit, because it runs only once per connection. */
static uint32_t crc32c(const uint8_t *bytes, size_t length) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1u)));
    }
    return ~crc;
}

static void add_record(Frame *frame, size_t value_bytes) {
    Frame body = {.length = 0};
    add_integer(&body, 0, 1);
    add_varint(&body, 0);
    add_varint(&body, 0);
    add_varint(&body, -1);
    add_varint(&body, (int32_t)value_bytes);
    for (size_t i = 0; i < value_bytes; i++) add_integer(&body, 'a' + (int64_t)(i % 26), 1);
    add_varint(&body, 0);
    add_varint(frame, (int32_t)body.length);
    add(frame, body.bytes, body.length);
}

static Frame record_batch(size_t value_bytes) {
    enum { LENGTH_AT = 8, LENGTH_COVERS_FROM = 12, CRC_AT = 17, CRC_COVERS_FROM = 21 };
    Frame batch = {.length = 0};
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    add_integer(&batch, 0, 8);
    add_integer(&batch, 0, 4);
    add_integer(&batch, -1, 4);
    add_integer(&batch, 2, 1);
    add_integer(&batch, 0, 4);
    add_integer(&batch, 0, 2);
    add_integer(&batch, 0, 4);
    add_integer(&batch, now_ms, 8);
    add_integer(&batch, now_ms, 8);
    add_integer(&batch, -1, 8);
    add_integer(&batch, -1, 2);
    add_integer(&batch, -1, 4);
    add_integer(&batch, 1, 4);
    add_record(&batch, value_bytes);
    put_int32(batch.bytes + LENGTH_AT, (uint32_t)(batch.length - LENGTH_COVERS_FROM));
    put_int32(batch.bytes + CRC_AT, crc32c(batch.bytes + CRC_COVERS_FROM, batch.length - CRC_COVERS_FROM));
    return batch;
}

Frame produce_frame(const char *topic, int32_t partition, int16_t acks, size_t value_bytes) {
    Frame frame = {.length = 0};
    Frame batch = record_batch(value_bytes);
    add_integer(&frame, 0, 4);
    add_integer(&frame, 0, 2);
    add_integer(&frame, 7, 2);
    add_integer(&frame, 0, 4);
    add_string(&frame, "load");
    add_integer(&frame, -1, 2);
    add_integer(&frame, acks, 2);
    add_integer(&frame, 30000, 4);
    add_integer(&frame, 1, 4);
    add_string(&frame, topic);
    add_integer(&frame, 1, 4);
    add_integer(&frame, partition, 4);
    add_integer(&frame, (int64_t)batch.length, 4);
    add(&frame, batch.bytes, batch.length);
    put_int32(frame.bytes, (uint32_t)(frame.length - 4));
    return frame;
}

void check_produce_response(const uint8_t *response, size_t length, uint32_t correlation, const char *topic) {
    size_t error_at = 4 + 4 + 2 + strlen(topic) + 4 + 4;
    size_t whole = error_at + 2 + 8 + 8 + 8 + 4;
    if (length != whole) fail("a response of %zu bytes came, %zu were due", length, whole);
    if (get_int32(response) != correlation) fail("response %u came, %u was next", get_int32(response), correlation);
    int error = (int16_t)(response[error_at] << 8 | response[error_at + 1]);
    if (error != 0) fail("the broker answered with error code %d", error);
}
