// Operands in types that the library does not compute with: the library works on f32 copies in the
// op's workspace.
#pragma once

#include <cstddef>

#include "harness/device/device.h"
#include "harness/program/op.h"

namespace headroom::host {

class Emulated {
 public:
  // Operand or result `operand` of the op, stored as `kept`: f16, or, in a product of 8 bits, codes
  // with a scale, or bf16. `begin` is the copy's offset in the workspace; the copy has the
  // operand's layout, with `count` elements including padding.
  Emulated(const Op& op, std::size_t operand, DType kept, std::size_t count, Bytes begin);

  std::size_t operand() const { return operand_; }
  std::byte* copy(const OpBuffers& buffers) const { return buffers.workspace + begin_; }
  void copy_in(const OpBuffers& buffers) const;   // an operand, before the library runs
  void copy_out(const OpBuffers& buffers) const;  // a result, after it

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t operand_;
  DType kept_;
  std::size_t count_;
  Bytes begin_;
  std::size_t scale_ = kNone;  // index of the input that holds the scale
};

}  // namespace headroom::host
