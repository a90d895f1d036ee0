#include "harness/virtual_gpu/stand_ins/shape_kernels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "harness/virtual_gpu/stand_ins/contents.h"

namespace headroom::virtual_gpu {
namespace {

constexpr std::int64_t kMostNumbers = 4096;

using Numbers = std::vector<std::int32_t>;

template <typename T>
T argument(void* const* arguments, int position) {
  T value;
  std::memcpy(&value, arguments[position], sizeof value);
  return value;
}

std::optional<Numbers> known_numbers(const void* address, std::int64_t count) {
  if (count < 0 || count > kMostNumbers) return std::nullopt;
  Numbers numbers(static_cast<std::size_t>(count));
  if (!copy_known(numbers.data(), address, numbers.size() * sizeof numbers[0])) return std::nullopt;
  return numbers;
}

void write(void* address, const Numbers& numbers) {
  copy(address, numbers.data(), numbers.size() * sizeof numbers[0]);
}

// Arguments: rows, indices, result, number of rows, number of indices, length of a row, length of
// the result. An index beyond the rows gives zeros.
bool gather(void* const* arguments) {
  const auto rows = argument<std::int64_t>(arguments, 3);
  const auto length = argument<std::int64_t>(arguments, 5);
  if (rows > kMostNumbers || length > kMostNumbers) return false;
  const auto source = known_numbers(argument<const void*>(arguments, 0), rows * length);
  const auto indices =
      known_numbers(argument<const void*>(arguments, 1), argument<std::int64_t>(arguments, 4));
  if (!source || !indices) return false;
  Numbers result;
  for (const std::int32_t row : *indices)
    for (std::int64_t i = 0; i < length; ++i)
      result.push_back(
          row >= 0 && row < rows ? (*source)[static_cast<std::size_t>(row * length + i)] : 0);
  write(argument<void*>(arguments, 2), result);
  return true;
}

// Results that need more bits than their type has wrap around, as on a GPU.
template <typename T, typename Operation>
struct Wrapping {
  T operator()(T a, T b) const {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(Operation()(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  }
};

struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

// Combines all numbers or flags. Arguments: numbers, result, count of numbers, the operation, the
// initial value.
template <typename T, typename Operation>
bool reduce(void* const* arguments) {
  const auto count = argument<std::int32_t>(arguments, 2);
  if (count < 0 || count > kMostNumbers) return false;
  std::vector<T> numbers(static_cast<std::size_t>(count));
  const auto* operands = argument<const void*>(arguments, 0);
  if (!copy_known(numbers.data(), operands, numbers.size() * sizeof(T))) return false;
  const T result = std::accumulate(numbers.begin(), numbers.end(), argument<T>(arguments, 4),
                                   [](T a, T b) { return static_cast<T>(Operation()(a, b)); });
  copy(argument<void*>(arguments, 1), &result, sizeof result);
  return true;
}

// Flags are counted in one kernel, or in parts whose counts a second kernel adds up. The result may
// lie in memory of the host, where a kernel that does nothing would leave what was there before.
// Unknown flags count as not set.

// Arguments: flags, the counts of all parts, number of flags. Here the first part has all.
bool count(void* const* arguments) {
  const std::size_t length = argument<std::uint32_t>(arguments, 2);
  std::vector<unsigned char> flags(length <= kKeptBytes ? length : 0);
  std::int32_t set = 0;
  if (!flags.empty() && copy_known(flags.data(), argument<const void*>(arguments, 0), length))
    set = static_cast<std::int32_t>(std::count(flags.begin(), flags.end(), 1));
  write(argument<void*>(arguments, 1), {set});
  return true;
}

// Arguments: the counts of all parts, their sum.
bool add_counts(void* const* arguments) {
  const auto first = known_numbers(argument<const void*>(arguments, 0), 1);
  write(argument<void*>(arguments, 1), first.value_or(Numbers{0}));
  return true;
}

// Converts whole numbers. Arguments: their count; then for the numbers and for the result the five
// parts of MLIR's description of a memory area: allocation, address, offset, count, stride.
template <typename From, typename To>
bool convert(void* const* arguments) {
  constexpr int kNumbers = 2, kResult = 7;
  const auto count = argument<std::int64_t>(arguments, 0);
  auto* result = argument<void*>(arguments, kResult);
  if (count < 0) return false;
  forget_contents(result, static_cast<std::size_t>(count) * sizeof(To));
  if (count > kMostNumbers) return true;
  std::vector<From> numbers(static_cast<std::size_t>(count));
  if (!copy_known(numbers.data(), argument<const void*>(arguments, kNumbers),
                  numbers.size() * sizeof(From)))
    return true;
  std::vector<To> converted;
  for (const From number : numbers) converted.push_back(static_cast<To>(number));
  copy(result, converted.data(), converted.size() * sizeof(To));
  return true;
}

// Arithmetic on whole numbers of 64 bits, in which TensorFlow counts steps and compares the count.
using Long = std::int64_t;
using Longs = std::vector<Long>;

std::optional<Longs> known_longs(const void* address, Long count) {
  Longs numbers(static_cast<std::size_t>(count));
  if (!copy_known(numbers.data(), address, numbers.size() * sizeof numbers[0])) return std::nullopt;
  return numbers;
}

// If one operand is a single number, it is combined with every number of the other operand.
template <typename Operation>
void combine(const std::optional<Longs>& a, const std::optional<Longs>& b, Long count,
             void* result) {
  using Result = decltype(Operation()(0, 0));
  const auto length = static_cast<std::size_t>(count);
  forget_contents(result, length * sizeof(Result));
  if (!a || !b) return;
  std::vector<unsigned char> bytes(length * sizeof(Result));
  for (std::size_t i = 0; i < length; ++i) {
    const Result one = Operation()((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    std::memcpy(bytes.data() + i * sizeof one, &one, sizeof one);
  }
  copy(result, bytes.data(), bytes.size());
}

constexpr Long kLowestPointer = Long{1} << 40;

// MLIR describes each operand and then the result by two addresses, followed by whole numbers.
template <int kOperands>
bool forget_written(void* const* arguments) {
  int position = 0;
  for (int described = 0; described <= kOperands; ++described, position += 2)
    while (argument<Long>(arguments, position) < kLowestPointer) ++position;
  forget_result(argument<void*>(arguments, position - 1));
  return true;
}

// Arguments: the count of numbers, two operands, the result. MLIR describes a row by its
// allocation, address, offset, count and stride, and a single number by the first three. Other
// shapes have other kernels of the same name, whose first argument is an address.
struct Elements {
  Long count = 0;  // 0 for other shapes
  const void* operands[2] = {};
  Long counts[2] = {};
  void* result = nullptr;

  explicit Elements(void* const* arguments) {
    constexpr int kPartsOfNumber = 3, kPartsOfRow = 5;
    const auto first = argument<Long>(arguments, 0);
    if (first < 1 || first >= kLowestPointer) return;
    count = first;
    int position = 1;
    for (int i = 0; i < 2; ++i) {
      const bool is_row = argument<Long>(arguments, position + kPartsOfNumber) == count;
      operands[i] = argument<const void*>(arguments, position + 1);
      counts[i] = is_row ? count : 1;
      position += is_row ? kPartsOfRow : kPartsOfNumber;
    }
    result = argument<void*>(arguments, position + 1);
  }
};

template <typename Operation>
bool combine_elements(void* const* arguments) {
  const Elements given(arguments);
  if (given.count == 0 || given.count > kMostNumbers) return forget_written<2>(arguments);
  combine<Operation>(known_longs(given.operands[0], given.counts[0]),
                     known_longs(given.operands[1], given.counts[1]), given.count, given.result);
  return true;
}

// Comparisons of other types are not computed, so the contents of their result become unknown.
bool forget_mask(void* const* arguments) {
  const Elements given(arguments);
  if (given.count == 0) return forget_written<2>(arguments);
  forget_contents(given.result, static_cast<std::size_t>(given.count));
  return true;
}

// The only argument that is read is Eigen's evaluator of `result = a + b` for rows: for each of the
// three its address, its count and its device, and a word for the assignment and for the sum.
template <typename Operation>
bool combine_in_place(void* const* arguments) {
  struct Row {
    void* address;
    Long count;
    void* device;
  };
  struct Evaluator {
    Row result;
    void* assignment;
    void* sum;
    Row a, b;
  };
  const auto rows = argument<Evaluator>(arguments, 0);
  const Long count = rows.result.count;
  if (count < 1 || count > kMostNumbers || rows.a.count != count || rows.b.count != count)
    return false;
  combine<Operation>(known_longs(rows.a.address, count), known_longs(rows.b.address, count), count,
                     rows.result.address);
  return true;
}

// The only argument that is read is Eigen's evaluator of a row that has the same value everywhere:
// address, count and device of the row, and the address of the value on the device.
template <std::size_t kBytes>
bool fill_row(void* const* arguments) {
  using Value = std::array<unsigned char, kBytes>;
  struct Evaluator {
    void* result;
    std::int32_t count;
    const void* device;
    const void* value;
  };
  const auto row = argument<Evaluator>(arguments, 0);
  const auto count = static_cast<std::size_t>(row.count);
  Value value{};
  if (row.count < 1 || count > kKeptBytes / kBytes) return false;
  if (!copy_known(value.data(), row.value, kBytes)) return false;
  const std::vector<Value> values(count, value);
  copy(row.result, values.data(), count * kBytes);
  return true;
}

ShapeKernel* kernel_of_fill(std::string_view name) {
  static const std::map<std::string_view, ShapeKernel*> kernels = {
      {"bool", fill_row<1>},        {"signed char", fill_row<1>},
      {"short", fill_row<2>},       {"unsigned char", fill_row<1>},
      {"Eigen::half", fill_row<2>}, {"unsigned short", fill_row<2>},
      {"float", fill_row<4>},       {"Eigen::bfloat16", fill_row<2>},
      {"long", fill_row<8>},        {"std::complex<float>", fill_row<8>},
      {"double", fill_row<8>}};
  constexpr std::string_view kBegin =
      "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
      "Eigen::TensorMap<Eigen::Tensor<";
  constexpr std::string_view kSame =
      ", 1, 1, int>, 16, Eigen::MakePointer>, "
      "Eigen::TensorCwiseNullaryOp<Eigen::internal::scalar_const_op<";
  if (!name.starts_with(kBegin)) return nullptr;
  name.remove_prefix(kBegin.size());
  const std::size_t type = std::min(name.find(kSame), name.size());
  const auto found = kernels.find(name.substr(0, type));
  return found == kernels.end() ? nullptr : found->second;
}

// Finds the function that forgets the result of a kernel of TensorFlow's that MLIR generated. The
// kernel's operation tells how many operands it has: one if neither list names the operation.
ShapeKernel* kernel_of_mlir(std::string_view name) {
  static const std::set<std::string_view> comparisons = {"Equal",        "NotEqual", "Greater",
                                                         "GreaterEqual", "Less",     "LessEqual"};
  static const std::set<std::string_view> with_two_operands = {
      "AddV2", "Complex", "Div", "DivNoNan", "FloorDiv", "Mul", "MulNoNan", "Sub"};
  const std::string_view operation = name.substr(0, std::min(name.find("_GPU_DT_"), name.size()));
  if (operation == name) return nullptr;
  return comparisons.contains(operation)         ? forget_mask
         : with_two_operands.contains(operation) ? forget_written<2>
                                                 : forget_written<1>;
}

template <typename Operation>
using OfLongs = Wrapping<Long, Operation>;
using Sum = OfLongs<std::plus<>>;
using Difference = OfLongs<std::minus<>>;
using ProductOfLongs = OfLongs<std::multiplies<>>;

ShapeKernel* kernel_of_reduction(std::string_view name) {
  static const std::map<std::string_view, ShapeKernel*> kernels = {
      {"bool*, bool*, 256, tensorflow::functor::And", reduce<unsigned char, std::logical_and<>>},
      {"bool*, bool*, 256, tensorflow::functor::Or", reduce<unsigned char, std::logical_or<>>},
      {"int*, int*, 256, tensorflow::functor::Prod<int> ",
       reduce<std::int32_t, Wrapping<std::int32_t, std::multiplies<>>>},
      {"long*, long*, 256, tensorflow::functor::Prod<long> ", reduce<Long, ProductOfLongs>},
      {"long*, long*, 256, tensorflow::functor::Sum<long> ", reduce<Long, Sum>},
      {"long*, long*, 256, tensorflow::functor::MaxPropagateNaN", reduce<Long, Larger>},
      {"long*, long*, 256, tensorflow::functor::MinPropagateNaN", reduce<Long, Smaller>},
  };
  constexpr std::string_view kBegin = "void tensorflow::functor::BlockReduceKernel<";
  if (!name.starts_with(kBegin)) return nullptr;
  name.remove_prefix(kBegin.size());
  const auto found = kernels.find(name.substr(0, std::min(name.find(">("), name.size())));
  return found == kernels.end() ? nullptr : found->second;
}

ShapeKernel* kernel_of_longs(std::string_view name) {
  static const std::map<std::string_view, ShapeKernel*> kernels = {
      {"AddV2_GPU_DT_INT64_DT_INT64_kernel", combine_elements<Sum>},
      {"Sub_GPU_DT_INT64_DT_INT64_kernel", combine_elements<Difference>},
      {"Mul_GPU_DT_INT64_DT_INT64_kernel", combine_elements<ProductOfLongs>},
      {"Less_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::less<>>},
      {"LessEqual_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::less_equal<>>},
      {"Greater_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::greater<>>},
      {"GreaterEqual_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::greater_equal<>>},
      {"Equal_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::equal_to<>>},
      {"NotEqual_GPU_DT_INT64_DT_BOOL_kernel", combine_elements<std::not_equal_to<>>},
  };
  if (const auto found = kernels.find(name); found != kernels.end()) return found->second;
  constexpr std::string_view kInPlace =
      "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
      "Eigen::TensorMap<Eigen::Tensor<long, 1, 1, long>, 16, Eigen::MakePointer>, "
      "Eigen::TensorCwiseBinaryOp<Eigen::internal::";
  if (!name.starts_with(kInPlace)) return nullptr;
  name.remove_prefix(kInPlace.size());
  if (name.starts_with("scalar_sum_op<long const, long const>, ")) return combine_in_place<Sum>;
  if (name.starts_with("scalar_difference_op<long const, long const>, "))
    return combine_in_place<Difference>;
  return nullptr;
}

// TensorFlow passes lists of up to eight elements (indices or addresses) by value in this form.
// Longer ones lie in the device's memory.
constexpr std::int32_t kMostPassedByValue = 8;
template <typename T>
struct List {
  std::int32_t size;
  T elements[kMostPassedByValue];
  const T* in_device_memory;
};

// Arguments: length of a slice, length of the result, for each slice of the result the index of its
// address or -1, the addresses, the result.
bool stitch(void* const* arguments) {
  const auto length = argument<std::int32_t>(arguments, 0);
  const auto indices = argument<List<std::int32_t>>(arguments, 2);
  const auto addresses = argument<List<const std::int32_t*>>(arguments, 3);
  if (indices.size > kMostPassedByValue || addresses.size > kMostPassedByValue) return false;
  Numbers result;
  for (std::int32_t slice = 0; slice < indices.size; ++slice) {
    const std::int32_t index = indices.elements[slice];
    if (index < 0 || index >= addresses.size) return false;
    const auto numbers = known_numbers(addresses.elements[index], length);
    if (!numbers) return false;
    result.insert(result.end(), numbers->begin(), numbers->end());
  }
  write(argument<void*>(arguments, 4), result);
  return true;
}

// A kernel leaves what was written before, which says that none of the indices is out of bounds.
bool find_none_invalid(void* const*) { return true; }

// The only argument that is read is Eigen's evaluator, which begins with the address of a flag that
// tells whether all indices are valid.
bool find_all_valid(void* const* arguments) {
  const bool are_valid = true;
  copy(argument<void*>(arguments, 0), &are_valid, sizeof are_valid);
  return true;
}

// A tensor is split into parts, of which argument 4 has the addresses. They are not computed.
bool forget_parts(void* const* arguments) {
  const auto parts = argument<List<void*>>(arguments, 4);
  std::vector<void*> addresses(static_cast<std::size_t>(std::max(parts.size, 0)));
  if (parts.size <= kMostPassedByValue)
    std::copy_n(parts.elements, addresses.size(), addresses.begin());
  else
    copy_known(addresses.data(), parts.in_device_memory, addresses.size() * sizeof addresses[0]);
  for (const void* address : addresses) forget_result(address);
  return true;
}

}  // namespace

ShapeKernel* shape_kernel(std::string_view name) {
  if (name.starts_with("void tensorflow::GatherOpKernel<tensorflow::AlignedVector<int, 1>, int, "
                       "true>("))
    return gather;
  if (name.starts_with("void tensorflow::(anonymous namespace)::DynamicStitchKernel<int>("))
    return stitch;
  if (name == "Cast_GPU_DT_INT32_DT_INT64_kernel") return convert<std::int32_t, std::int64_t>;
  if (name == "Cast_GPU_DT_INT64_DT_INT32_kernel") return convert<std::int64_t, std::int32_t>;
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has("::SplitOpKernel<") || has("::split_v_kernel<")) return forget_parts;
  if (has("::CheckIndicesValid<")) return find_none_invalid;
  if (has("EigenMetaKernel<") && has("Eigen::internal::AndReducer,")) return find_all_valid;
  if (has("::DeviceReduceKernel<") || has("::DeviceReduceSingleTileKernel<")) {
    if (has(">(bool const*, int*, unsigned int, ")) return count;
    if (has(">(int*, int*, int, ") && has("::plus<void>")) return add_counts;
  }
  for (const auto kernel_of :
       {kernel_of_fill, kernel_of_longs, kernel_of_mlir, kernel_of_reduction})
    if (ShapeKernel* kernel = kernel_of(name)) return kernel;
  return nullptr;
}

}  // namespace headroom::virtual_gpu
