// Convolutions, by Winograd's algorithm where it is faster: it computes 4 × 4 results of 3 × 3
// windows together from 6 × 6 inputs, with a quarter of the multiplications (Lavin and Gray 2016,
// F(4×4, 3×3)).
#include "harness/program/lowering/workspace_limit.h"
#include "harness/program/onednn/primitives.h"

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

// The input and the output image. An image of one channel or of one pixel lies in memory alike with
// channels first and with channels last. It is described with channels last if the other image has
// them last, because the implementations for AMX accept no other description.
struct Images {
  Layout x, y;

  Images(const Layout& given_x, const Layout& given_y) : x(given_x), y(given_y) {
    const auto blocked = memory::format_kind::blocked;
    if (given_x.get_format_kind() != blocked || given_y.get_format_kind() != blocked) return;
    const Layout last_x = channels_last(given_x), last_y = channels_last(given_y);
    if (given_x != last_x || given_y != last_y) return;
    x = last_x;
    y = last_y;
  }

  static Layout channels_last(const Layout& layout) {
    return {layout.get_dims(), layout.get_data_type(), memory::format_tag::nhwc};
  }
};

// Whether Winograd's algorithm costs less than the direct one, in multiplications and additions. It
// computes whole tiles, and it writes and reads each transformed number once, which takes as long
// as 17 operations per byte. Of 54 passes that this selects, 53 were faster, 1.9 times at the
// median, and one as fast; of the 30 others, 15 would have been faster (2 cores of an AVX-512 Xeon,
// oneDNN 2.6.3, images of 4 to 112 pixels, 16 to 512 channels).
bool is_less_by_winograd(const Layout& w, const Layout& y) {
  constexpr double kOperationsPerByte = 17;
  const auto kernel = w.get_dims(), image = y.get_dims();
  const auto tiles_along = [](memory::dim pixels) { return (pixels + 3) / 4; };
  const auto tiles = static_cast<double>(image[0] * tiles_along(image[2]) * tiles_along(image[3]));
  const auto pixels = static_cast<double>(image[0] * image[2] * image[3]);
  const auto out = static_cast<double>(kernel[0]), in = static_cast<double>(kernel[1]);
  const double transformed = 36 * (in * out + tiles * (in + out));
  return 2 * 36 * tiles * in * out + kOperationsPerByte * 2 * sizeof(float) * transformed <
         2 * 9 * pixels * in * out;
}

bool may_take_winograd(const Op& op, const Layout& w, const Layout& y) {
  return workspace_limit(op).value_or(0) > 0 && w.get_dims()[2] == 3 && w.get_dims()[3] == 3 &&
         op.list("strides") == Shape{1, 1} && is_less_by_winograd(w, y);
}

// `make(algorithm)` describes one of the three passes; the description is empty where the library
// has no implementation.
template <typename Make>
auto described(const Op& op, const Layout& w, const Layout& y, Make make) {
  if (may_take_winograd(op, w, y)) {
    const auto made = make(algorithm::convolution_winograd, true);
    if (made.get(true) != nullptr && made.scratchpad_desc().get_size() <= *workspace_limit(op))
      return made;
  }
  return make(algorithm::convolution_direct, false);
}

// The library's backward descriptors require a forward one as a hint, with any algorithm and
// layouts. In a forward convolution all operands have one type, even where a gradient of weights is
// wider.
convolution_forward::primitive_desc hint(const Op& op, const Layout& x, const Layout& w,
                                         const Layout& y) {
  const Sliding sliding(op);
  return descriptor_of<convolution_forward>(
      false, dnnl::prop_kind::forward_training, algorithm::convolution_direct, freed(x),
      freed(w, x.get_data_type()), freed(y), sliding.strides, sliding.before, sliding.after);
}

}  // namespace

LibraryOp convolution(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const Sliding sliding(op);
  const Images images(inputs[0], outputs[0]);
  const Layout &x = images.x, &y = images.y, &w = inputs[1];
  const auto made = described(op, w, y, [&](algorithm by, bool or_none) {
    return descriptor_of<convolution_forward>(or_none, dnnl::prop_kind::forward_training, by, x, w,
                                              y, sliding.strides, sliding.before, sliding.after);
  });
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DST, made.dst_desc()}}};
}

LibraryOp convolution_backward_data(const Op& op, const Layouts& inputs, const Layouts& outputs) {
  const Sliding sliding(op);
  const Images images(outputs[0], inputs[0]);
  const Layout &dx = images.x, &dy = images.y, &w = inputs[1];
  const auto made = described(op, w, dy, [&](algorithm by, bool or_none) {
    return backward_descriptor_of<dnnl::convolution_backward_data>(hint(op, dx, w, dy), or_none, by,
                                                                   dx, w, dy, sliding.strides,
                                                                   sliding.before, sliding.after);
  });
  return {shared(made),
          {{DNNL_ARG_DIFF_DST, made.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, made.weights_desc()}},
          {{DNNL_ARG_DIFF_SRC, made.diff_src_desc()}}};
}

LibraryOp convolution_backward_weights(const Op& op, const Layouts& inputs,
                                       const Layouts& outputs) {
  const Sliding sliding(op);
  const Images images(inputs[0], inputs[1]);
  const Layout &x = images.x, &dy = images.y, &dw = outputs[0];
  const auto made = described(op, dw, dy, [&](algorithm by, bool or_none) {
    return backward_descriptor_of<dnnl::convolution_backward_weights>(
        hint(op, x, dw, dy), or_none, by, x, dw, dy, sliding.strides, sliding.before,
        sliding.after);
  });
  return {shared(made),
          {{DNNL_ARG_SRC, made.src_desc()}, {DNNL_ARG_DIFF_DST, made.diff_dst_desc()}},
          {{DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}}};
}

}  // namespace headroom::onednn
