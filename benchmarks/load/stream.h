/* A connection of the tiny requests: a blocking socket, with TLS if a certificate authority is given. */
#ifndef SSKAFKA_STREAM_H
#define SSKAFKA_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "load.h"

typedef struct {
    int socket;
    void *tls; /* SSL of OpenSSL; NULL without TLS */
} Stream;

/* Connect to --host and --port, with TLS if --ca names a file of certificates. */
Stream stream_open(const Options *options);

/* Send everything. */
void stream_send(Stream *stream, const uint8_t *bytes, size_t length);

/* Return how many bytes came; 0 if only messages of TLS itself came. Fails at the end of the stream. */
size_t stream_receive(Stream *stream, uint8_t *bytes, size_t room);

/* Return whether bytes can be received that are no longer in the socket, so that epoll does not report them. */
int stream_has_more(const Stream *stream);

void stream_close(Stream *stream);

#endif
