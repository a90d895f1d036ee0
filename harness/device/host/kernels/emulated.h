// Operands that the library does not compute with: it is given copies of them in f32, which lie in
// the op's workspace.
#pragma once

#include <cstddef>

#include "harness/device/device.h"
#include "harness/program/op.h"

namespace headroom::host {

class Emulated {
 public:
  // Operand or result `operand` of the op, kept in `kept`: f16; in a product of 8 bits, codes with
  // their scale, and bf16. `begin` is where the copy begins in the workspace; it lies as the
  // operand does, `count` elements with padding.
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
  std::size_t scale_ = kNone;  // the input that holds it
};

}  // namespace headroom::host
