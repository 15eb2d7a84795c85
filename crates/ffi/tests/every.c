/*
 * Every function of the library with every argument that is wrong, and what it is for.
 * every SOCKET OTHER PID: sockets of two daemons n1 and n2; the second is process PID, and is killed.
 */

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rota.h>

enum { PATIENCE_MS = 60000, MANY = 3000 };

static int line_of_last;

#define HOLDS(condition) ((void)((condition) || (fail(__LINE__, #condition), 0)))
#define GIVES(status, call) gives(__LINE__, #call, (status), (call))
#define OK(call) GIVES(ROTA_STATUS_OK, call)

static void fail(int line, const char *what)
{
    fprintf(stderr, "every.c:%d: %s (%s, code %d)\n", line, what, rota_error_text(),
            rota_error_code());
    exit(1);
}

static void gives(int line, const char *call, rota_status expected, rota_status status)
{
    line_of_last = line;
    if (status != expected) {
        fprintf(stderr, "status %d, not %d: ", (int)status, (int)expected);
        fail(line, call);
    }
    if (status != ROTA_STATUS_OK && rota_error_text()[0] == '\0')
        fail(line, "an error has a text");
}

/* Whether daemons have come or gone: on a machine that has too much to do they may do that at any time. */
static bool is_of_the_network(const rota_event *event)
{
    return event->event_type == ROTA_EVENT_TYPE_TRANSITIONAL
        || (event->event_type == ROTA_EVENT_TYPE_VIEW
            && event->view->cause == ROTA_CAUSE_NETWORK);
}

/* The next event that is not of the network, which is of this type. */
static const rota_event *next(rota_client *client, rota_event_type type)
{
    const rota_event *event = NULL;
    do {
        OK(rota_receive(client, PATIENCE_MS, &event));
        HOLDS(event != NULL);
    } while (is_of_the_network(event));
    HOLDS(event->event_type == type);
    return event;
}

static rota_client *connect_as(const char *socket, const char *name, bool membership)
{
    rota_options options = {0};
    rota_client *client = NULL;
    options.name = name;
    options.membership = membership;
    options.timeout_ms = PATIENCE_MS;
    OK(rota_connect(socket, &options, &client));
    HOLDS(client != NULL);
    return client;
}

static void null_is_no_handle(void)
{
    const rota_event *event = (const rota_event *)&line_of_last;
    const rota_group *groups;
    const char *const *members;
    rota_client *half;
    rota_envelope envelope = {0};
    size_t count = 7;

    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_split(NULL, &half));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_join(NULL, "orders"));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_leave(NULL, "orders"));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_groups(NULL, &groups, &count));
    HOLDS(groups == NULL && count == 0);
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_members(NULL, "orders", &members, &count));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send(NULL, "orders", "", 0));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(NULL, &envelope, "", 0, 0));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_flush(NULL));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_receive(NULL, 0, &event));
    HOLDS(event == NULL);
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_connect_lasting("/no/such/socket", NULL, NULL, NULL));
    OK(rota_close(NULL));
    rota_free(NULL);
    HOLDS(rota_name(NULL) == NULL && rota_fd(NULL) == -1);
    HOLDS(rota_largest_payload(NULL) == 0 && !rota_wants_write(NULL));
    HOLDS(strlen(rota_version()) >= strlen("0.0.0"));
}

static void wrong_options(const char *socket)
{
    rota_options options = {0};
    rota_client *client = (rota_client *)&line_of_last;
    rota_client *first;

    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_connect(socket, NULL, NULL));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_connect(NULL, NULL, &client));
    HOLDS(client == NULL);
    GIVES(ROTA_STATUS_NO_CONNECTION, rota_connect("/no/such/socket", NULL, &client));
    GIVES(ROTA_STATUS_NO_CONNECTION, rota_connect("\xff\xfe", NULL, &client));
    GIVES(ROTA_STATUS_INSECURE, rota_connect("tcp:192.0.2.1:4000", NULL, &client));
    options.name = "not a name";
    GIVES(ROTA_STATUS_BAD_NAME, rota_connect(socket, &options, &client));
    options.name = "\xc3\x28";
    GIVES(ROTA_STATUS_BAD_NAME, rota_connect(socket, &options, &client));
    options.name = NULL;
    options.service = 6;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_connect(socket, &options, &client));
    options.service = 0;
    options.when_slow = 9;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_connect(socket, &options, &client));
    options.when_slow = ROTA_WHEN_SLOW_DISCONNECT;
    first = connect_as(socket, "twin", false);
    options.service = ROTA_SERVICE_SAFE;
    options.name = "twin";
    GIVES(ROTA_STATUS_REFUSED, rota_connect(socket, &options, &client));
    HOLDS(client == NULL && rota_error_code() == ROTA_CODE_NAME_IN_USE);
    HOLDS(strcmp(rota_name(first), "#twin#n1") == 0);
    OK(rota_close(first));
}

static void wrong_names_and_sizes(rota_client *client)
{
    const char *to[] = {"orders", "#alice#n1", NULL};
    rota_envelope envelope = {0};
    const rota_event *event;
    size_t count;
    const char *const *members;
    const rota_group *groups;

    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_join(client, NULL));
    GIVES(ROTA_STATUS_BAD_NAME, rota_join(client, "no group"));
    GIVES(ROTA_STATUS_BAD_NAME, rota_leave(client, ""));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send(client, NULL, "", 0));
    GIVES(ROTA_STATUS_BAD_NAME, rota_send(client, "#alice", "", 0));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send(client, "orders", NULL, 1));
    /* Nothing of these is looked at. */
    GIVES(ROTA_STATUS_TOO_LARGE, rota_send(client, "orders", "", SIZE_MAX));
    GIVES(ROTA_STATUS_TOO_LARGE,
          rota_send(client, "orders", "", rota_largest_payload(client) + 1));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(client, NULL, "", 0, 0));
    GIVES(ROTA_STATUS_BAD_DESTINATIONS, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.to_count = ROTA_MAX_DESTINATIONS + 1;
    GIVES(ROTA_STATUS_BAD_DESTINATIONS, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.to_count = SIZE_MAX;
    GIVES(ROTA_STATUS_BAD_DESTINATIONS, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.to_count = 1;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.to = to;
    envelope.to_count = 3;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.to_count = 2;
    envelope.service = 6;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(client, &envelope, "", 0, 0));
    envelope.service = 0;
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_send_envelope(client, &envelope, "", 0, 4));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_receive(client, 0, NULL));
    GIVES(ROTA_STATUS_TIMED_OUT, rota_receive(client, 0, &event));
    HOLDS(event == NULL);
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_groups(client, NULL, &count));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_groups(client, &groups, NULL));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_members(client, "orders", NULL, &count));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_members(client, "orders", &members, NULL));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_members(client, NULL, &members, &count));
    GIVES(ROTA_STATUS_BAD_NAME, rota_members(client, "no group", &members, &count));
    GIVES(ROTA_STATUS_INVALID_ARGUMENT, rota_split(client, NULL));
}

static void lists(rota_client *client)
{
    const rota_group *groups;
    const char *const *members;
    size_t count;

    OK(rota_groups(client, &groups, &count));
    HOLDS(count == 1 && strcmp(groups[0].name, "orders") == 0 && groups[0].members == 2);
    OK(rota_members(client, "orders", &members, &count));
    HOLDS(count == 2 && strcmp(members[0], "#alice#n1") == 0);
    HOLDS(strcmp(members[1], "#bob#n2") == 0);
    OK(rota_members(client, "nobody", &members, &count));
    HOLDS(count == 0);
}

static void a_message_says_all_of_itself(rota_client *alice, rota_client *bob)
{
    const char *to[] = {"orders", "#bob#n2"};
    rota_envelope envelope = {0};
    const rota_message *message;

    envelope.to = to;
    envelope.to_count = 2;
    envelope.service = ROTA_SERVICE_SAFE;
    envelope.kind = 7;
    envelope.self_discard = true;
    OK(rota_send_envelope(alice, &envelope, "a\0b", 3, 0));
    message = next(bob, ROTA_EVENT_TYPE_MESSAGE)->message;
    HOLDS(strcmp(message->sender, "#alice#n1") == 0);
    HOLDS(message->bytes == 3 && memcmp(message->payload, "a\0b", 3) == 0);
    HOLDS(message->service == ROTA_SERVICE_SAFE && message->kind == 7 && message->self_discard);
    HOLDS(message->to_count == 2 && strcmp(message->to[0], "orders") == 0);
    HOLDS(strcmp(message->to[1], "#bob#n2") == 0);
    OK(rota_send(alice, "#bob#n2", NULL, 0));
    message = next(bob, ROTA_EVENT_TYPE_MESSAGE)->message;
    HOLDS(message->bytes == 0 && message->payload != NULL);
    HOLDS(message->service == ROTA_SERVICE_AGREED);
}

/* A loop around poll(), with gathered messages and without any call that waits. */
static void nothing_waits(rota_client *client)
{
    const char *to[] = {"#alice#n1"};
    rota_envelope envelope = {0};
    int sent = 0, received = 0;

    envelope.to = to;
    envelope.to_count = 1;
    while (received < MANY) {
        const rota_event *event;
        rota_status status = ROTA_STATUS_OK;
        struct pollfd fd = {0};

        while (sent < MANY) {
            uint32_t flags = ROTA_GATHER | ROTA_NO_WAIT;
            envelope.kind = (uint16_t)sent;
            status = rota_send_envelope(client, &envelope, &sent, sizeof sent, flags);
            if (status != ROTA_STATUS_OK)
                break;
            sent++;
        }
        HOLDS(status == ROTA_STATUS_OK || status == ROTA_STATUS_WOULD_BLOCK);
        while ((status = rota_receive(client, 0, &event)) == ROTA_STATUS_OK) {
            if (is_of_the_network(event))
                continue;
            HOLDS(event->message->kind == received);
            received++;
        }
        HOLDS(status == ROTA_STATUS_TIMED_OUT);
        fd.fd = rota_fd(client);
        fd.events = POLLIN;
        if (rota_wants_write(client))
            fd.events |= POLLOUT;
        HOLDS(received == MANY || poll(&fd, 1, PATIENCE_MS) == 1);
    }
}

static void *receive_many(void *receiver)
{
    for (int expected = 0; expected < MANY; expected++) {
        const rota_message *message = next(receiver, ROTA_EVENT_TYPE_MESSAGE)->message;
        HOLDS(message->bytes == 1000 && memcmp(message->payload, &expected, sizeof expected) == 0);
    }
    return NULL;
}

static void two_halves(const char *socket)
{
    rota_client *client = connect_as(socket, "halves", false);
    rota_client *receiver, *other;
    const rota_event *event;
    pthread_t thread;
    char payload[1000] = {0};

    OK(rota_split(client, &receiver));
    GIVES(ROTA_STATUS_WRONG_HALF, rota_split(client, &other));
    HOLDS(other == NULL);
    GIVES(ROTA_STATUS_WRONG_HALF, rota_receive(client, 0, &event));
    GIVES(ROTA_STATUS_WRONG_HALF, rota_send(receiver, "orders", "", 0));
    GIVES(ROTA_STATUS_WRONG_HALF, rota_join(receiver, "orders"));
    GIVES(ROTA_STATUS_WRONG_HALF, rota_flush(receiver));
    HOLDS(strcmp(rota_name(client), rota_name(receiver)) == 0);
    HOLDS(pthread_create(&thread, NULL, receive_many, receiver) == 0);
    /* More than the credit: it comes back while the other thread receives. */
    for (int number = 0; number < MANY; number++) {
        memcpy(payload, &number, sizeof number);
        OK(rota_send(client, "#halves#n1", payload, sizeof payload));
    }
    HOLDS(pthread_join(thread, NULL) == 0);
    OK(rota_close(client));
    GIVES(ROTA_STATUS_LOST, rota_receive(receiver, PATIENCE_MS, &event));
    OK(rota_close(receiver));
}

/* The other daemon dies: its client is told, and a signal would end this program. */
static void a_daemon_dies(rota_client *alice, rota_client *bob, pid_t pid)
{
    const rota_event *event;
    const rota_view *view;
    rota_status status = ROTA_STATUS_OK;
    bool signalled = false;

    HOLDS(kill(pid, SIGKILL) == 0);
    for (int tries = 0; status == ROTA_STATUS_OK && tries < 1000000; tries++)
        status = rota_send(bob, "orders", "lost", 4);
    GIVES(ROTA_STATUS_LOST, status);
    GIVES(ROTA_STATUS_LOST, rota_send(bob, "orders", "lost", 4));
    GIVES(ROTA_STATUS_LOST, rota_join(bob, "other"));
    while ((status = rota_receive(bob, PATIENCE_MS, &event)) == ROTA_STATUS_OK)
        continue;
    GIVES(ROTA_STATUS_LOST, status);
    GIVES(ROTA_STATUS_LOST, rota_close(bob));

    do {
        OK(rota_receive(alice, PATIENCE_MS, &event));
        if (event->event_type == ROTA_EVENT_TYPE_TRANSITIONAL) {
            HOLDS(strcmp(event->group, "orders") == 0 && event->view_id != NULL);
            signalled = true;
        }
    } while (event->event_type != ROTA_EVENT_TYPE_VIEW || event->view->member_count != 1);
    HOLDS(signalled);
    view = event->view;
    HOLDS(view->cause == ROTA_CAUSE_NETWORK && view->changed == NULL);
    HOLDS(view->member_count == 1 && strcmp(view->members[0], "#alice#n1") == 0);
    HOLDS(view->set_count == 1 && view->sets[0] == 0 && view->own == 0);
}

/* Both join, and each is told of both: alice's own view, then the two of both of them. */
static void they_meet(rota_client *alice, rota_client *bob)
{
    const rota_event *event;

    OK(rota_join(alice, "orders"));
    OK(rota_join(alice, "orders"));
    OK(rota_join(bob, "orders"));
    event = next(alice, ROTA_EVENT_TYPE_VIEW);
    HOLDS(event->view->cause == ROTA_CAUSE_JOIN && event->view->member_count == 1);
    HOLDS(strcmp(event->view->changed, "#alice#n1") == 0);
    HOLDS(strcmp(event->group, "orders") == 0 && event->message == NULL);
    event = next(alice, ROTA_EVENT_TYPE_VIEW);
    HOLDS(event->view->member_count == 2 && event->view->own == 0);
    event = next(bob, ROTA_EVENT_TYPE_VIEW);
    HOLDS(event->view->member_count == 2 && event->view->own == 1);
    HOLDS(strcmp(event->view->members[1], "#bob#n2") == 0 && event->view->sets == NULL);
}

/* One that connects again is used as any other, but has no descriptor and no halves. */
static void a_lasting_client(const char *socket)
{
    rota_options options = {0};
    rota_pauses pauses = {.first_ms = 5, .longest_ms = 100};
    rota_client *client = (rota_client *)&line_of_last, *half;
    const rota_event *event;
    const rota_group *groups;
    const char *const *members;
    size_t count;

    GIVES(ROTA_STATUS_NO_CONNECTION, rota_connect_lasting("/no/such/socket", NULL, NULL, &client));
    HOLDS(client == NULL);
    options.name = "lasting";
    options.timeout_ms = PATIENCE_MS;
    OK(rota_connect_lasting(socket, &options, &pauses, &client));
    HOLDS(strcmp(rota_name(client), "#lasting#n1") == 0 && rota_fd(client) == -1);
    HOLDS(rota_largest_payload(client) > 0 && !rota_wants_write(client));
    GIVES(ROTA_STATUS_WRONG_HALF, rota_split(client, &half));
    OK(rota_join(client, "last"));
    OK(rota_send(client, "last", "hello", 5));
    OK(rota_flush(client));
    event = next(client, ROTA_EVENT_TYPE_MESSAGE);
    HOLDS(event->message->bytes == 5 && event->gap == NULL);
    GIVES(ROTA_STATUS_TIMED_OUT, rota_receive(client, 0, &event));
    OK(rota_groups(client, &groups, &count));
    HOLDS(count >= 1);
    OK(rota_members(client, "last", &members, &count));
    HOLDS(count == 1 && strcmp(members[0], "#lasting#n1") == 0);
    OK(rota_leave(client, "last"));
    OK(rota_close(client));
}

int main(int argc, char **argv)
{
    rota_client *alice, *bob, *hasty;

    if (argc != 4)
        return 2;
    null_is_no_handle();
    wrong_options(argv[1]);
    alice = connect_as(argv[1], "alice", true);
    bob = connect_as(argv[2], "bob", true);
    wrong_names_and_sizes(alice);
    they_meet(alice, bob);
    lists(alice);
    a_message_says_all_of_itself(alice, bob);
    nothing_waits(alice);
    two_halves(argv[1]);
    a_lasting_client(argv[1]);
    OK(rota_join(alice, "other"));
    next(alice, ROTA_EVENT_TYPE_VIEW);
    OK(rota_leave(alice, "other"));
    HOLDS(strcmp(next(alice, ROTA_EVENT_TYPE_SELF_LEAVE)->group, "other") == 0);
    hasty = connect_as(argv[1], NULL, false);
    rota_free(hasty);
    a_daemon_dies(alice, bob, (pid_t)atol(argv[3]));
    OK(rota_flush(alice));
    OK(rota_close(alice));
    printf("as it should be\n");
    return 0;
}
