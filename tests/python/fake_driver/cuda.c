/* A CUDA driver of a machine with three GPUs, the last of them old: as much of libcuda.so.1 as a server asks for
 * that looks which GPUs there are. Written after the CUDA driver API reference. */
#include <stdio.h>

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuGetErrorString(int error, const char **text) { (void)error; *text = "an error"; return 0; }
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
