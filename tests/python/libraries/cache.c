/* A response cache for the tests, which keeps everything in memory. Its settings say what it does; it writes its calls into the
   file of the setting `log`. */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Error Error;
typedef struct Attributes Attributes;
typedef struct Entry Entry;
typedef struct Allocator Allocator;

Error *TRITONSERVER_ErrorNew(int code, const char *message);
void TRITONSERVER_ErrorDelete(Error *error);
const char *TRITONSERVER_ErrorMessage(Error *error);
Error *TRITONSERVER_BufferAttributesNew(Attributes **attributes);
Error *TRITONSERVER_BufferAttributesDelete(Attributes *attributes);
Error *TRITONSERVER_BufferAttributesSetByteSize(Attributes *attributes, size_t size);
Error *TRITONSERVER_BufferAttributesByteSize(Attributes *attributes, size_t *size);
Error *TRITONCACHE_ApiVersion(unsigned *major, unsigned *minor);
Error *TRITONCACHE_CacheEntryBufferCount(Entry *entry, size_t *count);
Error *TRITONCACHE_CacheEntryAddBuffer(Entry *entry, void *base, Attributes *attributes);
Error *TRITONCACHE_CacheEntryGetBuffer(Entry *entry, size_t index, void **base, Attributes *attributes);
Error *TRITONCACHE_CacheEntrySetBuffer(Entry *entry, size_t index, void *base, Attributes *attributes);
Error *TRITONCACHE_Copy(Allocator *allocator, Entry *entry);

enum { INTERNAL = 1, NOT_FOUND = 2, INVALID_ARG = 3, ALREADY_EXISTS = 6 };

typedef struct Kept {
    struct Kept *next;
    char key[128];
    size_t size;
    void *bytes;
} Kept;

typedef struct Cache {
    pthread_mutex_t lock;
    Kept *kept;
    Entry *earlier;
    char does[64], log[1024], gate[1024];
} Cache;

/* Copies the value of a setting; empty if it is not given. */
static void setting(const char *config, const char *name, char *value, size_t size) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    const char *found = strstr(config, wanted);
    value[0] = 0;
    if (found == NULL) return;
    found += strlen(wanted);
    const char *end = strchr(found, '"');
    if (end == NULL || (size_t)(end - found) >= size) return;
    memcpy(value, found, end - found);
    value[end - found] = 0;
}

static void tell(Cache *cache, const char *what, const char *more) {
    FILE *file = fopen(cache->log, "a");
    if (file == NULL) return;
    fprintf(file, "%s%s%s\n", what, *more ? ": " : "", more);
    fclose(file);
}

static void tell_error(Cache *cache, const char *what, Error *error) {
    tell(cache, what, error == NULL ? "done" : TRITONSERVER_ErrorMessage(error));
    if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

static int does(Cache *cache, const char *what) { return strcmp(cache->does, what) == 0; }

static Kept *find(Cache *cache, const char *key) {
    for (Kept *kept = cache->kept; kept != NULL; kept = kept->next) {
        if (strcmp(kept->key, key) == 0) return kept;
    }
    return NULL;
}

Error *TRITONCACHE_CacheInitialize(Cache **cache, const char *config) {
    unsigned major, minor;
    TRITONCACHE_ApiVersion(&major, &minor);
    *cache = NULL;
    if (major != 0 || minor < 1) return TRITONSERVER_ErrorNew(INVALID_ARG, "the cache needs version 0.1");
    Cache *made = calloc(1, sizeof *made);
    pthread_mutex_init(&made->lock, NULL);
    setting(config, "does", made->does, sizeof made->does);
    setting(config, "log", made->log, sizeof made->log);
    setting(config, "gate", made->gate, sizeof made->gate);
    tell(made, "initialize", "");
    if (does(made, "refuse to begin")) return TRITONSERVER_ErrorNew(INVALID_ARG, "the cache was told not to begin");
    if (!does(made, "begin without a cache")) *cache = made;
    return NULL;
}

Error *TRITONCACHE_CacheFinalize(Cache *cache) {
    tell(cache, "finalize", "");
    while (cache->kept != NULL) {
        Kept *kept = cache->kept;
        cache->kept = kept->next;
        free(kept->bytes);
        free(kept);
    }
    free(cache);
    return NULL;
}

/* Adds bytes to the entry of a look-up, and has them copied. */
static Error *give(Cache *cache, Entry *entry, Allocator *allocator, void *bytes, size_t size) {
    Attributes *attributes;
    Error *error = TRITONSERVER_BufferAttributesNew(&attributes);
    if (error != NULL) return error;
    TRITONSERVER_BufferAttributesSetByteSize(attributes, size);
    error = TRITONCACHE_CacheEntryAddBuffer(entry, bytes, attributes);
    if (error == NULL && !does(cache, "copy nothing")) error = TRITONCACHE_Copy(allocator, entry);
    TRITONSERVER_BufferAttributesDelete(attributes);
    return error;
}

Error *TRITONCACHE_CacheLookup(Cache *cache, const char *key, Entry *entry, Allocator *allocator) {
    tell(cache, "look up", "");
    if (does(cache, "fail")) return TRITONSERVER_ErrorNew(INTERNAL, "the cache was told to fail");
    if (does(cache, "give garbage")) return give(cache, entry, allocator, "garbage", 7);
    if (does(cache, "hang")) close(open(cache->gate, O_RDONLY));
    pthread_mutex_lock(&cache->lock);
    Kept *kept = find(cache, key);
    Error *error = kept == NULL ? TRITONSERVER_ErrorNew(NOT_FOUND, "no such key") : give(cache, entry, allocator, kept->bytes, kept->size);
    pthread_mutex_unlock(&cache->lock);
    return error;
}

Error *TRITONCACHE_CacheInsert(Cache *cache, const char *key, Entry *entry, Allocator *allocator) {
    size_t count = 0, size = 0;
    void *base;
    Attributes *attributes;
    tell(cache, "insert", "");
    if (does(cache, "fail")) return TRITONSERVER_ErrorNew(INTERNAL, "the cache was told to fail");
    if (does(cache, "misuse entries")) {
        if (cache->earlier != NULL) tell_error(cache, "earlier entry", TRITONCACHE_CacheEntryBufferCount(cache->earlier, &count));
        tell_error(cache, "no entry", TRITONCACHE_CacheEntryBufferCount(NULL, &count));
        tell_error(cache, "no place", TRITONCACHE_CacheEntryBufferCount(entry, NULL));
        tell_error(cache, "wrong pointer", TRITONCACHE_Copy(allocator, (Entry *)cache));
        tell_error(cache, "no buffer", TRITONCACHE_Copy(allocator, entry));
        cache->earlier = entry;
    }
    TRITONCACHE_CacheEntryBufferCount(entry, &count);
    if (count != 1) return TRITONSERVER_ErrorNew(INTERNAL, "one buffer is expected");
    TRITONSERVER_BufferAttributesNew(&attributes);
    Error *error = TRITONCACHE_CacheEntryGetBuffer(entry, 0, &base, attributes);
    TRITONSERVER_BufferAttributesByteSize(attributes, &size);
    TRITONSERVER_BufferAttributesDelete(attributes);
    if (error != NULL) return error;
    pthread_mutex_lock(&cache->lock);
    if (find(cache, key) != NULL) {
        pthread_mutex_unlock(&cache->lock);
        return TRITONSERVER_ErrorNew(ALREADY_EXISTS, "the key exists");
    }
    Kept *kept = calloc(1, sizeof *kept);
    snprintf(kept->key, sizeof kept->key, "%s", key);
    kept->size = size;
    kept->bytes = malloc(size);
    error = TRITONCACHE_CacheEntrySetBuffer(entry, 0, kept->bytes, NULL);
    if (error == NULL) error = TRITONCACHE_Copy(allocator, entry);
    kept->next = cache->kept;
    cache->kept = kept;
    pthread_mutex_unlock(&cache->lock);
    return error;
}
