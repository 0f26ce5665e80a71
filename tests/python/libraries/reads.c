/* A backend that answers each request with an error: the values that it reads from a request of its own, and from it. It prefers
   instances on the second GPU, and three on the CPU. */
#include "triton_backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef TRITONSERVER_Error *Result;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct Attribute Attribute;
typedef struct Server Server;
typedef struct Call Call;

Result TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(Attribute *, uint32_t, uint64_t, const uint64_t *, uint64_t);
Result TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *, uint64_t *);
Result TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *, const char **);
Result TRITONBACKEND_ModelServer(TRITONBACKEND_Model *, Server **);
Result TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Model **);
Result TRITONSERVER_InferenceRequestNew(Call **, Server *, const char *, int64_t);
Result TRITONSERVER_InferenceRequestDelete(Call *);
Result TRITONSERVER_InferenceRequestCorrelationId(Call *, uint64_t *);
Result TRITONSERVER_InferenceRequestCorrelationIdString(Call *, const char **);
Result TRITONSERVER_InferenceRequestSetCorrelationId(Call *, uint64_t);
Result TRITONSERVER_InferenceRequestSetCorrelationIdString(Call *, const char *);
Result TRITONSERVER_InferenceRequestTimeoutMicroseconds(Call *, uint64_t *);
Result TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(Call *, uint64_t);
const char *TRITONSERVER_ErrorMessage(Result);

enum { CPU = 1, GPU = 2 };
static char said[4000];

Result TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend, Attribute *attributes) {
  (void)backend;
  const uint64_t second = 1;
  Result error = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, GPU, 1, &second, 1);
  return error ? error : TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, CPU, 3, &second, 1);
}

/* Adds a value or the error in its place. */
static void say(Result error, const char *name, const char *value) {
  size_t used = strlen(said);
  snprintf(said + used, sizeof said - used, "%s %s; ", name, error ? TRITONSERVER_ErrorMessage(error) : value);
  if (error) TRITONSERVER_ErrorDelete(error);
}

static void say_number(Result error, const char *name, uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64, number);
  say(error, name, text);
}

static void read_all(Call *call) {
  uint64_t number = 77;
  const char *text = "untouched";
  Result error = TRITONSERVER_InferenceRequestCorrelationId(call, &number);
  say_number(error, "id", number);
  error = TRITONSERVER_InferenceRequestCorrelationIdString(call, &text);
  say(error, "text", text);
  error = TRITONSERVER_InferenceRequestTimeoutMicroseconds(call, &number);
  say_number(error, "timeout", number);
}

Result TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count) {
  TRITONBACKEND_Model *model;
  Server *server;
  Call *call;
  said[0] = 0;
  say(TRITONBACKEND_ModelInstanceModel(instance, &model), "model", "found");
  say(TRITONBACKEND_ModelServer(model, &server), "server", "found");
  say(TRITONSERVER_InferenceRequestNew(&call, server, "m", -1), "request", "made");
  read_all(call);
  say(TRITONSERVER_InferenceRequestSetCorrelationId(call, 5), "set id", "5");
  say(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(call, 123456), "set timeout", "123456");
  read_all(call);
  say(TRITONSERVER_InferenceRequestSetCorrelationIdString(call, "word"), "set id", "word");
  read_all(call);
  TRITONSERVER_InferenceRequestDelete(call);
  uint64_t number = 77;
  const char *text = "untouched";
  Result of_request = TRITONBACKEND_RequestCorrelationId(requests[0], &number);
  say_number(of_request, "id of the request", number);
  of_request = TRITONBACKEND_RequestCorrelationIdString(requests[0], &text);
  say(of_request, "text of the request", text);
  for (uint32_t index = 0; index < count; ++index) {
    TRITONBACKEND_Response *response;
    Result error = TRITONBACKEND_ResponseNew(&response, requests[index]);
    if (error) return error;
    error = TRITONSERVER_ErrorNew(TRITON_INVALID_ARG, said);
    TRITONBACKEND_ResponseSend(response, TRITON_RESPONSE_FINAL, error);
    TRITONSERVER_ErrorDelete(error);
    TRITONBACKEND_RequestRelease(requests[index], TRITON_RELEASE_ALL);
  }
  return 0;
}
