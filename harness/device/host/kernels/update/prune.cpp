// Masks over weights in any layout of the weight. Padding holds zeros and stays zero.
#include <algorithm>
#include <array>
#include <cmath>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/program/onednn/places.h"

namespace headroom::host {
namespace {

HEADROOM_VECTORISED void magnitudes(const float* __restrict x, float* __restrict y,
                                    std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) y[i] = __builtin_fabsf(x[i]);
}

HEADROOM_VECTORISED void keep_from(const float* __restrict x, float threshold,
                                   float* __restrict mask, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const float magnitude = __builtin_fabsf(x[i]);
    mask[i] = magnitude >= threshold && magnitude > 0 ? 1.0F : 0.0F;
  }
}

HEADROOM_VECTORISED void multiply(const float* x, const float* mask, float* y, std::size_t begin,
                                  std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) y[i] = x[i] * mask[i];
}

struct Schedule {
  double initial, final;
  double begin, end, every;

  bool is_due(double step) const {
    return step >= begin && step <= end && std::fmod(step - begin, every) == 0;
  }
  // Zhu and Gupta 2017, "To prune, or not to prune", equation 1.
  double share_at(double step) const {
    const double left = end > begin ? (end - step) / (end - begin) : 0;
    return final + (initial - final) * left * left * left;
  }
};

}  // namespace

Kernel make_magnitude_mask(const Op& op, const Program& program) {
  const Schedule schedule = {
      op.number("initial"), op.number("final"), static_cast<double>(op.integer("begin")),
      static_cast<double>(op.integer("end")), static_cast<double>(op.integer("every"))};
  const std::size_t count = float_count(program, op.inputs[0]);
  const auto elements = static_cast<std::size_t>(element_count(program.value(op.inputs[0]).shape));
  return [=](const OpBuffers& buffers) {
    const double step = *floats(buffers.inputs[2]);
    if (!schedule.is_due(step)) return;
    const double share = schedule.share_at(step) * static_cast<double>(elements);
    const auto pruned = std::min(elements - 1, static_cast<std::size_t>(std::lround(share)));
    if (pruned == 0) return;
    const float* weight = floats(buffers.inputs[0]);
    float* scratch = floats(buffers.outputs[0]);
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      magnitudes(weight, scratch, begin, end);
    });
    // Padding sorts before every element.
    float* const first_kept = scratch + (count - elements + pruned);
    std::nth_element(scratch, first_kept, scratch + count);
    const float threshold = *first_kept;
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      keep_from(weight, threshold, floats(buffers.inputs[1]), begin, end);
    });
  };
}

Kernel make_two_of_four_mask(const Op& op, const Program& program) {
  const Value& value = program.value(op.inputs[0]);
  const onednn::MatrixPlaces places = onednn::matrix_places(value);
  const auto begin_step = static_cast<double>(op.integer("begin"));
  // Distance in columns between neighbours along the second dimension: the product of the later
  // dimensions.
  const std::size_t apart = places.columns.size() / static_cast<std::size_t>(value.shape[1]);
  return [=](const OpBuffers& buffers) {
    if (*floats(buffers.inputs[2]) != begin_step) return;
    const float* weight = floats(buffers.inputs[0]);
    float* mask = floats(buffers.inputs[1]);
    in_parallel(places.rows.size(), row_grain(places.columns.size()),
                [&](std::size_t begin, std::size_t end) {
                  for (std::size_t i = begin; i < end; ++i)
                    for (std::size_t j = 0; j < places.columns.size(); ++j) {
                      if (j / apart % 4 != 0) continue;
                      std::array<std::size_t, 4> group;
                      for (std::size_t k = 0; k < 4; ++k)
                        group[k] = places.rows[i] + places.columns[j + k * apart];
                      std::stable_sort(group.begin(), group.end(), [&](auto a, auto b) {
                        return std::abs(weight[a]) > std::abs(weight[b]);
                      });
                      for (std::size_t k = 0; k < 4; ++k) mask[group[k]] = k < 2 ? 1.0F : 0.0F;
                    }
                });
  };
}

Kernel make_apply_mask(const Op& op, const Program& program) {
  return [count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    float* weight = floats(buffers.inputs[0]);
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      multiply(weight, floats(buffers.inputs[1]), weight, begin, end);
    });
  };
}

Kernel make_masked(const Op& op, const Program& program) {
  return [count = float_count(program, op.inputs[0])](const OpBuffers& buffers) {
    in_parallel(count, [&](std::size_t begin, std::size_t end) {
      multiply(floats(buffers.inputs[0]), floats(buffers.inputs[1]), floats(buffers.outputs[0]),
               begin, end);
    });
  };
}

}  // namespace headroom::host
