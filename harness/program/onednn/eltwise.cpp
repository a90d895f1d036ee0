#include "harness/program/onednn/primitives.h"

namespace headroom::onednn {
namespace {

using dnnl::algorithm;

dnnl::eltwise_forward::primitive_desc forward(algorithm kind, const Layout& x) {
  return descriptor_of<dnnl::eltwise_forward>(false, dnnl::prop_kind::forward_training, kind, x,
                                              HEADROOM_ONEDNN_3(x) 0.0F, 0.0F);
}

LibraryOp forward_op(algorithm kind, const Layout& x) {
  return {shared(forward(kind, x)), {{DNNL_ARG_SRC, x}}, {{DNNL_ARG_DST, x}}};
}

// `kept_argument` says whether the derivative is computed from the input or from the output.
LibraryOp backward_op(algorithm kind, algorithm forward_kind, int kept_argument, const Layout& x) {
  const auto made = backward_descriptor_of<dnnl::eltwise_backward>(
      forward(forward_kind, x), false, kind, x, x, HEADROOM_ONEDNN_3(x) 0.0F, 0.0F);
  return {shared(made), {{kept_argument, x}, {DNNL_ARG_DIFF_DST, x}}, {{DNNL_ARG_DIFF_SRC, x}}};
}

}  // namespace

LibraryOp gelu(const Op&, const Layouts& inputs, const Layouts&) {
  return forward_op(algorithm::eltwise_gelu_erf, inputs[0]);
}

LibraryOp gelu_backward(const Op&, const Layouts& inputs, const Layouts&) {
  return backward_op(algorithm::eltwise_gelu_erf, algorithm::eltwise_gelu_erf, DNNL_ARG_SRC,
                     inputs[0]);
}

LibraryOp tanh(const Op&, const Layouts& inputs, const Layouts&) {
  return forward_op(algorithm::eltwise_tanh, inputs[0]);
}

LibraryOp tanh_backward(const Op&, const Layouts& inputs, const Layouts&) {
  return backward_op(algorithm::eltwise_tanh_use_dst_for_bwd,
                     algorithm::eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST, inputs[0]);
}

}  // namespace headroom::onednn
