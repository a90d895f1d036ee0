#include "harness/program/onednn/families.h"

namespace headroom::onednn {
namespace {

using dnnl::algorithm;
using dnnl::convolution_forward;
using dnnl::memory;

struct Sliding {
  memory::dims strides, before, after;

  explicit Sliding(const Op& op) : strides(op.list("strides")) {
    const auto& padding = op.list("padding");  // top, left, bottom, right
    before = {padding[0], padding[1]};
    after = {padding[2], padding[3]};
  }
};

convolution_forward::primitive_desc forward(const Op& op, const Layout& x, const Layout& w,
                                            const Layout& y) {
  const Sliding sliding(op);
  return {{dnnl::prop_kind::forward_training, algorithm::convolution_direct, x, w, y,
           sliding.strides, sliding.before, sliding.after},
          user_scratchpad(),
          engine()};
}

// The library's backward descriptors want a forward one beside them, whatever its layouts; a
// forward convolution has all operands of one type, also where a gradient of weights is wider.
convolution_forward::primitive_desc hint(const Op& op, const Layout& x, const Layout& w,
                                         const Layout& y) {
  return forward(op, freed(x), freed(w, x.data_type()), freed(y));
}

}  // namespace

LibraryOp convolution(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const auto made = forward(op, inputs[0], inputs[1], outputs[0]);
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DST, made.dst_desc()}}};
}

LibraryOp convolution_backward_data(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const Sliding sliding(op);
  const Layout &dy = inputs[0], &w = inputs[1], &dx = outputs[0];
  const dnnl::convolution_backward_data::primitive_desc made(
      {algorithm::convolution_direct, dx, w, dy, sliding.strides, sliding.before, sliding.after},
      user_scratchpad(), engine(), hint(op, dx, w, dy));
  return {shared(made),
          {{DNNL_ARG_DIFF_DST, made.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DIFF_SRC, made.diff_src_desc()}}};
}

LibraryOp convolution_backward_weights(const Op& op, const Layouts& inputs,
                                       const Layouts& outputs) {
  const Sliding sliding(op);
  const Layout &x = inputs[0], &dy = inputs[1], &dw = outputs[0];
  const dnnl::convolution_backward_weights::primitive_desc made(
      {algorithm::convolution_direct, x, dw, dy, sliding.strides, sliding.before, sliding.after},
      user_scratchpad(), engine(), hint(op, x, dw, dy));
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_DIFF_DST, made.diff_dst_desc()}},
          {{DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}}};
}

}  // namespace headroom::onednn
