/* Reads the hardware state file of the node that the library was loaded on. Part of nvml.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15, LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999
};
enum { MOST_DEVICES = 64, MOST_MIG = 7, STATE_BYTES = 262144, XID_EVENT = 8 };

typedef struct { int index, mig; } Device;
typedef struct { unsigned long long mask[MOST_DEVICES]; long offset; } EventSet;
typedef struct { char *text; } State;

static Device devices[MOST_DEVICES][MOST_MIG + 1];
static int started;

static void state_path(char *path, const char *name)
{
    const char *given = getenv("HOSTLER_SANDBOX_STATE");
    Dl_info info;
    if (given && *given) {
        snprintf(path, PATH_MAX, "%s", given);
    } else if (dladdr((void *)state_path, &info) && info.dli_fname) {
        snprintf(path, PATH_MAX, "%s", info.dli_fname);
        char *end = strstr(path, "/root/usr/lib/");
        for (char *next = end; next && (next = strstr(next + 1, "/root/usr/lib/"));) end = next;
        if (end) snprintf(end, PATH_MAX - (end - path), "/hardware.state");
    }
    char *slash = strrchr(path, '/');
    if (name && slash) snprintf(slash + 1, PATH_MAX - (slash + 1 - path), "%s", name);
}

static State load(void)
{
    State state = { calloc(1, STATE_BYTES) };
    char path[PATH_MAX] = "";
    state_path(path, NULL);
    FILE *file = fopen(path, "r");
    if (file && state.text) {
        state.text[0] = '\n';
        size_t got = fread(state.text + 1, 1, STATE_BYTES - 2, file);
        state.text[got + 1] = '\0';
    }
    if (file) fclose(file);
    return state;
}

/* Copies a value; returns 0 when the key is missing or its value is empty: the reading is not supported. */
static int text_of(State state, const char *key, char *value, size_t size)
{
    char wanted[160];
    snprintf(wanted, sizeof wanted, "\n%s=", key);
    const char *found = state.text ? strstr(state.text, wanted) : NULL;
    value[0] = '\0';
    if (!found) return 0;
    found += strlen(wanted);
    size_t length = strcspn(found, "\n");
    if (length >= size) length = size - 1;
    memcpy(value, found, length);
    value[length] = '\0';
    return length > 0;
}

static int top_text(const char *key, char *value, size_t size)
{
    State state = load();
    int found = text_of(state, key, value, size);
    free(state.text);
    return found;
}

/* Reads one key of a device into text. */
static int device_text(const Device *device, const char *key, char *value, size_t size)
{
    char full[128];
    if (!started) return UNINITIALIZED;
    if (!device || device->index < 0 || device->index >= MOST_DEVICES) return INVALID_ARGUMENT;
    State state = load();
    snprintf(full, sizeof full, "gpu.%d.lost", device->index);
    int is_lost = text_of(state, full, value, size) && value[0] == '1';
    snprintf(full, sizeof full, "gpu.%d.%s", device->index, key);
    int found = text_of(state, full, value, size);
    free(state.text);
    return is_lost ? GPU_IS_LOST : found ? SUCCESS : NOT_SUPPORTED;
}

static int device_number(const Device *device, const char *key, double *number)
{
    char value[64];
    int result = device_text(device, key, value, sizeof value);
    *number = result == SUCCESS ? atof(value) : 0;
    return result;
}

static int device_uint(const Device *device, const char *key, unsigned *target)
{
    double number;
    int result = device_number(device, key, &number);
    if (!target) return INVALID_ARGUMENT;
    if (result == SUCCESS) *target = (unsigned)number;
    return result;
}

static int ready(void)
{
    char library[64], module[64], hangs[8];
    while (top_text("driver.hangs", hangs, sizeof hangs) && hangs[0] == '1') nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    top_text("lib.version", library, sizeof library);
    if (!top_text("module.loaded", module, sizeof module)) return DRIVER_NOT_LOADED;
    return strcmp(library, module) ? LIB_RM_VERSION_MISMATCH : SUCCESS;
}

const char *nvmlErrorString(int code)
{
    switch (code) {
    case SUCCESS: return "The operation was successful";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case TIMEOUT: return "Timeout";
    case GPU_IS_LOST: return "GPU is lost";
    case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}
