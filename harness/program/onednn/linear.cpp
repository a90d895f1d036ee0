#include "harness/program/onednn/primitives.h"

namespace headroom::onednn {
namespace {

dnnl::inner_product_forward::primitive_desc forward(const Layout& x, const Layout& w,
                                                    const Layout& b, const Layout& y) {
  return descriptor_of<dnnl::inner_product_forward>(false, dnnl::prop_kind::forward_training, x, w,
                                                    b, y);
}

// The library's backward descriptors require a forward one as a hint, with any layouts. In a
// forward product all operands have one type, even where a gradient of weights is wider.
dnnl::inner_product_forward::primitive_desc hint(const Layout& x, const Layout& w,
                                                 const Layout& y) {
  const Layout b({w.get_dims()[0]}, x.get_data_type(), dnnl::memory::format_tag::any);
  return forward(freed(x), freed(w, x.get_data_type()), b, freed(y));
}

}  // namespace

LibraryOp linear(const Op&, const Layouts& inputs, const Layouts& outputs) {
  const auto made = forward(inputs[0], inputs[1], inputs[2], outputs[0]);
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()},
           {DNNL_ARG_WEIGHTS, made.weights_desc()},
           {DNNL_ARG_BIAS, made.bias_desc()}},
          {{DNNL_ARG_DST, made.dst_desc()}}};
}

LibraryOp linear_backward_data(const Op&, const Layouts& inputs, const Layouts& outputs) {
  const Layout &dy = inputs[0], &w = inputs[1], &dx = outputs[0];
  const auto made =
      backward_descriptor_of<dnnl::inner_product_backward_data>(hint(dx, w, dy), false, dx, w, dy);
  return {shared(made),
          {{DNNL_ARG_DIFF_DST, made.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DIFF_SRC, made.diff_src_desc()}}};
}

LibraryOp linear_backward_weights(const Op&, const Layouts& inputs, const Layouts& outputs) {
  const Layout &x = inputs[0], &dy = inputs[1], &dw = outputs[0], &db = outputs[1];
  const auto made = backward_descriptor_of<dnnl::inner_product_backward_weights>(
      hint(x, dw, dy), false, x, dw, db, dy);
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_DIFF_DST, made.diff_dst_desc()}},
          {{DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()},
           {DNNL_ARG_DIFF_BIAS, made.diff_bias_desc()}}};
}

}  // namespace headroom::onednn
