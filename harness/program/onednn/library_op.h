// oneDNN's answers for one op: the implementation, the layout of every operand and the scratchpad.
// Lowering asks with free layouts, the host's kernels with the planned ones, so both get the same
// implementation. No tensor memory is touched.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/onednn/layout.h"
#include "harness/program/op.h"

namespace headroom::onednn {

// Version, instruction set and number of threads, which determine layouts and scratchpads.
std::string library_here();  // "2.6.3,avx512_core_bf16,threads=2"

struct LibraryOperand {
  int argument;  // DNNL_ARG_…; 0 for a scale, which the primitive does not take
  Layout layout;
  int unread_argument = 0;  // required by the library but not read
  Layout seen = {};         // the primitive's view of it, if not `layout`

  const Layout& of_primitive() const { return seen.is_zero() ? layout : seen; }
  // Whether the operand is computed in f32 on a copy in the workspace. It is stored as f16 or, in
  // products in 8 bits, as 8-bit codes or bf16.
  bool is_emulated() const { return of_primitive().get_data_type() != layout.get_data_type(); }
};

struct LibraryOp {
  dnnl::primitive_desc_base descriptor;
  std::vector<LibraryOperand> inputs;   // in the op's order
  std::vector<LibraryOperand> outputs;  // in the op's order

  // Size of the library's scratchpad, followed by a copy of each emulated operand, inputs first.
  Bytes workspace_bytes() const;
};

// Whether the library computes this kind, and whether it may choose all layouts (otherwise the
// others follow the layout of the first image).
enum class LibraryRole { none, follows, chooses };
LibraryRole library_role(std::string_view kind);

// Offset of the next copy in a workspace.
inline Bytes copy_begin(Bytes end_of_last) { return align_up(end_of_last, 64); }

// `inputs` and `outputs` are in the op's order. f16 and 8-bit types are emulated, because oneDNN 2
// does not compute with them on CPUs. Throws DeviceError naming the op when the library rejects it.
LibraryOp describe(const Op& op, const std::vector<Layout>& inputs,
                   const std::vector<Layout>& outputs);

}  // namespace headroom::onednn
