/* What libnvidia-ml.so.1 would say of the GPUs of cuda.c; the second one cannot tell its power and energy.
 * Written after the NVML API reference. */
#include <stdio.h>
#include <string.h>

typedef int *nvmlDevice_t;
static int gpus[3] = {0, 1, 2};
static unsigned long long millijoules = 7000000;

struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, WRONG_VERSION = 25 };

int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int error) { return error == NOT_SUPPORTED ? "Not Supported" : "Not Found"; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
    const char *ids[3] = {"0000:10:00.0", "0000:20:00.0", "0000:30:00.0"};
    for (int i = 0; i < 3; i++)
        if (strcmp(id, ids[i]) == 0) { *device = &gpus[i]; return OK; }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    snprintf(uuid, length, "GPU-made-up-%d", *device);
    return OK;
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct utilization *rates) {
    rates->gpu = 25 * (*device + 1);
    rates->memory = 1;
    return OK;
}

int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *memory) {
    (void)device;
    *memory = (struct memory){8000000000ull, 1, 2};
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory) {
    if (memory->version != (sizeof *memory | 2u << 24)) return WRONG_VERSION;
    memory->total = 8000000000ull;
    memory->used = 1000000ull * (*device + 1);
    return OK;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts) {
    *milliwatts = 101500;
    return *device == 1 ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatts) {
    *milliwatts = 700000;
    return *device == 1 ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy) {
    if (*device == 1) return NOT_SUPPORTED;
    *energy = millijoules += 250;
    return OK;
}
