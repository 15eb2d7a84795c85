/* The time of day, as it is somewhere else: ROTA_TEST_CLOCK is a file with the seconds to add, a long. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long *shift(void) {
    static volatile long *at;
    const char *name = getenv("ROTA_TEST_CLOCK");
    if (!at && name) {
        int file = open(name, O_RDONLY);
        void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED)
            at = page;
    }
    return at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && result == 0 && shift())
        now->tv_sec += *shift();
    return result;
}
