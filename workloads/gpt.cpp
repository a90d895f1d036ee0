// GPT (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; sizes of Brown
// et al. 2020, "Language Models are Few-Shot Learners", table 2.1): a stack of causal decoders,
// normalisation before each branch, positions learnt, the head without bias on the token
// embeddings. Dense attention in every layer, where GPT-3 alternates with banded ones; GELU by the
// error function, where GPT's is the tanh approximation. Neither changes what is kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/workload.h"
#include "workloads/choice.h"
#include "workloads/data/held_out_text.h"
#include "workloads/data/next_token_batches.h"
#include "workloads/data/text_dataset.h"
#include "workloads/lengths.h"
#include "workloads/preset.h"
#include "workloads/transformer.h"

namespace headroom {
namespace {

struct Size {
  std::int64_t layers, hidden, heads;
};

// Where the table's heads do not divide the width as printed (xl: 24 of 128 in 2048; 13b: 40 of
// 128 in 5140), one of the two is corrected to what the width of a head of 128 leaves.
const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> table = {
      {"tiny", {2, 128, 2}},     {"small", {12, 768, 12}}, {"medium", {24, 1024, 16}},
      {"large", {24, 1536, 16}}, {"xl", {24, 2048, 16}},   {"2.7b", {32, 2560, 32}},
      {"6.7b", {32, 4096, 32}},  {"13b", {40, 5120, 40}},  {"175b", {96, 12288, 96}}};
  return table;
}

const Presets& presets() {
  static const Presets table = {
      {"tiny", {{"size", "tiny"}, {"batch", "4"}, {"sequence", "32"}, {"vocabulary", "500"}}},
      {"small", {{"size", "small"}, {"batch", "4"}, {"sequence", "256"}, {"vocabulary", "8000"}}},
      {"paper", {{"size", "175b"}, {"batch", "1"}, {"sequence", "2048"}}}};
  return table;
}

struct Options {
  std::int64_t batch, sequence, context, layers, hidden, heads, vocabulary;
  double dropout;
};

// Of the head: what a loss or a count of hits is made of.
struct Guesses {
  ValueId logits, labels;
};

Guesses build(Program& program, const Options& options, Phase phase) {
  Transformer net(program, {.batch = options.batch,
                            .sequence = options.sequence,
                            .hidden = options.hidden,
                            .heads = options.heads,
                            .dropout = options.dropout,
                            .epsilon = 1e-5});
  net.builder().set_phase(phase);
  const ValueId tokens = net.token_input("tokens");
  const ValueId positions = net.token_input("positions");
  const ValueId labels = net.token_input("labels");
  net.take_key();

  const ValueId table = net.table("embeddings.tokens", options.vocabulary);
  const ValueId places = net.table("embeddings.positions", options.context);
  ValueId x = net.look_up("embeddings.tokens", table, tokens);
  x = net.add("embeddings.add", x, net.look_up("embeddings.positions", places, positions));
  x = net.dropout("embeddings.dropout", x);
  // Each of the branches that add up gets a smaller start.
  const double branch =
      Transformer::kDeviation / std::sqrt(2 * static_cast<double>(options.layers));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::string attention = fmt::format("decoder.{}.attention", i);
    const std::string feed_forward = fmt::format("decoder.{}.feed_forward", i);
    x = net.add(attention + ".add",
                net.attention(attention, net.norm(attention + ".norm", x), branch), x);
    x = net.add(feed_forward + ".add",
                net.feed_forward(feed_forward, net.norm(feed_forward + ".norm", x), branch), x);
  }
  x = net.norm("head.norm", x);
  const ValueId logits = net.builder().emit_one(
      "batched_matmul", "head.logits", {x, table},
      {{"batch", Shape{1, 1}}, {"transposed", Shape{0, 1}}, {"merged", Shape{1, 1, 1}}});
  return {logits, labels};
}

Options read_options(const Spec& spec) {
  const Size size = chosen(spec, "size", "small", sizes());
  Options options = {.batch = spec.integer("batch", 8),
                     .sequence = spec.integer("sequence", 2048),
                     .context = 0,
                     .layers = spec.integer("layers", size.layers),
                     .hidden = spec.integer("hidden", size.hidden),
                     .heads = spec.integer("heads", size.heads),
                     .vocabulary = spec.integer("vocabulary", 50257),
                     .dropout = spec.number("dropout", 0.1)};
  options.context = spec.integer("context", std::max<std::int64_t>(2048, options.sequence));
  require_at_least(spec, {{"batch", options.batch, 1},
                          {"sequence", options.sequence, 2},
                          {"context", options.context, options.sequence},
                          {"layers", options.layers, 1},
                          {"hidden", options.hidden, 2},
                          {"heads", options.heads, 1},
                          {"vocabulary", options.vocabulary, kFirstTextToken + 1}});
  if (options.hidden % options.heads != 0)
    throw InputError(fmt::format("{}: hidden {} is not a multiple of heads {}", spec.to_string(),
                                 options.hidden, options.heads));
  if (options.dropout < 0 || options.dropout >= 1)
    throw InputError(fmt::format("{}: dropout must be at least 0 and below 1", spec.to_string()));
  return options;
}

class Gpt final : public Workload {
 public:
  explicit Gpt(const Spec& spec)
      : options_(read_options(spec)),
        data_(spec.text("data", "")),
        lengths_(read_lengths(spec, options_.sequence, 2)),
        evaluate_every_(spec.integer("evaluate_every", 0)) {
    require_at_least(spec, {{"evaluate_every", evaluate_every_, 0}});
  }

  Program training_forward() const override { return training_forward(options_.sequence); }

  std::vector<std::vector<Program>> training_shapes() const override {
    std::vector<std::vector<Program>> shapes;
    for (const std::int64_t length : lengths_) shapes.push_back({training_forward(length)});
    return shapes;
  }
  std::vector<std::size_t> shape_cycle() const override { return length_cycle(lengths_.size()); }

  int evaluation_interval() const override { return static_cast<int>(evaluate_every_); }
  std::optional<Program> evaluation() const override {
    if (evaluate_every_ == 0) return std::nullopt;
    Options options = options_;
    options.dropout = 0;
    Program program{.name = "evaluate"};
    const auto [logits, labels] = build(program, options, Phase::evaluate);
    ProgramBuilder builder(program, Phase::evaluate);
    program.results = {builder.emit_one("count_correct", "correct", {logits, labels})};
    return program;
  }
  std::int64_t batch_size() const override { return options_.batch; }
  std::vector<std::filesystem::path> data_files() const override { return text_files(data_); }

  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    const auto directory =
        token_set_directory(text_files(data_), static_cast<std::size_t>(options_.vocabulary));
    const NextTokenOptions options = {
        .batch = options_.batch, .sequence = options_.sequence, .seed = seed};
    EncodedText text = read_token_set(directory);
    if (evaluate_every_ == 0) return make_next_token_batches(std::move(text), options);
    return with_held_out_text(std::move(text), options.sequence + 1, [options](EncodedText part) {
      return make_next_token_batches(std::move(part), options);
    });
  }

 private:
  Program training_forward(std::int64_t length) const {
    Options options = options_;
    options.sequence = length;
    Program program;
    program.name = "train";
    const auto [logits, guessed] = build(program, options, Phase::forward);
    ProgramBuilder builder(program);
    program.loss = builder.emit("softmax_cross_entropy", "loss", {logits, guessed})[0];
    program.results = {program.loss};
    return program;
  }

  Options options_;
  std::string data_;
  std::vector<std::int64_t> lengths_;  // of the sequences of a batch, the longest first
  std::int64_t evaluate_every_;
};

const bool registered = Registry<WorkloadKind>::instance().add(
    {.name = "gpt",
     .summary = "Causal language model: size tiny, small, medium, large, xl, 2.7b, 6.7b, 13b or "
                "175b; preset tiny, small or paper",
     .parameters = {"batch", "context", "data", "dropout", "evaluate_every", "heads", "hidden",
                    "layers", "lengths", "preset", "sequence", "size", "vocabulary"},
     .examples = {"gpt(batch=2,context=16,sequence=16,size=tiny,vocabulary=500)",
                  "gpt(lengths=bucketed,preset=tiny,vocabulary=500)",
                  "gpt(lengths=ragged,preset=tiny,vocabulary=500)",
                  "gpt(batch=1,context=12,dropout=0,heads=3,hidden=48,layers=1,sequence=11,"
                  "size=tiny,vocabulary=500)"},
     .create = [](const Spec& spec) {
       return std::make_unique<Gpt>(with_preset(spec, presets()));
     }});

}  // namespace
}  // namespace headroom
