// Runs a lowered Program in plain buffers, without allocator or executor, and checks each op by the
// reference on exactly the inputs that its kernel saw, on the host or on any device that copies
// operands to itself.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/device/device.h"
#include "harness/program/in_place.h"
#include "harness/program/program.h"
#include "tests/unit/reference/reference.h"

namespace headroom::testing {

class HostExecution {
 public:
  explicit HostExecution(Program lowered);
  // `compile` receives the Program that this object keeps.
  using Compile = std::function<std::unique_ptr<CompiledProgram>(const Program&)>;
  HostExecution(Program lowered, const Compile& compile);

  void write(ValueId id, const Tensor& plain);
  Tensor read(ValueId id) const;
  // Writes inputs and persistent values from `tensors`.
  void write_all(const Tensors& tensors);

  // Executes every op, with outputs and workspaces poisoned before each.
  void run();
  // Allows the result of this kind to be rounded to the element type of its first operand, whatever
  // type it is stored in.
  void allow_rounding_of(const std::string& kind) { rounded_.insert(kind); }
  // Products may be as inexact as those of a GPU's tensor cores.
  void compute_on_tensor_cores() { on_tensor_cores_ = true; }
  // Like run(), but fails the test when an output or a changed input differs from the reference,
  // when padding is not zero, or when a kernel wrote outside its buffers.
  void run_and_judge();
  // Like run(), but runs each op again for every operand that its kind can overwrite, whatever else
  // reads that operand, and fails the test when a bit of an output differs. Returns the pairs
  // tried, as "kind 0 over 1".
  std::set<std::string> run_in_place_too();

  const Program& program() const { return program_; }

 private:
  struct Buffer {
    std::vector<std::byte> storage;  // the value's bytes, aligned, between two guards
    std::byte* data = nullptr;
    Bytes bytes = 0;
  };
  void run_op(std::size_t index, std::optional<InPlace> places = std::nullopt);
  std::vector<std::vector<std::byte>> bytes_of(const std::vector<ValueId>& ids) const;
  void write_bytes(const std::vector<ValueId>& ids,
                   const std::vector<std::vector<std::byte>>& bytes);
  void judge(const Op& op, Tensors& before);
  double rounding_of_tensor_cores(const Op& op, const Value& value, const Tensor& wanted) const;
  void judge_value(const Op& op, ValueId id, const Tensor& wanted, double largest_input);
  void check_guards(const Op& op) const;

  Program program_;
  std::unique_ptr<CompiledProgram> compiled_;
  std::vector<Buffer> buffers_;
  std::set<std::string> rounded_;  // kinds
  bool on_tensor_cores_ = false;
};

// Lowers under onednn rules, fills inputs and persistent values, then runs and checks twice. The
// second run uses the same addresses, when kernels have nothing left to set up.
void judge_on_host(Program program, std::int64_t classes = 4);

}  // namespace headroom::testing
