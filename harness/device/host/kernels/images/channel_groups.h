// Loops over images whose channels are stored in groups of 8 or 16. The channels of a group are
// computed in parallel lanes, group after group, so that data from the first sweep is mostly still
// in a cache in the second. For the files of this folder only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "harness/device/host/kernels/images/images.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

// A function of the OpenMP runtime, declared here because clang's tools do not find gcc's omp.h.
extern "C" int omp_get_max_threads();

namespace headroom::host {

template <std::size_t kLanes>
struct Lanes {
  // GCC drops the attribute from an alias that depends on a parameter.
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));  // NOLINT
};
template <std::size_t kLanes>
using Vector = typename Lanes<kLanes>::Vector;

template <std::size_t kLanes>
[[gnu::always_inline]] inline Vector<kLanes> read(const float* from) {
  Vector<kLanes> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
template <std::size_t kLanes>
[[gnu::always_inline]] inline void write(float* to, Vector<kLanes> lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// Positions of the pixels. Strides are in floats.
struct Planes {
  std::size_t images, pixels, channels;
  std::size_t groups, lanes;       // the last group may be padded
  std::size_t image, group, step;  // strides; step: between pixels

  double count() const { return static_cast<double>(images * pixels); }
  std::size_t channels_of(std::size_t at) const { return std::min(lanes, channels - at * lanes); }
};

inline Planes planes_of(const ImageLayout& image) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::size_t lanes = onednn::channel_lanes(image);
  return {.images = size(image.images),
          .pixels = size(image.height * image.width),
          .channels = size(image.channels),
          .groups = size(image.padded_channels) / lanes,
          .lanes = lanes,
          .image = size(image.image),
          .group = image.block > 1 ? size(image.blocks) : lanes,
          .step = size(image.column)};
}

// Images [begin, end) of one group.
struct Share {
  std::size_t group, begin, end;
  bool is_first;  // the first share of its group
};

// Where there are fewer groups than threads, the images of a group are divided, too.
inline std::size_t count_shares(const Planes& planes) {
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  return planes.groups * std::clamp<std::size_t>(threads / planes.groups, 1, planes.images);
}

// For each share, computes part = sum(share), then calls use(share, sum of the group's parts).
// `parts` has count_shares() entries.
template <typename Sums, typename Sum, typename Use>
void in_two_sweeps(const Planes& planes, std::vector<Sums>& parts, const Sum& sum, const Use& use) {
  const std::size_t shares = parts.size() / planes.groups;
  const auto share = [&](std::size_t i) {
    const std::size_t part = i % shares;
    return Share{i / shares, planes.images * part / shares, planes.images * (part + 1) / shares,
                 part == 0};
  };
  if (shares == 1) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = sum(share(i));
      use(share(i), parts[i]);
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = sum(share(i));
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t first = i - i % shares;
    Sums all = parts[first];
    for (std::size_t part = 1; part < shares; ++part) all.add(parts[first + part]);
    use(share(i), all);
  }
}

// The function that a batch normalisation applies to each channel of a group: y = (x - mean) factor
// + shift. All are 0 for padding channels, which stay zero.
template <std::size_t kLanes>
struct Normalisation {
  float mean[kLanes] = {}, factor[kLanes] = {}, shift[kLanes] = {};

  [[gnu::always_inline]] Vector<kLanes> of(Vector<kLanes> x) const {
    return (x - read<kLanes>(mean)) * read<kLanes>(factor) + read<kLanes>(shift);
  }
};

// Computed from the variance as stored in f32, so that forward and backward pass use the same
// factor.
double inverse_deviation(float variance, double epsilon);

// Small enough to be read twice from the L1 cache and to be summed in f32.
inline constexpr std::size_t kNearPixels = 256;

// The ops that follow a batch normalisation and are computed with it.
enum class Behind { nothing, relu, sum_and_relu };
Behind behind(const Op& op);

// Whether loops over groups can run the op, a batch normalisation.
bool lies_in_groups(const Op& op, const Program& program);

// Calls make<lanes, behind>(planes) for the layout of x, whose channels lie in groups.
template <typename Make>
Kernel in_groups(const Op& op, const Program& program, const Make& make) {
  const Planes planes = planes_of(image_layout(op, program.value(op.inputs[0])));
  const auto made = [&]<std::size_t kLanes>() {
    switch (behind(op)) {
      case Behind::relu:
        return make.template operator()<kLanes, Behind::relu>(planes);
      case Behind::sum_and_relu:
        return make.template operator()<kLanes, Behind::sum_and_relu>(planes);
      case Behind::nothing:
        break;
    }
    return make.template operator()<kLanes, Behind::nothing>(planes);
  };
  return planes.lanes == 16 ? made.template operator()<16>() : made.template operator()<8>();
}

}  // namespace headroom::host
