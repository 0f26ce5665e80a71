/* The part of Triton's C interface for backends that a small backend needs: version 1.19 of TRITONBACKEND, written from the
 * documented functions. A library that is compiled against it runs in this server and in Triton. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Objects of the server, which a backend knows only by their addresses. */
typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;

enum { TRITON_INVALID_ARG = 3, TRITON_UNSUPPORTED = 5 };
enum { TRITON_MEMORY_CPU = 0 };
enum { TRITON_RELEASE_ALL = 1, TRITON_RESPONSE_FINAL = 1 };

/* Errors: null is success. Whoever gets one deletes it, except one that is passed to ResponseSend. */
TRITONSERVER_Error *TRITONSERVER_ErrorNew(uint32_t code, const char *message);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor);

/* Requests: texts, inputs and buffers live until the request is released. */
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *count);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, uint32_t index, const char **name);
TRITONSERVER_Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *request, const char *name, TRITONBACKEND_Input **input);
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t flags);
TRITONSERVER_Error *TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input *input, const char **name, uint32_t *data_type, const int64_t **shape, uint32_t *dims_count,
    uint64_t *byte_size, uint32_t *buffer_count);
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input *input, uint32_t index, const void **buffer, uint64_t *byte_size, uint32_t *memory_type,
    int64_t *memory_type_id);

/* Responses: sending one gives it to the server, also with an error. */
TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *request);
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response *response, TRITONBACKEND_Output **output, const char *name, uint32_t data_type,
    const int64_t *shape, uint32_t dims_count);
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(
    TRITONBACKEND_Output *output, void **buffer, uint64_t byte_size, uint32_t *memory_type, int64_t *memory_type_id);
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, uint32_t flags, TRITONSERVER_Error *error);

/* Statistics: nanoseconds of the clock that only goes forward. */
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request, bool success, uint64_t start,
    uint64_t compute_start, uint64_t compute_end, uint64_t end);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *instance, uint64_t batch_size, uint64_t start, uint64_t compute_start,
    uint64_t compute_end, uint64_t end);

/* The functions that a backend defines. Only the second is required. */
TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t request_count);
