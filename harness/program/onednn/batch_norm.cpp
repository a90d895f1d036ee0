#include "harness/program/onednn/primitives.h"

namespace headroom::onednn {
namespace {

using dnnl::normalization_flags;

const auto kAffine = normalization_flags::use_scale | normalization_flags::use_shift;

float epsilon(const Op& op) { return static_cast<float>(op.number("epsilon")); }

Layout per_channel(const Layout& x) { return plain_layout({x.get_dims()[1]}, DType::f32); }

dnnl::batch_normalization_forward::primitive_desc training(const Op& op, const Layout& x) {
  return descriptor_of<dnnl::batch_normalization_forward>(
      false, dnnl::prop_kind::forward_training, x, HEADROOM_ONEDNN_3(x) epsilon(op), kAffine);
}

}  // namespace

LibraryOp batch_norm(const Op& op, const Layouts& inputs, const Layouts&) {
  const Layout& x = inputs[0];
  const Layout channels = per_channel(x);
  return {shared(training(op, x)),
          {{DNNL_ARG_SRC, x}, {DNNL_ARG_SCALE, channels}, {DNNL_ARG_SHIFT, channels}},
          {{DNNL_ARG_DST, x}, {DNNL_ARG_MEAN, channels}, {DNNL_ARG_VARIANCE, channels}}};
}

LibraryOp batch_norm_backward(const Op& op, const Layouts& inputs, const Layouts&) {
  const Layout& x = inputs[0];
  const Layout channels = per_channel(x);
  const auto made = backward_descriptor_of<dnnl::batch_normalization_backward>(
      training(op, x), false, dnnl::prop_kind::backward, x, x, HEADROOM_ONEDNN_3(x) epsilon(op),
      kAffine);
  return {
      shared(made),
      {{DNNL_ARG_SRC, x},
       {DNNL_ARG_DIFF_DST, x},
       {DNNL_ARG_MEAN, channels},
       {DNNL_ARG_VARIANCE, channels},
       {DNNL_ARG_SCALE, channels, DNNL_VERSION_MAJOR < 3 ? DNNL_ARG_SHIFT : 0}},
      {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_DIFF_SCALE, channels}, {DNNL_ARG_DIFF_SHIFT, channels}}};
}

LibraryOp batch_norm_inference(const Op& op, const Layouts& inputs, const Layouts&) {
  const Layout& x = inputs[0];
  const Layout channels = per_channel(x);
  const auto made = descriptor_of<dnnl::batch_normalization_forward>(
      false, dnnl::prop_kind::forward_inference, x, HEADROOM_ONEDNN_3(x) epsilon(op),
      kAffine | normalization_flags::use_global_stats);
  return {shared(made),
          {{DNNL_ARG_SRC, x},
           {DNNL_ARG_SCALE, channels},
           {DNNL_ARG_SHIFT, channels},
           {DNNL_ARG_MEAN, channels},
           {DNNL_ARG_VARIANCE, channels}},
          {{DNNL_ARG_DST, x}}};
}

}  // namespace headroom::onednn
