// Takes one duty of durability away from a program, to see whether the test of power cuts notices.
//
// Preloaded, it stands between the program and the C library's calls for syncing and naming.
// POWER_CUT_MUTANT names what is left out; each time it is, one byte goes to the file POWER_CUT_SKIPPED.
//
//     no-fdatasync        bytes of staging files and temporary downloads
//     no-directory-sync   names
//     no-database-sync    rows
//     no-promotion-sync   names and rows after a file got its final name. Names alone are not enough to
//                         show: ext4 has one journal, and a row that makes its file longer commits
//                         all of it, with the name
//     late                bytes reach the disk, but only after the call has returned

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int (*sync_call)(int);
typedef int (*name_call)(const char *, const char *);

enum kind { OTHER, DIRECTORY, BYTES, DATABASE };

enum { DELAY_MICROSECONDS = 300 * 1000 };

static atomic_bool has_promoted;

static enum kind kind_of(int descriptor) {
    struct stat status;
    char link[64], path[4096];
    if (fstat(descriptor, &status) != 0) return OTHER;
    if (S_ISDIR(status.st_mode)) return DIRECTORY;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return OTHER;
    path[length] = 0;
    // Databases first: their journals lie in no directory of their own.
    if (strstr(path, ".sqlite")) return DATABASE;
    if (strstr(path, "/staging/") || strstr(path, ".kedge-part")) return BYTES;
    return OTHER;
}

static int is_mutant(const char *name) {
    const char *mutant = getenv("POWER_CUT_MUTANT");
    return mutant && strcmp(mutant, name) == 0;
}

static void note_skipped(void) {
    const char *path = getenv("POWER_CUT_SKIPPED");
    if (!path) return;
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (descriptor < 0) abort();
    if (write(descriptor, "x", 1) != 1) abort();
    close(descriptor);
}

static void *sync_late(void *argument) {
    int descriptor = (int)(intptr_t)argument;
    sync_call real = (sync_call)dlsym(RTLD_NEXT, "fdatasync");
    usleep(DELAY_MICROSECONDS);
    real(descriptor);
    close(descriptor);
    return NULL;
}

// The descriptor is doubled: the program may close its own before the time has come.
static void put_off(int descriptor) {
    int twin = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    pthread_t thread;
    if (twin < 0 || pthread_create(&thread, NULL, sync_late, (void *)(intptr_t)twin) != 0) abort();
    pthread_detach(thread);
}

static int leaves_out(int descriptor) {
    enum kind kind = kind_of(descriptor);
    if (kind == BYTES && is_mutant("late")) {
        put_off(descriptor);
        return 1;
    }
    return (kind == BYTES && is_mutant("no-fdatasync"))
        || (kind == DIRECTORY && is_mutant("no-directory-sync"))
        || (kind == DATABASE && is_mutant("no-database-sync"))
        || ((kind == DIRECTORY || kind == DATABASE) && has_promoted && is_mutant("no-promotion-sync"));
}

static int sync_unless_left_out(int descriptor, const char *name) {
    if (leaves_out(descriptor)) {
        note_skipped();
        return 0;
    }
    sync_call real = (sync_call)dlsym(RTLD_NEXT, name);
    if (!real) abort();
    return real(descriptor);
}

int fdatasync(int descriptor) { return sync_unless_left_out(descriptor, "fdatasync"); }

int fsync(int descriptor) { return sync_unless_left_out(descriptor, "fsync"); }

static int name_and_remember(const char *old, const char *new, const char *name) {
    name_call real = (name_call)dlsym(RTLD_NEXT, name);
    if (!real) abort();
    has_promoted = 1;
    return real(old, new);
}

int rename(const char *old, const char *new) { return name_and_remember(old, new, "rename"); }

// A download gets its name this way, so that it never replaces another file.
int link(const char *old, const char *new) { return name_and_remember(old, new, "link"); }
