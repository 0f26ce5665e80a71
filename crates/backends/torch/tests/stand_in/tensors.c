/* Stands in for the part of libtorch that compiled models and this crate use (aoti_torch/c/shim.h). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *data;
  int owned;
  int32_t dtype;
  int64_t rank, sizes[8], strides[8];
} tensor;

static int live;

/* How many tensors have not been deleted. */
int stand_in_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }

static int64_t size_of(int32_t dtype) {
  static const int64_t sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2};
  return sizes[dtype];
}

static tensor *make(void *data, int owned, int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype) {
  tensor *t = calloc(1, sizeof *t);
  t->data = data;
  t->owned = owned;
  t->dtype = dtype;
  t->rank = rank;
  for (int64_t i = 0; i < rank; i++) {
    t->sizes[i] = sizes[i];
    t->strides[i] = strides[i];
  }
  __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return t;
}

static int64_t count(const tensor *t) {
  int64_t n = 1;
  for (int64_t i = 0; i < t->rank; i++) n *= t->sizes[i];
  return n;
}

int32_t aoti_torch_create_tensor_from_blob(void *data, int64_t rank, const int64_t *sizes, const int64_t *strides,
                                           int64_t offset, int32_t dtype, int32_t device, int32_t index, tensor **out) {
  *out = make((char *)data + offset * size_of(dtype), 0, rank, sizes, strides, dtype);
  return device + index;
}

int32_t aoti_torch_empty_strided(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                 int32_t device, int32_t index, tensor **out) {
  tensor *t = make(NULL, 1, rank, sizes, strides, dtype);
  t->data = calloc(count(t) + 1, size_of(dtype));
  *out = t;
  return device + index;
}

/* Only into rows. */
int32_t aoti_torch_copy_(tensor *to, tensor *from, int32_t non_blocking) {
  int64_t size = size_of(to->dtype), n = count(to);
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i, at = 0;
    for (int64_t d = from->rank - 1; d >= 0; d--) {
      at += rest % from->sizes[d] * from->strides[d];
      rest /= from->sizes[d];
    }
    memcpy(to->data + i * size, from->data + at * size, size);
  }
  return non_blocking;
}

int32_t aoti_torch_delete_tensor_object(tensor *t) {
  if (t->owned) free(t->data);
  free(t);
  __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
  return 0;
}

int32_t aoti_torch_get_data_ptr(tensor *t, void **out) { return *out = t->data, 0; }
int32_t aoti_torch_get_dim(tensor *t, int64_t *out) { return *out = t->rank, 0; }
int32_t aoti_torch_get_sizes(tensor *t, int64_t **out) { return *out = t->sizes, 0; }
int32_t aoti_torch_get_strides(tensor *t, int64_t **out) { return *out = t->strides, 0; }
int32_t aoti_torch_get_dtype(tensor *t, int32_t *out) { return *out = t->dtype, 0; }
int32_t aoti_torch_get_device_type(tensor *t, int32_t *out) { return *out = 0, (int)(t->rank < 0); }
int32_t aoti_torch_device_type_cpu(void) { return 0; }
int32_t aoti_torch_device_type_cuda(void) { return 1; }
const char *torch_exception_get_what_without_backtrace(void) { return ""; }
