/* Stands in for compiled models (aoti_runtime/interface.h); KIND says which it is. */
#include <stdint.h>
#include <stdlib.h>

enum { IDENTITY, ADD_SUB, COUNTER, TRANSPOSE, FAILING };

#ifndef INPUTS
#define INPUTS 1
#endif
#ifndef OUTPUTS
#define OUTPUTS 1
#endif
#ifndef TAKES
#define TAKES ""
#endif
#ifndef RETURNS
#define RETURNS ""
#endif

typedef struct tensor tensor;
int32_t aoti_torch_create_tensor_from_blob(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t,
                                           int32_t, tensor **);
int32_t aoti_torch_empty_strided(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t, tensor **);
int32_t aoti_torch_delete_tensor_object(tensor *);
int32_t aoti_torch_get_data_ptr(tensor *, void **);
int32_t aoti_torch_get_dim(tensor *, int64_t *);
int32_t aoti_torch_get_sizes(tensor *, int64_t **);
int32_t aoti_torch_get_strides(tensor *, int64_t **);
int32_t aoti_torch_get_dtype(tensor *, int32_t *);

#ifdef NEWER
int32_t aoti_torch_of_a_newer_version(void);
int32_t newer(void) { return aoti_torch_of_a_newer_version(); }
#endif

#ifndef UNIQUE
#define UNIQUE unique_object
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* What g++ makes of inline statics: it keeps the first library that has it mapped. */
__asm__(".pushsection .data\n.globl " TEXT(UNIQUE) "\n.type " TEXT(UNIQUE) ", @gnu_unique_object\n"
        TEXT(UNIQUE) ": .long 7\n.size " TEXT(UNIQUE) ", 4\n.popsection");
extern int UNIQUE;

typedef struct {
  float state;
} container;

int32_t AOTInductorModelContainerCreateWithDevice(container **out, size_t models, const char *device, const char *folder) {
  *out = calloc(1, sizeof **out);
  return models == 0 || device[0] != 'c' || folder[0] != '/' || UNIQUE != 7;
}
int32_t AOTInductorModelContainerDelete(container *c) { return free(c), 0; }
int32_t AOTInductorModelContainerGetNumInputs(container *c, size_t *out) { return *out = INPUTS, c == NULL; }
int32_t AOTInductorModelContainerGetNumOutputs(container *c, size_t *out) { return *out = OUTPUTS, c == NULL; }
int32_t AOTInductorModelContainerGetNumConstants(container *c, size_t *out) { return *out = 2, c == NULL; }
/* A weight, and a weight or a buffer. */
int32_t AOTInductorModelContainerGetConstantType(container *c, size_t index, int32_t *out) {
  return *out = index == 1 && KIND == COUNTER ? 2 : 1, c == NULL;
}
int32_t AOTInductorModelContainerGetCallSpec(container *c, const char **takes, const char **returns) {
  return *takes = TAKES, *returns = RETURNS, c == NULL;
}
int32_t AOTInductorGetLastError(const char **out) { return *out = KIND == FAILING ? "expected: 16, but got: 3\n" : "", 0; }

static void *data(tensor *t) {
  void *p;
  aoti_torch_get_data_ptr(t, &p);
  return p;
}

static tensor *alias(tensor *t, int is_turned) {
  int64_t rank, *sizes, *strides, turned_sizes[8], turned_strides[8];
  int32_t dtype;
  tensor *out;
  aoti_torch_get_dim(t, &rank);
  aoti_torch_get_sizes(t, &sizes);
  aoti_torch_get_strides(t, &strides);
  aoti_torch_get_dtype(t, &dtype);
  for (int64_t i = 0; i < rank; i++) {
    int64_t from = is_turned ? rank - 1 - i : i;
    turned_sizes[i] = sizes[from];
    turned_strides[i] = strides[from];
  }
  aoti_torch_create_tensor_from_blob(data(t), rank, turned_sizes, turned_strides, 0, dtype, 0, 0, &out);
  return out;
}

static tensor *like(tensor *t) {
  int64_t rank, *sizes, *strides;
  int32_t dtype;
  tensor *out;
  aoti_torch_get_dim(t, &rank);
  aoti_torch_get_sizes(t, &sizes);
  aoti_torch_get_strides(t, &strides);
  aoti_torch_get_dtype(t, &dtype);
  aoti_torch_empty_strided(rank, sizes, strides, dtype, 0, 0, &out);
  return out;
}

static int64_t count(tensor *t) {
  int64_t rank, *sizes, n = 1;
  aoti_torch_get_dim(t, &rank);
  aoti_torch_get_sizes(t, &sizes);
  for (int64_t i = 0; i < rank; i++) n *= sizes[i];
  return n;
}

#define ADD_SUB_OF(type)                                                                        \
  for (int64_t i = 0; i < count(a); i++) {                                                      \
    ((type *)data(sum))[i] = (type)(((type *)data(a))[i] + ((type *)data(b))[i]);               \
    ((type *)data(difference))[i] = (type)(((type *)data(a))[i] - ((type *)data(b))[i]);        \
  }                                                                                             \
  break;

static void add_sub(tensor *a, tensor *b, tensor *sum, tensor *difference) {
  int32_t dtype;
  aoti_torch_get_dtype(a, &dtype);
  switch (dtype) {
    case 0: ADD_SUB_OF(uint8_t)
    case 1: ADD_SUB_OF(int8_t)
    case 2: ADD_SUB_OF(int16_t)
    case 3: ADD_SUB_OF(int32_t)
    case 4: ADD_SUB_OF(int64_t)
    case 6: ADD_SUB_OF(float)
    case 7: ADD_SUB_OF(double)
  }
}

/* Adds to its state, and clears its input as a model may. */
static tensor *counted(container *c, tensor *input) {
  tensor *out = like(input);
  for (int64_t i = 0; i < count(input); i++) {
    ((float *)data(out))[i] = c->state += ((float *)data(input))[i];
    ((float *)data(input))[i] = 0;
  }
  return out;
}

int32_t AOTInductorModelContainerRun(container *c, tensor **inputs, size_t n, tensor **outputs, size_t m, void *stream,
                                     void *executor) {
  if (n != INPUTS || m != OUTPUTS || stream != NULL || executor != NULL || KIND == FAILING) return 1;
  if (KIND == IDENTITY) outputs[0] = alias(inputs[0], 0);
  if (KIND == TRANSPOSE) outputs[0] = alias(inputs[0], 1);
  if (KIND == COUNTER) outputs[0] = counted(c, inputs[0]);
  if (KIND == ADD_SUB) {
    outputs[0] = like(inputs[0]);
    outputs[OUTPUTS - 1] = like(inputs[0]);
    add_sub(inputs[0], inputs[INPUTS - 1], outputs[0], outputs[OUTPUTS - 1]);
  }
  for (size_t i = 0; i < n; i++) aoti_torch_delete_tensor_object(inputs[i]);
  return 0;
}
