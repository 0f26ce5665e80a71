/* A backend in C: output OUTPUTx of a model is its input INPUTx.
 *
 *     mkdir -p backends/mirror
 *     cc -shared -fPIC -O2 -o backends/mirror/libtriton_mirror.so mirror.c
 *     galatea serve models --backend-directory=backends
 */
#include "triton_backend.h"

#include <string.h>
#include <time.h>

/* Ends a function with the error of a call, if it has one. */
#define TRY(call)                                     \
  do {                                                \
    TRITONSERVER_Error *error_of_call = (call);       \
    if (error_of_call != NULL) return error_of_call;  \
  } while (0)

enum { MOST_NAME = 256 };

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Copies one input, which may lie in several buffers, to the output of the response. */
static TRITONSERVER_Error *copy(TRITONBACKEND_Input *input, TRITONBACKEND_Response *response, const char *output_name) {
  uint32_t data_type, dims_count, buffer_count;
  const int64_t *shape;
  uint64_t byte_size;
  TRY(TRITONBACKEND_InputProperties(input, NULL, &data_type, &shape, &dims_count, &byte_size, &buffer_count));
  TRITONBACKEND_Output *output;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, output_name, data_type, shape, dims_count));
  void *to;
  uint32_t memory_type = TRITON_MEMORY_CPU;
  int64_t memory_type_id = 0;
  TRY(TRITONBACKEND_OutputBuffer(output, &to, byte_size, &memory_type, &memory_type_id));
  if (memory_type != TRITON_MEMORY_CPU)
    return TRITONSERVER_ErrorNew(TRITON_UNSUPPORTED, "mirror writes to the memory of the host only");
  for (uint32_t index = 0; index < buffer_count; ++index) {
    const void *from;
    uint64_t size;
    TRY(TRITONBACKEND_InputBuffer(input, index, &from, &size, &memory_type, &memory_type_id));
    if (memory_type != TRITON_MEMORY_CPU)
      return TRITONSERVER_ErrorNew(TRITON_UNSUPPORTED, "mirror reads from the memory of the host only");
    memcpy(to, from, size);
    to = (char *)to + size;
  }
  return NULL;
}

/* Fills the response with the outputs that the request asks for. */
static TRITONSERVER_Error *mirror(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response) {
  uint32_t count;
  TRY(TRITONBACKEND_RequestOutputCount(request, &count));
  for (uint32_t index = 0; index < count; ++index) {
    const char *output_name;
    char input_name[MOST_NAME] = "INPUT";
    TRY(TRITONBACKEND_RequestOutputName(request, index, &output_name));
    if (strncmp(output_name, "OUTPUT", 6) != 0 || strlen(output_name) >= MOST_NAME)
      return TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, "outputs of mirror are called OUTPUT0, OUTPUT1 and so on");
    strcpy(input_name + 5, output_name + 6);
    TRITONBACKEND_Input *input;
    TRY(TRITONBACKEND_RequestInput(request, input_name, &input));
    TRY(copy(input, response, output_name));
  }
  return NULL;
}

/* Deletes the error of a call that must not fail. */
static void expect(TRITONSERVER_Error *error) {
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
  (void)backend;
  uint32_t major, minor;
  TRY(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != 1 || minor < 10)
    return TRITONSERVER_ErrorNew(TRITON_UNSUPPORTED, "mirror needs version 1.10 of the backend interface");
  return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t request_count) {
  uint64_t start = now();
  for (uint32_t index = 0; index < request_count; ++index) {
    TRITONBACKEND_Request *request = requests[index];
    TRITONBACKEND_Response *response;
    uint64_t begin = now();
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    if (error == NULL) {
      error = mirror(request, response);
      expect(TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_FINAL, error));
    }
    uint64_t end = now();
    expect(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, error == NULL, begin, begin, end, end));
    expect(error);
    expect(TRITONBACKEND_RequestRelease(request, TRITON_RELEASE_ALL));
  }
  uint64_t end = now();
  expect(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, request_count, start, start, end, end));
  return NULL;
}
