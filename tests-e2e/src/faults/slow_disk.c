// Delays what PostgreSQL writes and syncs, while the file SLOW_DISK exists. It holds two numbers: the milliseconds of
// a sync, and of a write. A call also ends when the file is removed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static const char *control;

__attribute__((constructor)) static void find_real_calls(void) {
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_pwritev = dlsym(RTLD_NEXT, "pwritev");
    // PostgreSQL overwrites its environment to show its status in `ps`.
    const char *path = getenv("SLOW_DISK");
    control = path ? strdup(path) : NULL;
}

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void delay(int is_sync) {
    int saved = errno;
    long begin = milliseconds();
    for (;;) {
        long sync = 0, write = 0;
        FILE *file = control ? fopen(control, "re") : NULL;
        if (!file)
            break;
        if (fscanf(file, "%ld %ld", &sync, &write) != 2)
            sync = write = 0;
        fclose(file);
        long left = (is_sync ? sync : write) - (milliseconds() - begin);
        if (left <= 0)
            break;
        struct timespec pause = {0, (left < 10 ? left : 10) * 1000000};
        nanosleep(&pause, NULL);
    }
    errno = saved;
}

int fsync(int fd) {
    delay(1);
    return real_fsync(fd);
}

int fdatasync(int fd) {
    delay(1);
    return real_fdatasync(fd);
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) {
    delay(0);
    return real_pwrite(fd, buffer, size, offset);
}

ssize_t pwritev(int fd, const struct iovec *buffers, int count, off_t offset) {
    delay(0);
    return real_pwritev(fd, buffers, count, offset);
}
