/*
 * A room for people: chat SOCKET NAME ROOM, once for each of them.
 *
 * One thread waits for two things at once, lines and events. All members see the same lines in the same
 * order, and who came and went at the same place between them.
 *
 *     cc chat.c $(pkg-config --cflags --libs rota) -o chat
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rota.h>

/* Ends the program if a call has failed. */
static void must(rota_status status, const char *what)
{
    if (status != ROTA_STATUS_OK) {
        fprintf(stderr, "chat: %s: %s\n", what, rota_error_text());
        exit(1);
    }
}

static void show_view(const rota_view *view)
{
    const char *causes[] = {"", "is here", "has left", "is gone", "the network has changed"};
    printf("*%s%s %s; now", view->changed ? " " : "", view->changed ? view->changed : "",
           causes[view->cause]);
    for (size_t i = 0; i < view->member_count; i++)
        printf(" %s", view->members[i]);
    printf("\n");
}

/* Shows all events that are there; true when the room has told us that we have left. */
static bool show_events(rota_client *client)
{
    const rota_event *event;
    rota_status status;

    while ((status = rota_receive(client, 0, &event)) == ROTA_STATUS_OK) {
        if (event->event_type == ROTA_EVENT_TYPE_MESSAGE)
            printf("%s: %.*s\n", event->message->sender, (int)event->message->bytes,
                   (const char *)event->message->payload);
        else if (event->event_type == ROTA_EVENT_TYPE_VIEW)
            show_view(event->view);
        else if (event->event_type == ROTA_EVENT_TYPE_SELF_LEAVE)
            return true;
        fflush(stdout);
    }
    if (status != ROTA_STATUS_TIMED_OUT)
        must(status, "receiving");
    return false;
}

/* Reads what is there, and says each whole line in the room; false at the end. */
static bool say_lines(rota_client *client, const char *room)
{
    static char line[4096];
    static size_t length;
    ssize_t bytes = read(STDIN_FILENO, line + length, sizeof line - length);
    char *end;

    if (bytes <= 0)
        return false;
    length += (size_t)bytes;
    while ((end = memchr(line, '\n', length)) != NULL || length == sizeof line) {
        size_t said = end ? (size_t)(end - line) : length;
        size_t taken = end ? said + 1 : said;
        must(rota_send(client, room, line, said), "sending");
        memmove(line, line + taken, length - taken);
        length -= taken;
    }
    return true;
}

int main(int argc, char **argv)
{
    rota_options options = {0};
    rota_client *client;
    bool talking = true;

    if (argc != 4) {
        fprintf(stderr, "usage: chat SOCKET NAME ROOM\n");
        return 2;
    }
    options.name = argv[2];
    options.membership = true;
    must(rota_connect(argv[1], &options, &client), "connecting");
    must(rota_join(client, argv[3]), "joining");
    while (!show_events(client)) {
        short interest = rota_wants_write(client) ? POLLIN | POLLOUT : POLLIN;
        struct pollfd fds[] = {
            {.fd = rota_fd(client), .events = interest},
            {.fd = talking ? STDIN_FILENO : -1, .events = POLLIN},
        };
        if (poll(fds, 2, -1) > 0 && fds[1].revents != 0 && !say_lines(client, argv[3])) {
            /* The room tells us that we have left when all our lines have been said. */
            talking = false;
            must(rota_leave(client, argv[3]), "leaving");
        }
    }
    must(rota_close(client), "closing");
    return 0;
}
