// TorchScript behind a plain C interface (galatea_torch.h). Compiled against the libtorch it will be opened with;
// works from 1.13 on.

#include "galatea_torch.h"

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <torch/cuda.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>
#include <torch/version.h>
#if __has_include(<c10/core/CachingDeviceAllocator.h>)
#include <c10/core/CachingDeviceAllocator.h>
#define GALATEA_HAS_DEVICE_ALLOCATOR 1
#endif

#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Argument {
  std::string name;
  std::string type;
  int32_t takes;
  bool has_default;
};

char* text(const char* message) {
  const size_t size = std::strlen(message) + 1;
  char* copy = static_cast<char*>(std::malloc(size));
  if (copy != nullptr) std::memcpy(copy, message, size);
  return copy;
}

// c10::Error carries a C++ backtrace behind its message; users need the message alone.
template <typename Work>
int guarded(char** error, Work work) noexcept {
  try {
    work();
    return 0;
  } catch (const c10::Error& failure) {
    *error = text(failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    *error = text(failure.what());
  } catch (...) {
    *error = text("an exception that is not derived from std::exception");
  }
  return 1;
}

}  // namespace

struct galatea_torch_module {
  torch::jit::Module module;
  std::optional<torch::Device> device;  // none: as saved
  std::vector<Argument> arguments;
  bool writes = true;
};

struct galatea_torch_answer {
  // What an output's pointers lead into: each on its own, so that nothing moves when another is added.
  struct Part {
    std::string name;
    bool has_name = false;
    torch::Tensor tensor;
    std::vector<int64_t> shape;
    std::vector<std::string> texts;
    std::vector<const char*> pointers;
    std::vector<size_t> lengths;
  };
  std::vector<std::unique_ptr<Part>> parts;
  std::vector<galatea_torch_output> outputs;
};

namespace {

using Part = galatea_torch_answer::Part;

std::optional<torch::Device> device_of(int32_t device) {
  if (device == GALATEA_TORCH_AS_SAVED) return std::nullopt;
  if (device < 0) return torch::Device(torch::kCPU);
  return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(device));
}

// --- What a module takes, and whether it writes -------------------------------------------------------------

int32_t taken_by(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType) return GALATEA_TORCH_TAKES_TENSOR;
  if (auto optional = type->cast<c10::OptionalType>()) return taken_by(optional->getElementType());
  if (auto list = type->cast<c10::ListType>()) {
    const bool of_strings = list->getElementType()->kind() == c10::TypeKind::StringType;
    return of_strings ? GALATEA_TORCH_TAKES_STRINGS : GALATEA_TORCH_TAKES_OTHER;
  }
  if (auto dictionary = type->cast<c10::DictType>()) {
    const bool fits = dictionary->getKeyType()->kind() == c10::TypeKind::StringType &&
                      dictionary->getValueType()->kind() == c10::TypeKind::TensorType;
    return fits ? GALATEA_TORCH_TAKES_DICTIONARY : GALATEA_TORCH_TAKES_OTHER;
  }
  return GALATEA_TORCH_TAKES_OTHER;
}

std::vector<Argument> arguments_of(const torch::jit::Module& module) {
  if (!module.find_method("forward")) throw std::invalid_argument("the module has no method 'forward'");
  std::vector<Argument> found;
  const auto& declared = module.get_method("forward").function().getSchema().arguments();
  for (size_t i = 1; i < declared.size(); i++) {  // the first is self
    const auto& argument = declared[i];
    found.push_back({argument.name(), argument.type()->str(), taken_by(argument.type()),
                     argument.default_value().has_value()});
  }
  return found;
}

// Modules are loaded for evaluation, so what they do only in training does not count.
void assume_evaluation(torch::jit::Graph& graph, torch::jit::Block* block) {
  for (torch::jit::Node* node : block->nodes()) {
    for (torch::jit::Block* inner : node->blocks()) assume_evaluation(graph, inner);
    if (node->kind() == c10::prim::GetAttr && node->s(c10::attr::name) == "training") {
      torch::jit::WithInsertPoint here(node);
      node->output()->replaceAllUsesWith(graph.insertConstant(false));
    }
  }
}

// What was there before the call: the inputs, and what is read from the module.
void find_givens(torch::jit::Block* block, std::vector<torch::jit::Value*>& givens) {
  for (torch::jit::Node* node : block->nodes()) {
    if (node->kind() == c10::prim::GetAttr) givens.push_back(node->output());
    for (torch::jit::Block* inner : node->blocks()) find_givens(inner, givens);
  }
}

bool node_writes(const torch::jit::AliasDb& aliases, const std::vector<torch::jit::Value*>& givens,
                 torch::jit::Node* node) {
  const auto kind = node->kind();
  // What is left of calls after inlining may do anything.
  if (kind == c10::prim::SetAttr || kind == c10::prim::CallMethod || kind == c10::prim::CallFunction) return true;
  if (node->hasAttribute(c10::attr::Subgraph)) return true;
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr || !schema->is_mutable()) return false;
  const auto& declared = schema->arguments();
  for (size_t i = 0; i < node->inputs().size() && i < declared.size(); i++) {
    const auto* alias = declared[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    for (torch::jit::Value* given : givens) {
      if (aliases.mayContainAlias(node->input(i), given)) return true;
    }
  }
  return false;
}

bool block_writes(const torch::jit::AliasDb& aliases, const std::vector<torch::jit::Value*>& givens,
                  torch::jit::Block* block) {
  for (torch::jit::Node* node : block->nodes()) {
    if (node_writes(aliases, givens, node)) return true;
    for (torch::jit::Block* inner : node->blocks()) {
      if (block_writes(aliases, givens, inner)) return true;
    }
  }
  return false;
}

bool module_writes(const torch::jit::Module& module) {
  auto graph = module.get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  assume_evaluation(*graph, graph->block());
  torch::jit::ConstantPropagation(graph);
  torch::jit::EliminateDeadCode(graph);
  std::vector<torch::jit::Value*> givens = graph->inputs().vec();
  find_givens(graph->block(), givens);
  const torch::jit::AliasDb aliases(graph);
  return block_writes(aliases, givens, graph->block());
}

// --- Inputs -----------------------------------------------------------------------------------------------------

// Lets go of the caller's memory when the last tensor over it goes.
class Lent {
 public:
  explicit Lent(const galatea_torch_input& input) : release_(input.release), owner_(input.owner) {}
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() {
    if (release_ != nullptr) release_(owner_);
  }

 private:
  void (*release_)(void*);
  void* owner_;
};

c10::IValue strings_of(const galatea_torch_input& input) {
  c10::List<std::string> list;
  list.reserve(input.string_count);
  for (size_t i = 0; i < input.string_count; i++) list.push_back(std::string(input.strings[i], input.lengths[i]));
  return list;
}

torch::Tensor tensor_of(const galatea_torch_input& input, const std::shared_ptr<Lent>& lent) {
  const c10::IntArrayRef shape(input.shape, input.rank);
  const auto options = torch::TensorOptions().dtype(static_cast<c10::ScalarType>(input.scalar_type));
  for (const int64_t dimension : shape) {
    if (dimension == 0) return torch::empty(shape, options);  // nothing to lie over
  }
  return torch::from_blob(input.data, shape, [lent](void*) {}, options);
}

c10::IValue value_of(const galatea_torch_input& input, const std::shared_ptr<Lent>& lent,
                     const std::optional<torch::Device>& device) {
  if (input.scalar_type == GALATEA_TORCH_STRINGS) return strings_of(input);
  torch::Tensor tensor = tensor_of(input, lent);
  return device && !device->is_cpu() ? tensor.to(*device) : tensor;
}

std::vector<c10::IValue> call_values(const galatea_torch_module& module, const galatea_torch_input* inputs,
                                     const std::vector<std::shared_ptr<Lent>>& lent, int32_t form) {
  std::vector<c10::IValue> values;
  values.reserve(lent.size() + 1);  // forward puts the module before them
  if (form == GALATEA_TORCH_DICTIONARY) {
    c10::Dict<std::string, torch::Tensor> dictionary;
    for (size_t i = 0; i < lent.size(); i++) {
      if (inputs[i].scalar_type == GALATEA_TORCH_STRINGS) {
        throw std::invalid_argument("a dictionary input takes tensors, not strings");
      }
      dictionary.insert(inputs[i].name, value_of(inputs[i], lent[i], module.device).toTensor());
    }
    values.emplace_back(std::move(dictionary));
  } else {
    for (size_t i = 0; i < lent.size(); i++) values.push_back(value_of(inputs[i], lent[i], module.device));
  }
  return values;
}

// --- Outputs ----------------------------------------------------------------------------------------------------

std::vector<std::string> texts_of(const c10::IValue& value) {
  std::vector<std::string> texts;
  for (const c10::IValue& element : value.toList()) {
    if (!element.isString()) {
      throw std::invalid_argument("output must be of type Tensor or List[str], received " + value.type()->str());
    }
    texts.push_back(element.toStringRef());
  }
  return texts;
}

void add_value(galatea_torch_answer& answer, const c10::IValue& value, const std::string* name) {
  auto part = std::make_unique<Part>();
  if (name != nullptr) {
    part->name = *name;
    part->has_name = true;
  }
  if (value.isTensor()) {
    part->tensor = value.toTensor();
    if (!part->tensor.defined()) throw std::invalid_argument("an output is a tensor without a value");
  } else if (value.isList() && !value.isTensorList()) {
    part->texts = texts_of(value);
  } else {
    throw std::invalid_argument(
        "output must be of type Tensor, List[str] or Tuple containing one of these two types, received " +
        value.type()->str());
  }
  answer.parts.push_back(std::move(part));
}

void add_dictionary(galatea_torch_answer& answer, const c10::IValue& value) {
  for (const auto& entry : value.toGenericDict()) {
    if (!entry.key().isString()) {
      throw std::invalid_argument("an output dictionary must have texts as keys, received " + value.type()->str());
    }
    add_value(answer, entry.value(), &entry.key().toStringRef());
  }
}

void unpack(galatea_torch_answer& answer, const c10::IValue& value) {
  if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) add_value(answer, element, nullptr);
  } else if (value.isGenericDict()) {
    add_dictionary(answer, value);
  } else if (value.isTensorList()) {
    for (const torch::Tensor& element : value.toTensorVector()) add_value(answer, element, nullptr);
  } else {
    add_value(answer, value, nullptr);
  }
}

// A dense tensor in main memory that nobody else holds. The module may go on writing to one that it keeps.
torch::Tensor settled(torch::Tensor tensor) {
  if (tensor.layout() != torch::kStrided) tensor = tensor.to_dense();
  const bool is_shared = tensor.use_count() > 1 || tensor.storage().use_count() > 1;
  if (!tensor.device().is_cpu()) return tensor.cpu().contiguous();
  if (is_shared) return tensor.clone(at::MemoryFormat::Contiguous);
  return tensor.contiguous();
}

void settle_tensor(Part& part, galatea_torch_output& output) {
  part.tensor = settled(std::move(part.tensor));
  part.shape = part.tensor.sizes().vec();
  output.scalar_type = static_cast<int32_t>(part.tensor.scalar_type());
  output.data = part.tensor.data_ptr();
  output.byte_size = static_cast<size_t>(part.tensor.nbytes());
}

void settle_texts(Part& part, galatea_torch_output& output) {
  for (const std::string& element : part.texts) {
    part.pointers.push_back(element.data());
    part.lengths.push_back(element.size());
  }
  part.shape = {static_cast<int64_t>(part.texts.size())};
  output.scalar_type = GALATEA_TORCH_STRINGS;
  output.strings = part.pointers.data();
  output.lengths = part.lengths.data();
}

void settle(galatea_torch_answer& answer) {
  answer.outputs.reserve(answer.parts.size());
  for (const auto& part : answer.parts) {
    galatea_torch_output output{};
    if (part->tensor.defined()) {
      settle_tensor(*part, output);
    } else {
      settle_texts(*part, output);
    }
    output.name = part->has_name ? part->name.c_str() : nullptr;
    output.rank = part->shape.size();
    output.shape = part->shape.data();
    answer.outputs.push_back(output);
  }
}

// What ran before `settle`: by then nothing but the answer and the module holds the outputs.
std::unique_ptr<galatea_torch_answer> computed(galatea_torch_module& module, const galatea_torch_input* inputs,
                                               std::vector<std::shared_ptr<Lent>> lent, int32_t form) {
  std::vector<c10::IValue> values = call_values(module, inputs, lent, form);
  lent.clear();
  auto answer = std::make_unique<galatea_torch_answer>();
  unpack(*answer, module.module.forward(std::move(values)));
  return answer;
}

}  // namespace

extern "C" {

int32_t galatea_torch_interface_version(void) { return GALATEA_TORCH_INTERFACE_VERSION; }
const char* galatea_torch_version(void) { return TORCH_VERSION; }
void galatea_torch_free_text(char* text) { std::free(text); }

int galatea_torch_set_threads(int32_t intra_op, int32_t inter_op, char** error) {
  return guarded(error, [&] {
    if (intra_op > 0) at::set_num_threads(intra_op);
    if (inter_op > 0) at::set_num_interop_threads(inter_op);
  });
}

int32_t galatea_torch_intra_op_threads(void) { return at::get_num_threads(); }
int32_t galatea_torch_inter_op_threads(void) { return static_cast<int32_t>(at::get_num_interop_threads()); }

void galatea_torch_set(int32_t setting, int32_t is_on) {
  switch (setting) {
    case GALATEA_TORCH_JIT_EXECUTOR:
      torch::jit::getExecutorMode() = is_on != 0;
      break;
    case GALATEA_TORCH_JIT_PROFILING:
      torch::jit::getProfilingMode() = is_on != 0;
      break;
    case GALATEA_TORCH_TENSOR_FUSER:
      torch::jit::setTensorExprFuserEnabled(is_on != 0);
      break;
    case GALATEA_TORCH_CUDNN:
      at::globalContext().setUserEnabledCuDNN(is_on != 0);
      break;
    default:
      break;
  }
}

int32_t galatea_torch_cuda_device_count(void) {
  try {
    return static_cast<int32_t>(torch::cuda::device_count());
  } catch (...) {
    return 0;
  }
}

void galatea_torch_empty_cache(void) {
#ifdef GALATEA_HAS_DEVICE_ALLOCATOR
  try {
    if (auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(c10::kCUDA))) allocator->emptyCache();
  } catch (...) {
    // There is no such device: nothing to empty.
  }
#endif
}

int galatea_torch_load(const char* path, int32_t device, int32_t switches, galatea_torch_module** module,
                       char** error) {
  return guarded(error, [&] {
    c10::InferenceMode mode((switches & GALATEA_TORCH_INFERENCE_MODE) != 0);
    auto loaded = std::make_unique<galatea_torch_module>();
    loaded->device = device_of(device);
    loaded->module = loaded->device ? torch::jit::load(path, *loaded->device) : torch::jit::load(path);
    loaded->module.eval();
    loaded->arguments = arguments_of(loaded->module);
    loaded->writes = module_writes(loaded->module);
    *module = loaded.release();
  });
}

void galatea_torch_free_module(galatea_torch_module* module) { delete module; }

size_t galatea_torch_argument_count(const galatea_torch_module* module) { return module->arguments.size(); }
const char* galatea_torch_argument_name(const galatea_torch_module* module, size_t index) {
  return module->arguments[index].name.c_str();
}
const char* galatea_torch_argument_type(const galatea_torch_module* module, size_t index) {
  return module->arguments[index].type.c_str();
}
int32_t galatea_torch_argument_takes(const galatea_torch_module* module, size_t index) {
  return module->arguments[index].takes;
}
int32_t galatea_torch_argument_has_default(const galatea_torch_module* module, size_t index) {
  return module->arguments[index].has_default ? 1 : 0;
}
int32_t galatea_torch_module_writes(const galatea_torch_module* module) { return module->writes ? 1 : 0; }

int galatea_torch_run(galatea_torch_module* module, const galatea_torch_input* inputs, size_t count, int32_t form,
                      int32_t switches, galatea_torch_answer** answer, char** error) {
  return guarded(error, [&] {
    std::vector<std::shared_ptr<Lent>> lent;
    lent.reserve(count);
    for (size_t i = 0; i < count; i++) lent.push_back(std::make_shared<Lent>(inputs[i]));
    // Of this thread alone, so each run says what it wants.
    torch::jit::setGraphExecutorOptimize((switches & GALATEA_TORCH_NO_OPTIMIZATION) == 0);
    c10::InferenceMode mode((switches & GALATEA_TORCH_INFERENCE_MODE) != 0);
    torch::NoGradGuard no_gradients;
    c10::OptionalDeviceGuard place;
    if (module->device && !module->device->is_cpu()) place.reset_device(*module->device);
    auto made = computed(*module, inputs, std::move(lent), form);
    settle(*made);
    *answer = made.release();
  });
}

size_t galatea_torch_output_count(const galatea_torch_answer* answer) { return answer->outputs.size(); }
const galatea_torch_output* galatea_torch_output_at(const galatea_torch_answer* answer, size_t index) {
  return &answer->outputs[index];
}
void galatea_torch_free_answer(galatea_torch_answer* answer) { delete answer; }

}  // extern "C"
