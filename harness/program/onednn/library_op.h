// What oneDNN says about one op: the implementation it takes, the layout it wants for every
// operand, the scratchpad it needs. Lowering asks with free layouts, the host's kernels ask with
// the planned ones, so both see the same implementation. No tensor memory is touched.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/onednn/layout.h"
#include "harness/program/op.h"

namespace headroom::onednn {

// Version, instructions and threads, for which its layouts and scratchpads are.
std::string library_here();  // "2.6.3,avx512_core_bf16,threads=2"

struct LibraryOperand {
  int argument;  // DNNL_ARG_…; 0: the primitive does not know this one, a scale
  Layout layout;
  int unread_argument = 0;  // the library insists on this one too and does not read it
  Layout seen = {};         // how the primitive strides through it, where that is not `layout`

  const Layout& of_primitive() const { return seen.data.ndims == 0 ? layout : seen; }
  // Computed in f32 on a copy in the workspace, kept in f16 or, of products in 8 bits, in these or
  // bf16.
  bool is_emulated() const { return of_primitive().data_type() != layout.data_type(); }
};

struct LibraryOp {
  dnnl::primitive_desc_base descriptor;
  std::vector<LibraryOperand> inputs;   // in the op's order
  std::vector<LibraryOperand> outputs;  // in the op's order

  // The library's scratchpad, then a copy of each emulated operand, inputs first.
  Bytes workspace_bytes() const;
};

// Whether the library computes this kind, and whether it may choose all of its layouts (otherwise
// the others follow the first image's).
enum class LibraryRole { none, follows, chooses };
LibraryRole library_role(std::string_view kind);

// Where the next copy in a workspace begins.
inline Bytes copy_begin(Bytes end_of_last) { return align_up(end_of_last, 64); }

// `inputs` and `outputs` in the op's order; f16 and 8 bits, which oneDNN 2 does not compute with on
// CPUs, are emulated. Throws DeviceError naming the op when the library
// refuses.
LibraryOp describe(const Op& op, const std::vector<Layout>& inputs,
                   const std::vector<Layout>& outputs);

}  // namespace headroom::onednn
