#include "tests/unit/support/host_execution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "harness/device/host/host_kernels.h"
#include "harness/program/lowering/channels_last.h"
#include "harness/program/lowering/lowering.h"
#include "tests/unit/reference/f8.h"

namespace headroom::testing {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kPoison{0xFF};  // not a number in every float format
constexpr std::byte kGuardFill{0xA5};

// Each byte equals the one before it, and the first is the fill.
bool is_guard(std::span<const std::byte> bytes) {
  return bytes.front() == kGuardFill &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

template <typename Element>
std::vector<std::byte> to_plain_as(const Tensor& tensor) {
  std::vector<Element> elements(tensor.size());
  for (std::size_t i = 0; i < tensor.size(); ++i) elements[i] = static_cast<Element>(tensor[i]);
  std::vector<std::byte> plain(elements.size() * sizeof(Element));
  std::memcpy(plain.data(), elements.data(), plain.size());
  return plain;
}

template <typename Element>
Tensor from_plain_as(const std::vector<std::byte>& plain) {
  std::vector<Element> elements(plain.size() / sizeof(Element));
  std::memcpy(elements.data(), plain.data(), plain.size());
  return Tensor(elements.begin(), elements.end());
}

// The upper half of a float; truncates what bf16 cannot hold.
struct UpperHalf {
  std::uint16_t bits = 0;

  UpperHalf() = default;
  explicit UpperHalf(double x)
      : bits(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) >>
                                        16)) {}
  operator double() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

std::vector<std::byte> to_codes(const Value& value, const Tensor& tensor) {
  std::vector<std::byte> codes;
  for (const double x : tensor) codes.push_back(std::byte(nearest_f8(value.dtype, x)));
  return codes;
}

Tensor from_codes(const Value& value, const std::vector<std::byte>& codes) {
  Tensor tensor;
  for (const std::byte code : codes)
    tensor.push_back(f8_number(value.dtype, std::to_integer<unsigned>(code)));
  return tensor;
}

std::vector<std::byte> to_plain(const Value& value, const Tensor& tensor) {
  if (is_f8(value.dtype)) return to_codes(value, tensor);
  if (value.dtype == DType::s32) return to_plain_as<std::int32_t>(tensor);
  if (value.dtype == DType::bf16) return to_plain_as<UpperHalf>(tensor);
  if (value.dtype == DType::f16) return to_plain_as<_Float16>(tensor);
  if (value.dtype == DType::u8) return to_plain_as<std::uint8_t>(tensor);
  return to_plain_as<float>(tensor);
}

Tensor from_plain(const Value& value, const std::vector<std::byte>& plain) {
  if (is_f8(value.dtype)) return from_codes(value, plain);
  if (value.dtype == DType::s32) return from_plain_as<std::int32_t>(plain);
  if (value.dtype == DType::bf16) return from_plain_as<UpperHalf>(plain);
  if (value.dtype == DType::f16) return from_plain_as<_Float16>(plain);
  if (value.dtype == DType::u8) return from_plain_as<std::uint8_t>(plain);
  return from_plain_as<float>(plain);
}

// The plain bytes of a channels-last value, or the other way round.
std::vector<std::byte> turned(const Value& value, std::span<const std::byte> from, bool to_plain) {
  const auto channels = static_cast<std::size_t>(value.shape[1]);
  const auto pixels = static_cast<std::size_t>(value.shape[2] * value.shape[3]);
  const Bytes size = size_of(value.dtype);
  std::vector<std::byte> to(from.size());
  for (std::size_t i = 0; i < from.size() / size; ++i) {
    const std::size_t pixel = i % pixels, channel = i / pixels % channels;
    const std::size_t last = (i / pixels / channels * pixels + pixel) * channels + channel;
    std::copy_n(&from[(to_plain ? last : i) * size], size, &to[(to_plain ? i : last) * size]);
  }
  return to;
}

void write_plain(const Value& value, std::byte* data, std::span<const std::byte> plain) {
  if (!is_channels_last(value)) return write_value(value, data, plain);
  std::ranges::copy(turned(value, plain, false), data);
}

void read_plain(const Value& value, const std::byte* data, std::span<std::byte> plain) {
  if (!is_channels_last(value)) return read_value(value, data, plain);
  std::ranges::copy(turned(value, {data, plain.size()}, true), plain.begin());
}

double largest(const Tensor& tensor) {
  double result = 0;
  for (const double x : tensor) result = std::max(result, std::abs(x));
  return result;
}

bool has_numbers(const Value& value) { return value.dtype != DType::u8; }

// Compares bytes, except for the sign of f16 zeros, which the library's reorder drops.
bool same_contents(const Value& value, const std::byte* a, const std::byte* b) {
  if (value.dtype != DType::f16) return std::memcmp(a, b, value.bytes) == 0;
  for (Bytes at = 0; at < value.bytes; at += 2) {
    std::uint16_t left = 0, right = 0;
    std::memcpy(&left, a + at, 2);
    std::memcpy(&right, b + at, 2);
    if (left != right && ((left | right) & 0x7FFFU) != 0) return false;
  }
  return true;
}

}  // namespace

HostExecution::HostExecution(Program lowered)
    : HostExecution(std::move(lowered), compile_for_host) {}

HostExecution::HostExecution(Program lowered, const Compile& compile)
    : program_(std::move(lowered)), compiled_(compile(program_)) {
  for (const Value& value : program_.values) {
    Buffer buffer;
    buffer.bytes = value.bytes;
    buffer.storage.assign(value.bytes + 3 * kGuard, kGuardFill);
    const auto start = reinterpret_cast<std::uintptr_t>(buffer.storage.data());
    buffer.data = buffer.storage.data() + kGuard + (kGuard - start % kGuard);
    std::fill_n(buffer.data, value.bytes, kPoison);
    buffers_.push_back(std::move(buffer));
  }
}

void HostExecution::write(ValueId id, const Tensor& tensor) {
  write_plain(program_.value(id), buffers_[id].data, to_plain(program_.value(id), tensor));
}

Tensor HostExecution::read(ValueId id) const {
  const Value& value = program_.value(id);
  std::vector<std::byte> plain(static_cast<std::size_t>(element_count(value.shape)) *
                               size_of(value.dtype));
  read_plain(value, buffers_[id].data, plain);
  return from_plain(value, plain);
}

void HostExecution::write_all(const Tensors& tensors) {
  for (ValueId id = 0; id < program_.values.size(); ++id)
    if (program_.value(id).persistent || program_.value(id).role == Role::input)
      if (!tensors[id].empty()) write(id, tensors[id]);
}

void HostExecution::run_op(std::size_t index, std::optional<InPlace> places) {
  const Op& op = program_.ops[index];
  std::vector<std::byte*> inputs, outputs;
  for (const ValueId id : op.inputs) inputs.push_back(buffers_[id].data);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const Buffer& buffer = buffers_[op.outputs[i]];
    std::fill_n(buffer.data, buffer.bytes, kPoison);
    outputs.push_back(places && places->output == i ? inputs[places->input] : buffer.data);
  }
  std::byte* workspace = nullptr;
  if (op.workspace != kNoValue) {
    workspace = buffers_[op.workspace].data;
    std::fill_n(workspace, buffers_[op.workspace].bytes, kPoison);
  }
  compiled_->run(index, {inputs, outputs, workspace});
}

void HostExecution::run() {
  for (std::size_t index = 0; index < program_.ops.size(); ++index) run_op(index);
}

std::vector<std::vector<std::byte>> HostExecution::bytes_of(const std::vector<ValueId>& ids) const {
  std::vector<std::vector<std::byte>> bytes;
  for (const ValueId id : ids)
    bytes.emplace_back(buffers_[id].data, buffers_[id].data + buffers_[id].bytes);
  return bytes;
}

void HostExecution::write_bytes(const std::vector<ValueId>& ids,
                                const std::vector<std::vector<std::byte>>& bytes) {
  for (std::size_t i = 0; i < ids.size(); ++i)
    std::copy(bytes[i].begin(), bytes[i].end(), buffers_[ids[i]].data);
}

std::set<std::string> HostExecution::run_in_place_too() {
  std::set<std::string> tried;
  for (std::size_t index = 0; index < program_.ops.size(); ++index) {
    const Op& op = program_.ops[index];
    run_op(index);
    const auto wanted = bytes_of(op.outputs);
    for (const InPlace& places : in_place_choices(op.kind)) {
      const Value& from = program_.value(op.inputs[places.input]);
      const Value& to = program_.value(op.outputs[places.output]);
      if (from.layout != to.layout || from.dtype != to.dtype || from.bytes != to.bytes) continue;
      if (std::count(op.inputs.begin(), op.inputs.end(), op.inputs[places.input]) > 1) continue;
      const auto operands = bytes_of(op.inputs);
      run_op(index, places);
      auto found = bytes_of(op.outputs);
      found[places.output] = bytes_of(op.inputs)[places.input];
      const std::string name =
          op.kind + " " + std::to_string(places.output) + " over " + std::to_string(places.input);
      EXPECT_EQ(found, wanted) << op.name << ": " << name;
      tried.insert(name);
      write_bytes(op.inputs, operands);
      write_bytes(op.outputs, wanted);
    }
  }
  return tried;
}

void HostExecution::run_and_judge() {
  Tensors tensors(program_);  // keeps the reference's own max_pool indices from op to op
  for (std::size_t index = 0; index < program_.ops.size(); ++index) {
    const Op& op = program_.ops[index];
    for (const ValueId id : op.inputs)
      if (has_numbers(program_.value(id))) tensors[id] = read(id);
    run_op(index);
    judge(op, tensors);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void HostExecution::judge(const Op& op, Tensors& before) {
  double largest_input = 0;
  for (const ValueId id : op.inputs)
    if (const DType type = program_.value(id).dtype;
        has_numbers(program_.value(id)) && type != DType::s32 && !is_f8(type))
      largest_input = std::max(largest_input, largest(before[id]));
  execute_reference(program_, op, before);
  for (const ValueId id : op.outputs) judge_value(op, id, before[id], largest_input);
  for (const ValueId id : op.mutates) judge_value(op, id, before[id], largest_input);
  check_guards(op);
}

double HostExecution::rounding_of_tensor_cores(const Op& op, const Value& value,
                                               const Tensor& wanted) const {
  if (!on_tensor_cores_ || !op.kind.starts_with("linear")) return 0;
  // Hopper's tensor cores keep about 14 bits of a sum of 8-bit products (arXiv 2412.19437, 3.3.2).
  if (is_f8(program_.value(op.inputs.front()).dtype)) return 0x1p-11 * largest(wanted);
  // The product may be rounded before the bias is added, as on an H200, and is at most this large.
  const bool has_bias = op.kind == "linear" && op.inputs.size() > 2 && op.inputs[2] != kNoValue;
  if (!has_bias || value.dtype == DType::f32) return 0;
  const double product = largest(wanted) + largest(read(op.inputs[2]));
  return (value.dtype == DType::bf16 ? 0x1p-8 : 0x1p-11) * product;
}

void HostExecution::judge_value(const Op& op, ValueId id, const Tensor& wanted,
                                double largest_input) {
  const Value& value = program_.value(id);
  // Only the meaning of indices is compared, and scratch not at all.
  if (!has_numbers(value) || value.role == Role::workspace) return;
  const Tensor found = read(id);
  ASSERT_EQ(found.size(), wanted.size());
  // Allows for sums of up to some thousand single-precision terms of the inputs' size, which may
  // cancel. Rounding to 8 bits is itself exact.
  const double tolerance =
      is_f8(value.dtype) ? 0 : 2e-5 * (1 + std::max(largest(wanted), largest_input));
  // Allows for rounding the result to 8 or 11 bits: half a unit, or a full unit when it is stored
  // and read again on the way.
  const DType kept =
      rounded_.contains(op.kind) ? program_.value(op.inputs.front()).dtype : value.dtype;
  const double rounding = kept == DType::bf16 ? 0x1p-8 : kept == DType::f16 ? 0x1p-11 : 0;
  // oneDNN sums the windows that share a maximum in the result itself: up to 4 here, each up to the
  // largest input, with rounding after each.
  const double windows =
      op.kind == "max_pool_backward" && value.dtype == DType::bf16 ? 0x1p-5 * largest_input : 0;
  const double allowed = tolerance + windows + rounding_of_tensor_cores(op, value, wanted);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], allowed + rounding * std::abs(wanted[i]))
        << op.name << " (" << op.kind << "): '" << value.name << "' " << to_string(value.shape)
        << " at " << i;

  // Writing the same numbers again into zeros must give the same bytes, because padding is zero.
  std::vector<std::byte> again(value.bytes);
  write_plain(value, again.data(), to_plain(value, found));
  ASSERT_TRUE(same_contents(value, again.data(), buffers_[id].data))
      << op.name << ": '" << value.name << "' has padding that is not zero";
}

void HostExecution::check_guards(const Op& op) const {
  for (ValueId id = 0; id < buffers_.size(); ++id) {
    const Buffer& buffer = buffers_[id];
    const std::byte* begin = buffer.storage.data();
    const std::byte* end = buffer.data + buffer.bytes;
    ASSERT_TRUE(is_guard({begin, buffer.data}) && is_guard({end, begin + buffer.storage.size()}))
        << op.name << " wrote outside '" << program_.value(id).name << "'";
  }
}

void judge_on_host(Program program, std::int64_t classes) {
  PersistentLayouts layouts;
  HostExecution host(lower(std::move(program), "onednn", layouts));
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 2; ++round) {
    Tensors tensors(host.program());
    fill_randomly(host.program(), tensors, random, classes);
    host.write_all(tensors);
    host.run_and_judge();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace headroom::testing
