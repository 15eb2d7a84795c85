/* A message that may not go where it was sent: refused SOCKET, at a daemon whose rules let it send to "open" only. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

static void must(rota_status status, const char *what)
{
    if (status != ROTA_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, rota_error_text());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    rota_options options = {0};
    rota_client *client = NULL;
    const rota_event *event = NULL;

    if (argc != 2)
        return 2;
    must(rota_connect(argv[1], &options, &client), "connecting");
    must(rota_join(client, "open"), "joining");
    must(rota_send(client, "closed", "x", 1), "sending to closed");
    must(rota_receive(client, 60000, &event), "hearing that it was refused");
    if (event->event_type != ROTA_EVENT_TYPE_NOT_SENT || strcmp(event->group, "closed") != 0 ||
        event->kind != 0 || strlen(event->reason) == 0 || event->message != NULL) {
        fprintf(stderr, "something else, of type %d\n", (int)event->event_type);
        return 1;
    }
    must(rota_send(client, "open", "y", 1), "sending to open");
    must(rota_receive(client, 60000, &event), "hearing oneself");
    if (event->event_type != ROTA_EVENT_TYPE_MESSAGE || event->reason != NULL ||
        memcmp(event->message->payload, "y", 1) != 0) {
        fprintf(stderr, "no message, but type %d\n", (int)event->event_type);
        return 1;
    }
    must(rota_close(client), "closing");
    puts("as it should be");
    return 0;
}
