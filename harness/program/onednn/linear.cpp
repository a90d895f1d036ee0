#include "harness/program/onednn/families.h"

namespace headroom::onednn {
namespace {

dnnl::inner_product_forward::primitive_desc forward(const Layout& x, const Layout& w,
                                                    const Layout& b, const Layout& y) {
  return {{dnnl::prop_kind::forward_training, x, w, b, y}, user_scratchpad(), engine()};
}

// The library's backward descriptors require a forward one as a hint, with any layouts. In a
// forward product all operands have one type, even where a gradient of weights is wider.
dnnl::inner_product_forward::primitive_desc hint(const Layout& x, const Layout& w,
                                                 const Layout& y) {
  const Layout b({w.dims()[0]}, x.data_type(), dnnl::memory::format_tag::any);
  return forward(freed(x), freed(w, x.data_type()), b, freed(y));
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
  const dnnl::inner_product_backward_data::primitive_desc made({dx, w, dy}, user_scratchpad(),
                                                               engine(), hint(dx, w, dy));
  return {shared(made),
          {{DNNL_ARG_DIFF_DST, made.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DIFF_SRC, made.diff_src_desc()}}};
}

LibraryOp linear_backward_weights(const Op&, const Layouts& inputs, const Layouts& outputs) {
  const Layout &x = inputs[0], &dy = inputs[1], &dw = outputs[0], &db = outputs[1];
  const dnnl::inner_product_backward_weights::primitive_desc made(
      {x, dw, db, dy}, user_scratchpad(), engine(), hint(x, dw, dy));
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_DIFF_DST, made.diff_dst_desc()}},
          {{DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()},
           {DNNL_ARG_DIFF_BIAS, made.diff_bias_desc()}}};
}

}  // namespace headroom::onednn
