#include "stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *addresses;
    if (getaddrinfo(host, port, &hints, &addresses) != 0) fail("no address for %s", host);
    int descriptor = socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, addresses->ai_addr, addresses->ai_addrlen) != 0) {
        fail("connect to %s:%s: %s", host, port, strerror(errno));
    }
    freeaddrinfo(addresses);
    int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return descriptor;
}

static _Noreturn void fail_tls(const char *what) {
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    fail("TLS, %s: %s", what, reason);
}

/* All connections share one context. Without AUTO_RETRY, a session ticket does not make SSL_read wait for a response. */
static SSL_CTX *context_of(const char *ca) {
    static SSL_CTX *context = NULL;
    if (context != NULL) return context;
    context = SSL_CTX_new(TLS_client_method());
    if (context == NULL || SSL_CTX_load_verify_locations(context, ca, NULL) != 1) fail_tls(ca);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    return context;
}

static SSL *handshake(int socket, const char *host, const char *ca) {
    SSL *tls = SSL_new(context_of(ca));
    if (tls == NULL) fail_tls("no memory");
    X509_VERIFY_PARAM *wanted = SSL_get0_param(tls);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host) != 1) X509_VERIFY_PARAM_set1_host(wanted, host, 0);
    SSL_set_fd(tls, socket);
    if (SSL_connect(tls) != 1) fail_tls("handshake");
    return tls;
}

Stream stream_open(const Options *options) {
    const char *host = option_required(options, "--host"), *ca = option_text(options, "--ca", NULL);
    Stream stream = {.socket = connect_to(host, option_required(options, "--port")), .tls = NULL};
    if (ca != NULL) stream.tls = handshake(stream.socket, host, ca);
    return stream;
}

void stream_send(Stream *stream, const uint8_t *bytes, size_t length) {
    for (size_t sent = 0; sent < length;) {
        size_t left = length - sent;
        ssize_t count = stream->tls != NULL ? SSL_write(stream->tls, bytes + sent, (int)left)
                                            : send(stream->socket, bytes + sent, left, MSG_NOSIGNAL);
        if (count <= 0) fail("send: %s", stream->tls != NULL ? "TLS failed" : strerror(errno));
        sent += (size_t)count;
    }
}

size_t stream_receive(Stream *stream, uint8_t *bytes, size_t room) {
    if (stream->tls != NULL) {
        int count = SSL_read(stream->tls, bytes, (int)room);
        if (count > 0) return (size_t)count;
        if (SSL_get_error(stream->tls, count) == SSL_ERROR_WANT_READ) return 0;
        fail("the broker closed the connection: TLS");
    }
    ssize_t count = recv(stream->socket, bytes, room, 0);
    if (count <= 0) fail("the broker closed the connection: %s", count == 0 ? "end of stream" : strerror(errno));
    return (size_t)count;
}

int stream_has_more(const Stream *stream) {
    return stream->tls != NULL && SSL_pending(stream->tls) > 0;
}

void stream_close(Stream *stream) {
    if (stream->tls != NULL) SSL_free(stream->tls);
    close(stream->socket);
}
