/* A CUDA driver of a machine with three GPUs, the last of them old: as much of libcuda.so.1 as a server asks for
 * that looks which GPUs there are and opens memory of its clients. Written after the CUDA driver API reference.
 *
 * Memory of a GPU is a file in /dev/shm, and its handle is the name of the file, filled up with zeros. Addresses are
 * numbers that only the functions here understand. A context that is kept is a memfd, so that a test can see it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_CONTEXT = 201, ALREADY_MAPPED = 208, ILLEGAL_ADDRESS = 700 };

int cuInit(unsigned flags) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (flags != 0) return INVALID_VALUE;
    return visible != NULL && *visible == 0 ? NO_DEVICE : OK;
}

int cuGetErrorString(int error, const char **text) {
    *text = error == ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "an error";
    return OK;
}

int cuDeviceGetCount(int *count) { *count = 3; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < 3 ? 0 : 101; }

int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Made-up GPU %d", device);
    return 0;
}

int cuDeviceGetPCIBusId(char *id, int length, int device) {
    snprintf(id, length, "0000:%02x:00.0", 16 * (device + 1));
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int major = device == 2 ? 5 : 9;
    if (attribute != 75 && attribute != 76) return 1;
    *value = attribute == 75 ? major : 2;
    return 0;
}

typedef unsigned long long address;
typedef struct { char name[64]; } handle;
enum { OPEN_AT_MOST = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { char name[64]; int file; } opened[OPEN_AT_MOST];
static int kept[3], visible_as[3];
static _Thread_local int depth;

int cuDevicePrimaryCtxRetain(void **context, int device) {
    pthread_mutex_lock(&lock);
    if (kept[device]++ == 0) visible_as[device] = memfd_create("made-up-context", MFD_CLOEXEC);
    pthread_mutex_unlock(&lock);
    *context = &kept[device];
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
    pthread_mutex_lock(&lock);
    if (--kept[device] == 0) close(visible_as[device]);
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuCtxPushCurrent_v2(void *context) { depth++; return context != NULL ? OK : INVALID_CONTEXT; }
int cuCtxPopCurrent_v2(void **context) { *context = kept; return depth-- > 0 ? OK : INVALID_CONTEXT; }

int cuStreamCreate(void **stream, unsigned flags) {
    if (depth == 0) return INVALID_CONTEXT;
    *stream = malloc(1);
    return flags == 1 ? OK : INVALID_VALUE;
}

int cuStreamSynchronize(void *stream) { return depth > 0 && stream != NULL ? OK : INVALID_CONTEXT; }
int cuStreamDestroy_v2(void *stream) { free(stream); return depth > 0 ? OK : INVALID_CONTEXT; }

/* Like old drivers it refuses to open a handle a second time. */
static int open_file(address *at, const handle *given) {
    char path[80];
    int free_slot = -1;
    if (given->name[0] == 0 || given->name[63] != 0 || strchr(given->name, '/') != NULL) return INVALID_VALUE;
    for (int i = OPEN_AT_MOST - 1; i >= 0; i--) {
        if (opened[i].file == 0) free_slot = i;
        else if (strcmp(opened[i].name, given->name) == 0) return ALREADY_MAPPED;
    }
    snprintf(path, sizeof path, "/dev/shm/%s", given->name);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || free_slot < 0) return INVALID_VALUE;
    strcpy(opened[free_slot].name, given->name);
    opened[free_slot].file = file;
    *at = (address)(free_slot + 1) << 40;
    return OK;
}

int cuIpcOpenMemHandle_v2(address *at, handle given, unsigned flags) {
    if (depth == 0) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    int result = flags == 1 ? open_file(at, &given) : INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return result;
}

static int file_at(address at) { return opened[(at >> 40) - 1].file; }
static off_t offset_at(address at) { return at & ((1ull << 40) - 1); }

int cuIpcCloseMemHandle(address at) {
    if (depth == 0) return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    close(file_at(at));
    opened[(at >> 40) - 1].file = 0;
    pthread_mutex_unlock(&lock);
    return OK;
}

int cuMemGetAddressRange_v2(address *base, size_t *length, address at) {
    struct stat status;
    if (depth == 0 || fstat(file_at(at), &status) != 0) return INVALID_CONTEXT;
    *base = at - offset_at(at);
    *length = status.st_size;
    return OK;
}

int cuMemcpyDtoHAsync_v2(void *to, address from, size_t length, void *stream) {
    if (depth == 0 || stream == NULL) return INVALID_CONTEXT;
    return pread(file_at(from), to, length, offset_at(from)) == (ssize_t)length ? OK : ILLEGAL_ADDRESS;
}

int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t length, void *stream) {
    struct stat status;
    if (depth == 0 || stream == NULL || fstat(file_at(to), &status) != 0) return INVALID_CONTEXT;
    if (offset_at(to) + (off_t)length > status.st_size) return ILLEGAL_ADDRESS;
    return pwrite(file_at(to), from, length, offset_at(to)) == (ssize_t)length ? OK : ILLEGAL_ADDRESS;
}
