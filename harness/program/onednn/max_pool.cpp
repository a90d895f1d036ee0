#include "harness/program/onednn/primitives.h"

namespace headroom::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;

struct Window {
  memory::dims strides, kernel, before, after, dilation = {0, 0};

  explicit Window(const Op& op) : strides(op.list("strides")), kernel(op.list("kernel")) {
    const auto& padding = op.list("padding");  // top, left, bottom, right
    before = {padding[0], padding[1]};
    after = {padding[2], padding[3]};
  }
};

dnnl::pooling_forward::primitive_desc forward(const Op& op, const Layout& x, const Layout& y) {
  const Window window(op);
  return descriptor_of<dnnl::pooling_forward>(
      false, dnnl::prop_kind::forward_training, algorithm::pooling_max, x, y, window.strides,
      window.kernel, HEADROOM_ONEDNN_3(window.dilation) window.before, window.after);
}

}  // namespace

LibraryOp max_pool(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const Layout& x = inputs[0];
  const auto made = forward(op, x, freed(outputs[0]));
  return {shared(made),
          {{DNNL_ARG_SRC, x}},
          {{DNNL_ARG_DST, made.dst_desc()}, {DNNL_ARG_WORKSPACE, made.workspace_desc()}}};
}

// Uses the layout of the given dx: with that of the forward pass, neither dy nor the indices need a
// copy.
LibraryOp max_pool_backward(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const Layout& dx = outputs[0];
  const auto matching = forward(op, dx, freed(inputs[0]));
  const Window window(op);
  const Layout dy = matching.dst_desc();
  const auto made = backward_descriptor_of<dnnl::pooling_backward>(
      matching, false, algorithm::pooling_max, dx, dy, window.strides, window.kernel,
      HEADROOM_ONEDNN_3(window.dilation) window.before, window.after);
  return {shared(made),
          {{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WORKSPACE, matching.workspace_desc()}},
          {{DNNL_ARG_DIFF_SRC, dx}}};
}

}  // namespace headroom::onednn
