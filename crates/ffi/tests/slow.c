/*
 * Reading too slowly: slow SOCKET POLICY. Joins "g", says so, and reads nothing before there is a line on its standard
 * input. With policy 2 it then says what it got, on lines "got NUMBER", "skipped MESSAGES BYTES GROUP", "lagging", and ends
 * with the message "end". With policy 1 it hears how the connection ends.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { PATIENCE_MS = 60000 };

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rota_error_text());
    exit(1);
}

static bool say(const rota_event *event)
{
    const rota_skipped *skipped = event->skipped;

    if ((event->event_type == ROTA_EVENT_TYPE_SKIPPED) != (skipped != NULL))
        fail("`skipped` is of one type of event");
    switch (event->event_type) {
    case ROTA_EVENT_TYPE_LAGGING:
        if (event->waiting == 0 || event->limit < event->waiting)
            fail("a warning that is none");
        puts("lagging");
        return true;
    case ROTA_EVENT_TYPE_SKIPPED:
        printf("skipped %llu %llu", (unsigned long long)skipped->messages,
               (unsigned long long)skipped->bytes);
        for (size_t at = 0; at < skipped->group_count; at++)
            printf(" %s", skipped->groups[at]);
        puts("");
        return true;
    case ROTA_EVENT_TYPE_MESSAGE:
        if (event->message->bytes == 3 && memcmp(event->message->payload, "end", 3) == 0)
            return false;
        printf("got %d\n", atoi(event->message->payload));
        return true;
    default:
        fail("another event");
        return false;
    }
}

int main(int argc, char **argv)
{
    rota_options options = {0};
    rota_client *client = NULL;
    const rota_event *event = NULL;
    rota_status status = ROTA_STATUS_OK;

    if (argc != 3)
        return 2;
    options.name = "slow";
    options.when_slow = (uint32_t)atoi(argv[2]);
    if (rota_connect(argv[1], &options, &client) != ROTA_STATUS_OK)
        fail("connecting");
    if (rota_join(client, "g") != ROTA_STATUS_OK)
        fail("joining");
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 2;
    while (status == ROTA_STATUS_OK) {
        status = rota_receive(client, PATIENCE_MS, &event);
        if (status == ROTA_STATUS_OK && !say(event))
            break;
    }
    if (status == ROTA_STATUS_LOST)
        puts("lost");
    else if (status != ROTA_STATUS_OK)
        fail("receiving");
    rota_free(client);
    return 0;
}
