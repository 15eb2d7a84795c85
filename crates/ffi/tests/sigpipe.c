/*
 * A program that leaves SIGPIPE as it is, and whose daemon dies: sigpipe ADDRESS [CA CERTIFICATE KEY], by TLS to daemon.example. It says when it is
 * connected, and goes on when its input ends.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rota.h>

int main(int count, char **arguments)
{
    const struct timespec pause = {0, 10000000};
    rota_options options = {0};
    rota_tls tls = {0};
    rota_client *client;
    rota_status status;
    int sends;

    signal(SIGPIPE, SIG_DFL);
    if (count > 4) {
        tls.ca = arguments[2];
        tls.certificate = arguments[3];
        tls.key = arguments[4];
        tls.server_name = "daemon.example";
        options.tls = &tls;
    }
    if (rota_connect(arguments[1], &options, &client) != ROTA_STATUS_OK) {
        fprintf(stderr, "%s\n", rota_error_text());
        return 1;
    }
    puts("connected");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    /* The first write may still succeed, and the ones behind the loss are those that raise it. */
    for (sends = 0; sends < 20; sends++) {
        status = rota_send(client, "orders", "x", 1);
        if (status != ROTA_STATUS_OK && status != ROTA_STATUS_LOST) {
            fprintf(stderr, "status %d: %s\n", (int)status, rota_error_text());
            return 1;
        }
        nanosleep(&pause, NULL);
    }
    rota_free(client);
    if (status != ROTA_STATUS_LOST) {
        fprintf(stderr, "the loss was not told\n");
        return 1;
    }
    return 0;
}
