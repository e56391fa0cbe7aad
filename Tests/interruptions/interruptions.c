// Lets a program's calls on files be interrupted by signals and come up short, as the system may.
//
// Preloaded, it stands between the program and the C library. Of three reads or writes the first is
// interrupted (EINTR) and the second does half; every other call of the rest is interrupted. When the
// program ends, the number of calls that were treated so goes to the file INTERRUPTIONS_COUNT.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_uint turn, changed;

static int is_interrupted(unsigned every) {
    if (atomic_fetch_add(&turn, 1) % every != 0) return 0;
    atomic_fetch_add(&changed, 1);
    errno = EINTR;
    return 1;
}

static size_t shortened(size_t count) {
    if (count < 2 || atomic_load(&turn) % 3 != 1) return count;
    atomic_fetch_add(&changed, 1);
    return count / 2;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    if (is_interrupted(3)) return -1;
    return real(descriptor, bytes, shortened(count), offset);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
    if (is_interrupted(3)) return -1;
    return real(descriptor, bytes, shortened(count), offset);
}

int ftruncate(int descriptor, off_t size) {
    int (*real)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate");
    return is_interrupted(2) ? -1 : real(descriptor, size);
}

int rename(const char *source, const char *target) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return is_interrupted(2) ? -1 : real(source, target);
}

int link(const char *source, const char *target) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    return is_interrupted(2) ? -1 : real(source, target);
}

int flock(int descriptor, int operation) {
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    return is_interrupted(2) ? -1 : real(descriptor, operation);
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("INTERRUPTIONS_COUNT");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%u\n", atomic_load(&changed));
    fclose(file);
}

// Kedge ends without the C library's farewell.
_Noreturn void _exit(int status) {
    void (*real)(int) = dlsym(RTLD_NEXT, "_exit");
    report();
    real(status);
    abort();
}
