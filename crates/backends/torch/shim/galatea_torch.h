/* The plain C interface of the TorchScript shim: what crates/backends/torch calls.
 *
 * Functions that can fail return 0 on success; otherwise `*error` is a text to be freed with
 * galatea_torch_free_text. No C++ exception crosses this interface.
 */
#ifndef GALATEA_TORCH_H
#define GALATEA_TORCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this file; the caller refuses another one. */
#define GALATEA_TORCH_INTERFACE_VERSION 2

typedef struct galatea_torch_module galatea_torch_module;
typedef struct galatea_torch_answer galatea_torch_answer;

/* Numbers of c10::ScalarType, which PyTorch keeps stable; strings are ours. */
enum {
  GALATEA_TORCH_UINT8 = 0,
  GALATEA_TORCH_INT8 = 1,
  GALATEA_TORCH_INT16 = 2,
  GALATEA_TORCH_INT32 = 3,
  GALATEA_TORCH_INT64 = 4,
  GALATEA_TORCH_FP16 = 5,
  GALATEA_TORCH_FP32 = 6,
  GALATEA_TORCH_FP64 = 7,
  GALATEA_TORCH_BOOL = 11,
  GALATEA_TORCH_BF16 = 15,
  GALATEA_TORCH_STRINGS = 1000
};

/* Where a module lives: a number of a CUDA device, or one of these. */
enum { GALATEA_TORCH_ON_CPU = -1, GALATEA_TORCH_AS_SAVED = -2 };

/* How `forward` takes its inputs. */
enum { GALATEA_TORCH_POSITIONAL = 0, GALATEA_TORCH_DICTIONARY = 1 };

/* Switches of galatea_torch_load and galatea_torch_run. */
enum {
  GALATEA_TORCH_INFERENCE_MODE = 1,  /* else gradients are merely off */
  GALATEA_TORCH_NO_OPTIMIZATION = 2  /* graph executor optimisation off for this run */
};

/* What an argument of `forward` takes. */
enum {
  GALATEA_TORCH_TAKES_TENSOR = 0,
  GALATEA_TORCH_TAKES_STRINGS = 1,    /* List[str] */
  GALATEA_TORCH_TAKES_DICTIONARY = 2, /* Dict[str, Tensor] */
  GALATEA_TORCH_TAKES_OTHER = 3
};

/* Process-wide settings of galatea_torch_set. */
enum {
  GALATEA_TORCH_JIT_EXECUTOR = 0,
  GALATEA_TORCH_JIT_PROFILING = 1,
  GALATEA_TORCH_TENSOR_FUSER = 2,
  GALATEA_TORCH_CUDNN = 3
};

typedef struct {
  const char* name; /* key of a dictionary input; may be null otherwise */
  int32_t scalar_type;
  size_t rank;
  const int64_t* shape;
  void* data; /* row-major elements; of strings null */
  size_t string_count;
  const char* const* strings;
  const size_t* lengths;
  /* Called once with `owner` when nothing uses `data` any more: perhaps within galatea_torch_run, perhaps long
   * after the answer is freed (a module may keep what it was given), and on any thread. May be null. */
  void (*release)(void* owner);
  void* owner;
} galatea_torch_input;

typedef struct {
  const char* name; /* key of a dictionary output, else null */
  int32_t scalar_type;
  size_t rank;
  const int64_t* shape;
  const void* data; /* row-major elements that nobody else writes to */
  size_t byte_size;
  const char* const* strings; /* of GALATEA_TORCH_STRINGS; shape is then [count] */
  const size_t* lengths;
} galatea_torch_output;

int32_t galatea_torch_interface_version(void);
const char* galatea_torch_version(void);
void galatea_torch_free_text(char* text);

/* Process-wide. A count of 0 is left as it is; the second can be set once, before the first parallel work. */
int galatea_torch_set_threads(int32_t intra_op, int32_t inter_op, char** error);
int32_t galatea_torch_intra_op_threads(void);
int32_t galatea_torch_inter_op_threads(void);
void galatea_torch_set(int32_t setting, int32_t is_on);
int32_t galatea_torch_cuda_device_count(void);
/* Gives unused memory of the GPUs back to them; nothing where this libtorch cannot. */
void galatea_torch_empty_cache(void);

int galatea_torch_load(const char* path, int32_t device, int32_t switches, galatea_torch_module** module,
                       char** error);
void galatea_torch_free_module(galatea_torch_module* module);

/* Arguments of `forward` without self. */
size_t galatea_torch_argument_count(const galatea_torch_module* module);
const char* galatea_torch_argument_name(const galatea_torch_module* module, size_t index);
/* As TorchScript writes it. */
const char* galatea_torch_argument_type(const galatea_torch_module* module, size_t index);
int32_t galatea_torch_argument_takes(const galatea_torch_module* module, size_t index);
int32_t galatea_torch_argument_has_default(const galatea_torch_module* module, size_t index);
/* Whether `forward` may write to its inputs or to what the module holds. Such a module must not run in two
 * threads at a time, and its inputs must be memory that nobody else reads. Any other may. */
int32_t galatea_torch_module_writes(const galatea_torch_module* module);

int galatea_torch_run(galatea_torch_module* module, const galatea_torch_input* inputs, size_t count, int32_t form,
                      int32_t switches, galatea_torch_answer** answer, char** error);
size_t galatea_torch_output_count(const galatea_torch_answer* answer);
const galatea_torch_output* galatea_torch_output_at(const galatea_torch_answer* answer, size_t index);
void galatea_torch_free_answer(galatea_torch_answer* answer);

#ifdef __cplusplus
}
#endif
#endif
