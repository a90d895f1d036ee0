// Adafactor in place, using the positions of rows and columns. No update of the weight's size is
// ever stored: it is computed twice, once for its norm and once to be applied.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/program/onednn/places.h"

namespace headroom::host {
namespace {

struct AdafactorRule {
  double clip_threshold, decay_rate, epsilon1, epsilon2, learning_rate;
  bool relative;
};

// Sums over fixed parts of the rows, so that they do not depend on the number of threads.
struct Part {
  double updates = 0;  // squared
  double weights = 0;
};

class Adafactor {
 public:
  Adafactor(AdafactorRule rule, onednn::MatrixPlaces places, bool factored)
      : rule_(rule),
        rows_(std::move(places.rows)),
        columns_(std::move(places.columns)),
        grain_(row_grain(columns_.size())),
        parts_((rows_.size() + grain_ - 1) / grain_),
        factored_(factored) {}

  void run(const OpBuffers& buffers) {
    const double steps = *floats(buffers.inputs.back());
    decay_ = static_cast<float>(1 - std::pow(steps, -rule_.decay_rate));
    float* weight = floats(buffers.inputs[0]);
    const float* gradient = floats(buffers.inputs[1]);
    if (!factored_) {
      float* square = floats(buffers.inputs[2]);
      for (std::size_t j = 0; j < columns_.size(); ++j)
        square[j] = decayed(square[j], squared(gradient[columns_[j]]));
      step(steps, weight, gradient, [&](std::size_t, std::size_t j) { return square[j]; });
      return;
    }
    float* row_square = floats(buffers.inputs[2]);
    float* column_square = floats(buffers.inputs[3]);
    average_rows(gradient, row_square);
    average_columns(gradient, column_square);
    const double sum = std::accumulate(row_square, row_square + rows_.size(), 0.0);
    const auto mean = static_cast<float>(sum / static_cast<double>(rows_.size()));
    step(steps, weight, gradient,
         [&](std::size_t i, std::size_t j) { return row_square[i] / mean * column_square[j]; });
  }

 private:
  float squared(float gradient) const {
    return gradient * gradient + static_cast<float>(rule_.epsilon1);
  }
  float decayed(float old, float now) const { return decay_ * old + (1 - decay_) * now; }

  void average_rows(const float* gradient, float* row_square) const {
    in_parallel(rows_.size(), grain_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        double sum = 0;
        for (const std::size_t column : columns_) sum += squared(gradient[rows_[i] + column]);
        row_square[i] =
            decayed(row_square[i], static_cast<float>(sum / static_cast<double>(columns_.size())));
      }
    });
  }

  // Processes a few columns at a time over all rows, so that the gradient is read along its rows.
  void average_columns(const float* gradient, float* column_square) const {
    constexpr std::size_t kColumns = 64;
    in_parallel(columns_.size(), kColumns, [&](std::size_t begin, std::size_t end) {
      double sums[kColumns] = {};
      for (const std::size_t row : rows_)
        for (std::size_t j = begin; j < end; ++j)
          sums[j - begin] += squared(gradient[row + columns_[j]]);
      for (std::size_t j = begin; j < end; ++j)
        column_square[j] =
            decayed(column_square[j],
                    static_cast<float>(sums[j - begin] / static_cast<double>(rows_.size())));
    });
  }

  template <typename SquareAt>
  void step(double steps, float* weight, const float* gradient, SquareAt square_at) {
    const auto update = [&](std::size_t i, std::size_t j) {
      return gradient[rows_[i] + columns_[j]] / std::sqrt(square_at(i, j));
    };
    in_parallel(rows_.size(), grain_, [&](std::size_t begin, std::size_t end) {
      Part part;
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t j = 0; j < columns_.size(); ++j) {
          const double u = update(i, j), w = weight[rows_[i] + columns_[j]];
          part.updates += u * u;
          part.weights += w * w;
        }
      parts_[begin / grain_] = part;
    });
    Part all;
    for (const Part& part : parts_) {
      all.updates += part.updates;
      all.weights += part.weights;
    }
    const double count = static_cast<double>(rows_.size()) * static_cast<double>(columns_.size());
    double rate = rule_.learning_rate;
    if (rule_.relative)
      rate = std::max(rule_.epsilon2, std::sqrt(all.weights / count)) *
             std::min(0.01, 1 / std::sqrt(steps));
    const auto scale = static_cast<float>(
        rate / std::max(1.0, std::sqrt(all.updates / count) / rule_.clip_threshold));
    in_parallel(rows_.size(), grain_, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t j = 0; j < columns_.size(); ++j)
          weight[rows_[i] + columns_[j]] -= scale * update(i, j);
    });
  }

  AdafactorRule rule_;
  std::vector<std::size_t> rows_, columns_;
  std::size_t grain_;
  std::vector<Part> parts_;
  bool factored_;
  float decay_ = 0;
};

}  // namespace

Kernel make_adafactor(const Op& op, const Program& program) {
  const AdafactorRule rule = {op.number("clip_threshold"), op.number("decay_rate"),
                              op.number("epsilon1"),       op.number("epsilon2"),
                              op.number("learning_rate"),  op.integer("relative") == 1};
  const Value& weight = program.value(op.inputs[0]);
  return [adafactor = Adafactor(rule, onednn::matrix_places(weight), weight.shape.size() > 1)](
             const OpBuffers& buffers) mutable { adafactor.run(buffers); };
}

}  // namespace headroom::host
