// The op families behind describe(). For the files of this folder only.
#pragma once

#include <vector>

#include "harness/program/onednn/library_op.h"

namespace headroom::onednn {

using Layouts = std::vector<Layout>;
using Describe = LibraryOp(const Op&, const Layouts& inputs, const Layouts& outputs);

Describe convolution, convolution_backward_data, convolution_backward_weights;
Describe linear, linear_backward_data, linear_backward_weights;
Describe batch_norm, batch_norm_backward, batch_norm_inference;
Describe max_pool, max_pool_backward;
Describe batched_matmul;
Describe gelu, gelu_backward, tanh, tanh_backward;
Describe reorder;

// Attributes that make scratchpads come from the allocator, never from the library.
const dnnl::primitive_attr& user_scratchpad();

// The base class that descriptors of all kinds share.
inline dnnl::primitive_desc_base shared(const dnnl::primitive_desc_base& descriptor) {
  return descriptor;
}

// A layout of the same tensor in which the library may choose the format.
inline Layout freed(const Layout& layout, dnnl::memory::data_type type) {
  return {layout.get_dims(), type, dnnl::memory::format_tag::any};
}
inline Layout freed(const Layout& layout) { return freed(layout, layout.get_data_type()); }

}  // namespace headroom::onednn
