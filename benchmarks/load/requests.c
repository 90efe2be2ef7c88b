/* Tiny requests: raw sockets, or TLS; each connection keeps a fixed number of one-record Produce requests in flight.
 *
 * librdkafka would merge small messages into batches; here each message is a request. One thread with epoll sends one request per
 * response, which costs the client a few microseconds, so the broker is the bottleneck. Requests that become due in the same
 * wake-up are sent together, as by any pipelining client.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "frame.h"
#include "load.h"
#include "stream.h"

enum { INPUT_BYTES = 65536, EVENTS_MAX = 64, QUIET_MS_MAX = 10000 };

typedef struct {
    Stream stream;
    Frame frame;
    uint32_t next_correlation;
    uint32_t next_response;
    int64_t *sent_ns; /* ring of the requests in flight, by correlation id */
    uint8_t *output;
    size_t output_length;
    uint8_t input[INPUT_BYTES];
    size_t input_length;
} Connection;

typedef struct {
    const char *topic;
    uint32_t in_flight;
    int64_t requests_max;
    int64_t deadline_ns;
    int64_t issued;
    int64_t answered;
    Samples latencies;
} Run;

static void open_connection(Connection *connection, const Options *options, int32_t partition, uint32_t in_flight) {
    size_t value_bytes = (size_t)option_number(options, "--message-bytes", 10);
    int16_t acks = strcmp(option_text(options, "--acks", "1"), "all") == 0 ? -1 : 1;
    connection->frame = produce_frame(option_required(options, "--topic"), partition, acks, value_bytes);
    connection->sent_ns = calloc(in_flight, sizeof(int64_t));
    connection->output = malloc(in_flight * connection->frame.length);
    if (connection->sent_ns == NULL || connection->output == NULL) fail("no memory");
    connection->stream = stream_open(options);
}

static void queue_request(Connection *connection, Run *run) {
    uint8_t *request = connection->output + connection->output_length;
    memcpy(request, connection->frame.bytes, connection->frame.length);
    put_int32(request + FRAME_CORRELATION_AT, connection->next_correlation);
    connection->sent_ns[connection->next_correlation % run->in_flight] = now_ns();
    connection->output_length += connection->frame.length;
    connection->next_correlation++;
    run->issued++;
}

/* There are never more pending responses than requests in flight, so the queue always fits and a blocking send always ends. */
static void send_queued(Connection *connection) {
    if (connection->output_length > 0) stream_send(&connection->stream, connection->output, connection->output_length);
    connection->output_length = 0;
}

static void take_response(Connection *connection, Run *run, const uint8_t *response, size_t length) {
    uint32_t correlation = connection->next_response++;
    check_produce_response(response, length, correlation, run->topic);
    samples_add(&run->latencies, now_ns() - connection->sent_ns[correlation % run->in_flight]);
    run->answered++;
    if (run->issued < run->requests_max && now_ns() < run->deadline_ns) queue_request(connection, run);
}

static void take_responses(Connection *connection, Run *run) {
    size_t at = 0;
    while (connection->input_length - at >= 4) {
        size_t length = get_int32(connection->input + at);
        if (length > INPUT_BYTES - 4) fail("a response of %zu bytes came", length);
        if (connection->input_length - at < 4 + length) break;
        take_response(connection, run, connection->input + at + 4, length);
        at += 4 + length;
    }
    connection->input_length -= at;
    memmove(connection->input, connection->input + at, connection->input_length);
}

static void on_readable(Connection *connection, Run *run) {
    do {
        uint8_t *free_input = connection->input + connection->input_length;
        connection->input_length += stream_receive(&connection->stream, free_input, INPUT_BYTES - connection->input_length);
        take_responses(connection, run);
    } while (stream_has_more(&connection->stream));
    send_queued(connection);
}

static int watch(Connection *connections, size_t count) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].stream.socket, &event) != 0) fail("epoll: %s", strerror(errno));
    }
    return epoll;
}

static void start(Connection *connections, size_t count, Run *run) {
    for (size_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < run->in_flight && run->issued < run->requests_max; n++) queue_request(&connections[i], run);
        send_queued(&connections[i]);
    }
}

static void serve(int epoll, Run *run) {
    struct epoll_event events[EVENTS_MAX];
    while (run->answered < run->issued) {
        int ready = epoll_wait(epoll, events, EVENTS_MAX, QUIET_MS_MAX);
        if (ready == 0) fail("no response came for %d ms", QUIET_MS_MAX);
        for (int i = 0; i < ready; i++) on_readable(events[i].data.ptr, run);
    }
}

int run_requests(const Options *options) {
    size_t connection_count = (size_t)option_number(options, "--connections", 1);
    int32_t partitions = (int32_t)option_number(options, "--partitions", 1);
    int64_t requests_max = option_number(options, "--requests", 2000000);
    Run run = {.topic = option_required(options, "--topic"),
               .in_flight = (uint32_t)option_number(options, "--in-flight", 1),
               .requests_max = requests_max,
               .latencies = samples_new((size_t)requests_max)};
    Connection *connections = calloc(connection_count, sizeof(Connection));
    if (connections == NULL) fail("no memory");
    for (size_t i = 0; i < connection_count; i++) {
        open_connection(&connections[i], options, (int32_t)i % partitions, run.in_flight);
    }
    int epoll = watch(connections, connection_count);

    Usage usage = usage_begin();
    run.deadline_ns = now_ns() + option_number(options, "--seconds", 5) * 1000000000;
    start(connections, connection_count, &run);
    serve(epoll, &run);
    double seconds = (double)(now_ns() - usage.began_ns) / 1e9;
    usage_end(&usage);

    Outcome outcome = {run.answered, run.answered, option_number(options, "--message-bytes", 10), seconds, usage, &run.latencies};
    print_outcome(&outcome);
    for (size_t i = 0; i < connection_count; i++) stream_close(&connections[i].stream);
    return 0;
}
