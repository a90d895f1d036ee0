#include "harness/virtual_gpu/stand_ins/kernels.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/shape_kernels.h"

namespace headroom::virtual_gpu {
namespace {

// An argument that is a structure of PyTorch's with sizes, strides and, next to each other, the
// addresses of tensors.
struct Packed {
  std::size_t argument;
  std::size_t first_result;   // its position among the addresses
  std::size_t addresses = 0;  // words before the addresses, once they have been found
};

struct Kernel {
  const char* mangled_name;
  bool parsed = false;
  std::vector<unsigned> results;  // positions of the parameters through which it writes
  bool is_assignment = false;     // of Eigen's
  std::optional<Packed> packed;
  ShapeKernel* computed = nullptr;
};

std::mutex kernels_mutex;
std::unordered_map<const void*, Kernel>& kernels() {
  static std::unordered_map<const void*, Kernel> all;
  return all;
}

constexpr const char* kAssignment = "Eigen::TensorEvaluator<Eigen::TensorAssignOp<";
constexpr std::string_view kReduction = "at::native::ReduceOp<";
constexpr std::string_view kStrided = "void at::native::elementwise_kernel<";

// Whether a kernel writes through a parameter of this type. Element-wise operations of TensorFlow
// and PyTorch take a structure with the pointer to their result.
bool is_result(std::string_view type) {
  for (const std::string_view begin : {kAssignment, "tensorflow::TransformOutputIterator<",
                                       "std::array<char*", "at::detail::Array<char*"})
    if (type.starts_with(begin)) return true;
  return type.ends_with('*') && !type.ends_with("const*");
}

// Returns the positions of the results among the parameters of a demangled name.
std::vector<unsigned> results_of(std::string_view name) {
  std::vector<unsigned> results;
  if (!name.ends_with(')')) return results;
  // Parsing starts at the end, because template arguments may contain parentheses.
  std::size_t end = name.size() - 1, depth = 0;
  std::vector<std::string_view> types;
  for (std::size_t at = end; at-- > 0;) {
    const char c = name[at];
    if (c == ')' || c == '>' || c == ']' || c == '}') ++depth;
    const bool opens = c == '(' || c == '<' || c == '[' || c == '{';
    if (depth == 0 && (c == ',' || c == '(')) {
      const std::size_t begin = name.find_first_not_of(' ', at + 1);
      types.push_back(name.substr(begin, end - begin));
      end = at;
      if (c == '(') break;
    } else if (opens) {
      if (depth == 0) return results;
      --depth;
    }
  }
  for (std::size_t position = 0; position < types.size(); ++position)
    if (is_result(types[types.size() - 1 - position]))
      results.push_back(static_cast<unsigned>(position));
  return results;
}

// Returns the pointer to the result that an argument begins with. An assignment of Eigen's to a
// part of a tensor has the sizes of that part before it.
const void* result_in(const void* argument, bool is_assignment) {
  constexpr int kMostWordsBefore = 16;
  const void* first = nullptr;
  std::memcpy(&first, argument, sizeof first);
  const void* word = first;
  for (int i = 0; is_assignment && !find(word) && i < kMostWordsBefore; ++i) {
    argument = static_cast<const char*>(argument) + sizeof word;
    std::memcpy(&word, argument, sizeof word);
  }
  return find(word) ? word : first;
}

// Forgets the results of an operation on strided tensors, which is the first of the addresses, or
// of a reduction, which are one or two behind its operand.
void forget_packed(const void* argument, Packed& packed) {
  constexpr std::size_t kMostWordsBefore = 160;
  const auto word = [argument](std::size_t position) {
    const void* value = nullptr;
    std::memcpy(&value, static_cast<const char*>(argument) + position * sizeof value, sizeof value);
    return value;
  };
  for (std::size_t at = packed.addresses; at < kMostWordsBefore; ++at) {
    if (!find(word(at)) || !find(word(at + 1))) continue;
    packed.addresses = at;
    for (std::size_t i = packed.first_result; i <= 2 * packed.first_result; ++i)
      if (find(word(at + i))) forget_result(word(at + i));
    return;
  }
}

void parse(Kernel& kernel) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(kernel.mangled_name, nullptr, nullptr, &status), std::free);
  if (status != 0) return;
  kernel.results = results_of(name.get());
  kernel.is_assignment = std::strstr(name.get(), kAssignment) != nullptr;
  const std::string_view view = name.get();
  if (view.find(kReduction) != view.npos) kernel.packed = {.argument = 0, .first_result = 1};
  if (view.starts_with(kStrided)) kernel.packed = {.argument = 1, .first_result = 0};
  kernel.computed = shape_kernel(name.get());
}

}  // namespace

void note_kernel(const void* function, const char* mangled_name) {
  const std::lock_guard lock(kernels_mutex);
  kernels().insert_or_assign(function, Kernel{mangled_name, false, {}, false, {}, nullptr});
}

void note_function(const void* function, const char* name, std::vector<unsigned> results) {
  ShapeKernel* computed = shape_kernel(name);
  if (computed == nullptr && results.empty()) return;
  const std::lock_guard lock(kernels_mutex);
  kernels().insert_or_assign(function,
                             Kernel{nullptr, true, std::move(results), false, {}, computed});
}

void settle_results(const void* function, void* const* arguments) {
  if (arguments == nullptr) return;
  const std::lock_guard lock(kernels_mutex);
  const auto found = kernels().find(function);
  if (found == kernels().end()) return;
  Kernel& kernel = found->second;
  if (!std::exchange(kernel.parsed, true)) parse(kernel);
  if (kernel.computed != nullptr && kernel.computed(arguments)) return;
  for (const unsigned position : kernel.results)
    forget_result(result_in(arguments[position], kernel.is_assignment));
  if (kernel.packed) forget_packed(arguments[kernel.packed->argument], *kernel.packed);
}

}  // namespace headroom::virtual_gpu
