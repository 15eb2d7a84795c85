/*
 * A client that outlives its daemon: lasting ADDRESS NAME GROUP.
 * It says `ready` when it is in the group, then each event: `got SENDER TEXT`, `view MEMBERS`, or
 * `gap UNSETTLED NAME NOT-JOINED`. Each line of its input is sent to the group, or, as `@TO TEXT`, to another client;
 * `unsent TEXT` where there is no connection. At the input's end it closes.
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rota.h>

enum { PATIENCE_MS = 60000, TURN_MS = 20, LINE = 256 };

static void say(const rota_event *event)
{
    const rota_message *message = event->message;
    const rota_gap *gap = event->gap;

    if (event->event_type == ROTA_EVENT_TYPE_MESSAGE)
        printf("got %s %.*s\n", message->sender, (int)message->bytes, (const char *)message->payload);
    else if (event->event_type == ROTA_EVENT_TYPE_VIEW)
        printf("view %zu\n", event->view->member_count);
    else if (event->event_type == ROTA_EVENT_TYPE_RECONNECTED)
        printf("gap %llu %s %zu\n", (unsigned long long)gap->unsettled_bytes, gap->name, gap->not_joined_count);
    fflush(stdout);
}

/* Receives for a while; whether the client may go on. */
static int receive(rota_client *client)
{
    const rota_event *event;
    rota_status status;

    while ((status = rota_receive(client, TURN_MS, &event)) == ROTA_STATUS_OK)
        say(event);
    return status == ROTA_STATUS_TIMED_OUT;
}

/* While there is no connection nothing is sent. */
static void send_line(rota_client *client, const char *group, char *line)
{
    const char *to = group;
    char *text = line;

    if (line[0] == '@' && (text = strchr(line, ' ')) != NULL) {
        *text++ = '\0';
        to = line + 1;
    }
    if (text != NULL && rota_send(client, to, text, strlen(text)) != ROTA_STATUS_OK) {
        printf("unsent %s\n", text);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    rota_options options = {.membership = true, .timeout_ms = PATIENCE_MS};
    rota_pauses pauses = {.first_ms = 10, .longest_ms = 200};
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    rota_client *client;
    char line[LINE];

    if (argc != 4)
        return 2;
    options.name = argv[2];
    if (rota_connect_lasting(argv[1], &options, &pauses, &client) != ROTA_STATUS_OK
        || rota_join(client, argv[3]) != ROTA_STATUS_OK) {
        fprintf(stderr, "%s\n", rota_error_text());
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    setvbuf(stdin, NULL, _IONBF, 0);
    for (;;) {
        if (!receive(client)) {
            fprintf(stderr, "%s\n", rota_error_text());
            return 1;
        }
        if (poll(&input, 1, 0) <= 0)
            continue;
        if (fgets(line, sizeof line, stdin) == NULL)
            break;
        line[strcspn(line, "\n")] = '\0';
        send_line(client, argv[3], line);
    }
    return rota_close(client) != ROTA_STATUS_OK;
}
