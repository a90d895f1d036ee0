#include "workloads/data/masked_text_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "harness/base/error.h"
#include "workloads/data/numbers.h"

namespace headroom {
namespace {

class MaskedTextBatches final : public BatchSource {
 public:
  MaskedTextBatches(EncodedText text, MaskedTextOptions options)
      : text_(std::move(text)), options_(options), random_(options.seed), keys_(options.seed) {
    if (static_cast<std::int64_t>(text_.tokens.size()) < options_.sequence)
      throw InputError(fmt::format(
          "the text has {} tokens, but one sequence takes {}; name more text with data= or take a "
          "shorter sequence",
          text_.tokens.size(), options_.sequence));
  }

  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    std::size_t next = 0;
    const Numbers tokens = numbers(inputs[next++]);
    const Numbers positions = numbers(inputs[next++]);
    const Numbers segments = numbers(inputs[next++]);
    const Numbers mask = numbers(inputs[next++]);
    const Numbers rows = options_.head == Head::gathered ? numbers(inputs[next++]) : Numbers();
    const Numbers labels = numbers(inputs[next++]);
    std::ranges::fill(rows, 0);
    std::ranges::fill(labels, -1);
    const std::size_t size = tokens.size() / static_cast<std::size_t>(options_.batch);
    for (std::size_t first = 0; first < tokens.size(); first += size) {
      const std::size_t length =
          write_text(tokens.subspan(first, size), segments.subspan(first, size));
      for (std::size_t i = 0; i < size; ++i) {
        positions[first + i] = static_cast<std::int32_t>(i);
        mask[first + i] = i < length ? 1 : 0;
      }
      hide(tokens, rows, labels, first, size, length);
    }
    if (options_.labels == TextLabels::shuffled) permute(labels);
    if (next < inputs.size()) keys_.write_next(numbers(inputs[next]));
  }

  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}

 private:
  std::size_t below(std::size_t count) { return random_() % count; }

  // Writes [CLS] piece [SEP] piece [SEP], then padding; returns the length without padding.
  std::size_t write_text(Numbers tokens, Numbers segments) {
    const bool is_short = below(10) == 0;
    const std::size_t least = kShortestSequence;
    const std::size_t length = is_short ? least + below(tokens.size() - least + 1) : tokens.size();
    const std::size_t text = length - 3;
    const std::size_t split = 1 + below(text - 1);
    std::size_t read = below(text_.tokens.size() - text + 1);
    std::ranges::fill(tokens, kPadToken);
    std::ranges::fill(segments, 0);
    tokens[0] = kClassifyToken;
    for (std::size_t i = 1; i < length; ++i) {
      const bool separator = i == split + 1 || i == length - 1;
      tokens[i] = separator ? kSeparatorToken : text_.tokens[read++];
      segments[i] = i > split + 1 ? 1 : 0;
    }
    return length;
  }

  // Hides tokens in the sample that begins at `first` and has length `size` with its padding.
  void hide(Numbers tokens, Numbers rows, Numbers labels, std::size_t first, std::size_t size,
            std::size_t length) {
    std::vector<std::size_t> candidates;
    for (std::size_t i = first; i < first + length; ++i)
      if (tokens[i] >= kFirstTextToken) candidates.push_back(i);
    const auto slots = static_cast<std::size_t>(predictions_of(static_cast<std::int64_t>(size)));
    const auto wanted =
        std::min({slots, candidates.size(),
                  static_cast<std::size_t>(predictions_of(static_cast<std::int64_t>(length)))});
    for (std::size_t p = 0; p < wanted; ++p) {
      std::swap(candidates[p], candidates[p + below(candidates.size() - p)]);
      const std::size_t at = candidates[p];
      const std::size_t slot = first / size * slots + p;
      if (options_.head == Head::gathered) rows[slot] = static_cast<std::int32_t>(at);
      labels[options_.head == Head::gathered ? slot : at] = tokens[at];
      const std::size_t draw = below(10);
      if (draw < 8) tokens[at] = kMaskToken;
      if (draw == 8)
        tokens[at] = kFirstTextToken +
                     static_cast<std::int32_t>(below(text_.vocabulary.size() - kFirstTextToken));
    }
  }

  void permute(Numbers labels) {
    std::vector<std::int32_t*> counted;
    for (std::int32_t& label : labels)
      if (label >= 0) counted.push_back(&label);
    for (std::size_t i = counted.size(); i > 1; --i) std::swap(*counted[i - 1], *counted[below(i)]);
  }

  EncodedText text_;
  MaskedTextOptions options_;
  std::mt19937_64 random_;
  DropoutKeys keys_;
};

}  // namespace

std::int64_t predictions_of(std::int64_t sequence) {
  return std::max<std::int64_t>(1, (sequence * 15 + 50) / 100);
}

std::unique_ptr<BatchSource> make_masked_text_batches(EncodedText text, MaskedTextOptions options) {
  return std::make_unique<MaskedTextBatches>(std::move(text), options);
}

}  // namespace headroom
