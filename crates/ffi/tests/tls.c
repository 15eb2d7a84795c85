/*
 * Certificates: tls ADDRESS NAME CA OTHER EXPIRED ALICE, at a daemon whose certificate is for NAME and comes from the
 * root CA. EXPIRED and ALICE are a certificate and a key without their endings .pem and .key; OTHER is another root.
 */

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { PATIENCE_MS = 60000, LARGE = 300000, MANY = 2000 };

static const char *address;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rota_error_text());
    exit(1);
}

static void must(rota_status status, const char *what)
{
    if (status != ROTA_STATUS_OK)
        fail(what);
}

/* Connecting comes to this, and leaves a text with these words. */
static void refused(rota_status expected, const char *words, const rota_tls *tls, const char *what)
{
    rota_options options = {0};
    rota_client *client = NULL;
    rota_status status;

    options.timeout_ms = PATIENCE_MS;
    options.tls = tls;
    status = rota_connect(address, &options, &client);
    if (status != expected || client != NULL) {
        fprintf(stderr, "status %d, not %d: ", (int)status, (int)expected);
        fail(what);
    }
    if (strstr(rota_error_text(), words) == NULL)
        fail(what);
}

static rota_tls certificate(const char *ca, const char *file, const char *name)
{
    static char pem[4096], key[4096];
    rota_tls tls = {0};

    snprintf(pem, sizeof pem, "%s.pem", file);
    snprintf(key, sizeof key, "%s.key", file);
    tls.ca = ca;
    tls.certificate = pem;
    tls.key = key;
    tls.server_name = name;
    return tls;
}

static const rota_message *next_message(rota_client *client)
{
    const rota_event *event = NULL;
    must(rota_receive(client, PATIENCE_MS, &event), "receiving");
    if (event->event_type != ROTA_EVENT_TYPE_MESSAGE)
        fail("no message");
    return event->message;
}

/* A loop that waits with poll() hears of everything, though TLS reads ahead. */
static void with_poll(rota_client *client)
{
    static char large[LARGE];
    struct pollfd ready = {.fd = rota_fd(client), .events = POLLIN};
    const rota_event *event = NULL;
    int heard = 0;

    memset(large, 7, sizeof large);
    for (int at = 0; at < MANY; at++)
        must(rota_send(client, "g", large, at % 100 == 0 ? LARGE : 100), "sending many");
    while (heard < MANY) {
        rota_status status = rota_receive(client, 0, &event);
        if (status == ROTA_STATUS_OK) {
            size_t bytes = heard % 100 == 0 ? LARGE : 100;
            if (event->event_type != ROTA_EVENT_TYPE_MESSAGE || event->message->bytes != bytes ||
                memcmp(event->message->payload, large, bytes) != 0)
                fail("something else came");
            heard++;
        } else if (status != ROTA_STATUS_TIMED_OUT) {
            fail("receiving many");
        } else if (poll(&ready, 1, PATIENCE_MS) != 1) {
            fail("nothing more comes");
        }
    }
}

int main(int argc, char **argv)
{
    rota_options options = {0};
    rota_client *client = NULL;
    rota_tls tls = {0};
    const char *name, *ca, *other, *expired, *alice;

    if (argc != 7)
        return 2;
    address = argv[1], name = argv[2], ca = argv[3], other = argv[4], expired = argv[5], alice = argv[6];

    refused(ROTA_STATUS_TLS, "certificates to trust", NULL, "without certificates");
    refused(ROTA_STATUS_INVALID_ARGUMENT, "NULL", &tls, "without a root");
    tls.ca = ca;
    tls.server_name = name;
    refused(ROTA_STATUS_TLS, "ertificate", &tls, "without a certificate of its own");
    tls.key = ca;
    refused(ROTA_STATUS_INVALID_ARGUMENT, "certificate", &tls, "a key alone");
    tls = certificate(other, alice, name);
    refused(ROTA_STATUS_TLS, "UnknownIssuer", &tls, "another root");
    tls = certificate(ca, alice, "elsewhere.example");
    refused(ROTA_STATUS_TLS, "not valid for name", &tls, "another name");
    tls = certificate(ca, alice, NULL);
    refused(ROTA_STATUS_TLS, "not valid for", &tls, "the address is no name of the certificate");
    tls = certificate(ca, alice, "\xff");
    refused(ROTA_STATUS_INVALID_ARGUMENT, "UTF-8", &tls, "a name that is none");
    tls = certificate(ca, expired, name);
    refused(ROTA_STATUS_TLS, "xpired", &tls, "an expired certificate");
    tls = certificate("no-such-file", alice, name);
    refused(ROTA_STATUS_BAD_FILE, "no-such-file", &tls, "no root");
    tls = certificate(ca, alice, name);
    tls.key = ca;
    refused(ROTA_STATUS_BAD_FILE, ca, &tls, "no key");

    tls = certificate(ca, alice, name);
    options.tls = &tls;
    options.timeout_ms = PATIENCE_MS;
    must(rota_connect(address, &options, &client), "connecting");
    must(rota_join(client, "g"), "joining");
    must(rota_send(client, "g", "hello", 5), "sending");
    if (memcmp(next_message(client)->payload, "hello", 5) != 0)
        fail("another message");
    with_poll(client);
    must(rota_close(client), "closing");
    puts("as it should be");
    return 0;
}
