#include "workloads/text_model.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/error.h"
#include "workloads/data/text_dataset.h"
#include "workloads/lengths.h"

namespace headroom {
namespace {

TextModelOptions read_options(const Spec& spec, const TextModelSizes& sizes,
                              const TextModelDefaults& defaults) {
  const TextModelSize size = chosen(spec, "size", defaults.size, sizes);
  const TextModelOptions options = {.batch = spec.integer("batch", 8),
                                    .sequence = spec.integer("sequence", defaults.sequence),
                                    .layers = spec.integer("layers", size.layers),
                                    .hidden = spec.integer("hidden", size.hidden),
                                    .heads = spec.integer("heads", size.heads),
                                    .vocabulary = spec.integer("vocabulary", defaults.vocabulary),
                                    .dropout = spec.number("dropout", 0.1)};
  require_at_least(spec, {{"batch", options.batch, 1},
                          {"sequence", options.sequence, defaults.shortest_sequence},
                          {"layers", options.layers, 1},
                          {"hidden", options.hidden, 2},
                          {"heads", options.heads, 1},
                          {"vocabulary", options.vocabulary, kFirstTextToken + 1}});
  require_buildable(spec, options.layers);
  if (options.hidden % options.heads != 0)
    throw InputError(fmt::format("{}: hidden {} is not a multiple of heads {}", spec.to_string(),
                                 options.hidden, options.heads));
  if (options.dropout < 0 || options.dropout >= 1)
    throw InputError(fmt::format("{}: dropout must be at least 0 and below 1", spec.to_string()));
  return options;
}

}  // namespace

TextModel::TextModel(const Spec& spec, const TextModelSizes& sizes,
                     const TextModelDefaults& defaults)
    : options_(read_options(spec, sizes, defaults)),
      data_(spec.text("data", "")),
      lengths_(read_lengths(spec, options_.sequence, defaults.shortest_sequence)),
      evaluate_every_(spec.integer("evaluate_every", 0)) {
  require_at_least(spec, {{"evaluate_every", evaluate_every_, 0}});
}

std::vector<std::vector<Program>> TextModel::training_shapes() const {
  std::vector<std::vector<Program>> shapes;
  for (const std::int64_t length : lengths_) shapes.push_back({training_forward(length)});
  return shapes;
}

std::vector<std::size_t> TextModel::shape_cycle() const { return length_cycle(lengths_.size()); }

std::optional<Program> TextModel::evaluation() const {
  if (evaluate_every_ == 0) return std::nullopt;
  TextModelOptions options = options_;
  options.dropout = 0;
  Program program{.name = "evaluate"};
  const auto [logits, labels] = build(program, options, Phase::evaluate);
  ProgramBuilder builder(program, Phase::evaluate);
  program.results = {builder.emit_one("count_correct", "correct", {logits, labels})};
  return program;
}

std::vector<std::filesystem::path> TextModel::data_files() const { return text_files(data_); }

std::unique_ptr<BatchSource> TextModel::open_data(std::uint64_t seed) const {
  EncodedText text = read_token_set(
      token_set_directory(text_files(data_), static_cast<std::size_t>(options_.vocabulary)));
  const TextBatches make = batches(seed);
  if (evaluate_every_ == 0) return make(std::move(text));
  return with_held_out_text(std::move(text), shortest_text(), make);
}

Program TextModel::training_forward(std::int64_t sequence) const {
  TextModelOptions options = options_;
  options.sequence = sequence;
  Program program;
  program.name = "train";
  const auto [logits, guessed] = build(program, options, Phase::forward);
  ProgramBuilder builder(program);
  program.loss = builder.emit("softmax_cross_entropy", "loss", {logits, guessed})[0];
  program.results = {program.loss};
  return program;
}

}  // namespace headroom
