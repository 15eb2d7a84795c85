/*
 * A client that does what the cutting tests of the daemons say, and says what it saw.
 *
 * An order is a line on standard input: ADDRESS NAME STYLE MESSAGES BYTES CLOSES CA CERTIFICATE KEY. What comes of it are
 * lines on standard output: `sent NUMBER`, `got SENDER NUMBER`, `refused WHY`, `lost WHY`, `closed`, `unclosed WHY`, `end`.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { PATIENCE_MS = 60000, GATHERED = 8, TAKEN = 100, WORD = 512 };

typedef struct order {
    char address[WORD], name[WORD], style[WORD], ca[WORD], certificate[WORD], key[WORD];
    unsigned messages, closes;
    size_t bytes;
} order;

typedef struct half {
    rota_client *client;
    const order *order;
} half;

static void hear(const rota_event *event)
{
    if (event->event_type == ROTA_EVENT_TYPE_MESSAGE)
        printf("got %s %d\n", event->message->sender, atoi(event->message->payload));
    else
        printf("wrong event %d\n", (int)event->event_type);
}

/* Whether there may be more to send. */
static bool send_one(rota_client *client, const order *order, unsigned number, char *payload)
{
    const char *to = "g";
    rota_envelope envelope = {.to = &to, .to_count = 1};
    bool feeds = strcmp(order->style, "feed") == 0;
    rota_status status;
    size_t bytes = (size_t)sprintf(payload, "%u|", number);

    payload[bytes] = '.';
    if (bytes < order->bytes)
        bytes = order->bytes;
    status = feeds ? rota_send_envelope(client, &envelope, payload, bytes, ROTA_GATHER)
                   : rota_send(client, to, payload, bytes);
    if (status == ROTA_STATUS_LOST)
        return false;
    if (status != ROTA_STATUS_OK)
        printf("wrong %s\n", rota_error_text());
    printf("sent %u\n", number);
    return number % GATHERED != 0 || rota_flush(client) == ROTA_STATUS_OK;
}

static char *room(const order *order)
{
    char *payload = malloc(order->bytes + 32);
    if (payload == NULL)
        exit(1);
    memset(payload, '.', order->bytes + 32);
    return payload;
}

static void *send_all(void *argument)
{
    half *mine = argument;
    char *payload = room(mine->order);
    for (unsigned number = 1; number <= mine->order->messages; number++)
        if (!send_one(mine->client, mine->order, number, payload))
            break;
    free(payload);
    return NULL;
}

/* Takes all there is, to the end, behind which nothing may come. */
static void listen_to_the_end(rota_client *client)
{
    const rota_event *event = NULL;
    rota_status status;

    while ((status = rota_receive(client, PATIENCE_MS, &event)) == ROTA_STATUS_OK)
        hear(event);
    if (status == ROTA_STATUS_LOST)
        printf("lost %s\n", rota_error_text());
    else
        printf("wrong end %s\n", rota_error_text());
    if (rota_receive(client, 0, &event) != ROTA_STATUS_LOST)
        printf("wrong behind the end\n");
}

static void play_halves(rota_client *client, const order *order)
{
    rota_client *receiver = NULL;
    half mine = {client, order};
    pthread_t thread;

    if (rota_split(client, &receiver) != ROTA_STATUS_OK || pthread_create(&thread, NULL, send_all, &mine) != 0) {
        printf("wrong %s\n", rota_error_text());
        return;
    }
    listen_to_the_end(receiver);
    pthread_join(thread, NULL);
    rota_free(receiver);
    rota_free(client);
}

static void play_whole(rota_client *client, const order *order)
{
    const rota_event *event = NULL;
    char *payload = room(order);
    bool goes_on = true;

    for (unsigned number = 1; goes_on && number <= order->messages; number++) {
        goes_on = send_one(client, order, number, payload);
        /* There may always be more. */
        for (int taken = 0; goes_on && taken < TAKEN && rota_receive(client, 0, &event) == ROTA_STATUS_OK; taken++)
            hear(event);
    }
    free(payload);
    if (!goes_on || !order->closes) {
        listen_to_the_end(client);
        rota_free(client);
    } else if (rota_close(client) == ROTA_STATUS_OK) {
        printf("closed\n");
    } else {
        printf("unclosed %s\n", rota_error_text());
    }
}

static void play(const order *order)
{
    rota_options options = {0};
    rota_tls tls = {0};
    rota_client *client = NULL;

    tls.ca = order->ca, tls.certificate = order->certificate, tls.key = order->key;
    tls.server_name = "daemon.example";
    options.name = order->name;
    options.timeout_ms = PATIENCE_MS;
    if (strncmp(order->address, "tls:", 4) == 0)
        options.tls = &tls;
    if (rota_connect(order->address, &options, &client) != ROTA_STATUS_OK) {
        printf("refused %s\n", rota_error_text());
        return;
    }
    if (rota_join(client, "g") != ROTA_STATUS_OK) {
        listen_to_the_end(client);
        rota_free(client);
    } else if (strcmp(order->style, "halves") == 0) {
        play_halves(client, order);
    } else {
        play_whole(client, order);
    }
}

int main(void)
{
    static order order;

    while (scanf("%511s %511s %511s %u %zu %u %511s %511s %511s", order.address, order.name, order.style, &order.messages,
                 &order.bytes, &order.closes, order.ca, order.certificate, order.key) == 9) {
        play(&order);
        printf("end\n");
        fflush(stdout);
    }
    return 0;
}
