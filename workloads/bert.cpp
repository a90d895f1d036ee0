// BERT (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"), trained as a
// masked language model: the encoder with normalisation after each residual sum, and a head whose
// output weights are the token embeddings. No next-sentence head and no pooler.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/workload.h"
#include "workloads/choice.h"
#include "workloads/data/held_out_text.h"
#include "workloads/data/masked_text_batches.h"
#include "workloads/data/text_dataset.h"
#include "workloads/lengths.h"
#include "workloads/preset.h"
#include "workloads/transformer.h"

namespace headroom {
namespace {

struct Size {
  std::int64_t layers, hidden, heads;
};

// base and large: the paper's; tiny and mini: Turc et al. 2019, "Well-Read Students Learn Better".
const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> table = {{"tiny", {2, 128, 2}},
                                                    {"mini", {4, 256, 4}},
                                                    {"base", {12, 768, 12}},
                                                    {"large", {24, 1024, 16}}};
  return table;
}

// paper: Devlin et al. 2019, appendix A.2.
const Presets& presets() {
  static const Presets table = {
      {"tiny", {{"size", "tiny"}, {"batch", "4"}, {"sequence", "32"}, {"vocabulary", "500"}}},
      {"small", {{"size", "mini"}, {"batch", "8"}, {"sequence", "128"}, {"vocabulary", "8000"}}},
      {"paper", {{"size", "large"}, {"batch", "256"}, {"sequence", "512"}}}};
  return table;
}

struct Options {
  std::int64_t batch, sequence, layers, hidden, heads, vocabulary;
  double dropout;
  Head head;
  std::int64_t positions;  // that the table has
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
                            .epsilon = 1e-12});
  ProgramBuilder& builder = net.builder();
  builder.set_phase(phase);
  const ValueId tokens = net.token_input("tokens");
  const ValueId positions = net.token_input("positions");
  const ValueId segments = net.token_input("segments");
  net.attend_where(builder.input("mask", {options.batch, options.sequence}, DType::s32));
  const bool gathered = options.head == Head::gathered;
  const std::int64_t guesses =
      gathered ? options.batch * predictions_of(options.sequence) : net.tokens();
  const ValueId rows = gathered ? builder.input("guessed", {guesses}, DType::s32) : kNoValue;
  const ValueId labels = builder.input("labels", {guesses}, DType::s32);
  net.take_key();

  const ValueId table = net.table("embeddings.tokens", options.vocabulary);
  ValueId x = net.look_up("embeddings.tokens", table, tokens);
  const auto embed = [&](const std::string& name, std::int64_t count, ValueId numbers) {
    x = net.add(name + ".add", x, net.look_up(name, net.table(name, count), numbers));
  };
  embed("embeddings.positions", options.positions, positions);
  embed("embeddings.segments", 2, segments);
  x = net.dropout("embeddings.dropout", net.norm("embeddings.norm", x));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::string attention = fmt::format("encoder.{}.attention", i);
    const std::string feed_forward = fmt::format("encoder.{}.feed_forward", i);
    x = net.norm(attention + ".norm", net.add(attention + ".add", net.attention(attention, x), x));
    x = net.norm(feed_forward + ".norm",
                 net.add(feed_forward + ".add", net.feed_forward(feed_forward, x), x));
  }
  if (gathered) x = builder.emit_one("gather_rows", "head.guessed", {x, rows});
  x = net.linear("head.transform", x, options.hidden);
  x = net.norm("head.norm", builder.emit_one("gelu", "head.gelu", {x}));
  const ValueId bias = net.zeros("head.bias", options.vocabulary);
  return {builder.emit_one("linear", "head.logits", {x, table, bias}), labels};
}

Options read_options(const Spec& spec) {
  const Size size = chosen(spec, "size", "base", sizes());
  Options options = {.batch = spec.integer("batch", 8),
                     .sequence = spec.integer("sequence", 128),
                     .layers = spec.integer("layers", size.layers),
                     .hidden = spec.integer("hidden", size.hidden),
                     .heads = spec.integer("heads", size.heads),
                     .vocabulary = spec.integer("vocabulary", 30522),
                     .dropout = spec.number("dropout", 0.1),
                     .head = chosen<Head>(spec, "head", "gathered",
                                          {{"gathered", Head::gathered}, {"full", Head::full}}),
                     .positions = 0};
  options.positions = std::max<std::int64_t>(512, options.sequence);
  require_at_least(spec, {{"batch", options.batch, 1},
                          {"sequence", options.sequence, kShortestSequence},
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

class Bert final : public Workload {
 public:
  explicit Bert(const Spec& spec)
      : options_(read_options(spec)),
        data_(spec.text("data", "")),
        labels_(chosen<TextLabels>(
            spec, "labels", "as_read",
            {{"as_read", TextLabels::as_read}, {"shuffled", TextLabels::shuffled}})),
        lengths_(read_lengths(spec, options_.sequence, kShortestSequence)),
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
    const MaskedTextOptions options = {.batch = options_.batch,
                                       .sequence = options_.sequence,
                                       .seed = seed,
                                       .head = options_.head,
                                       .labels = labels_};
    EncodedText text = read_token_set(directory);
    if (evaluate_every_ == 0) return make_masked_text_batches(std::move(text), options);
    return with_held_out_text(std::move(text), options.sequence, [options](EncodedText part) {
      return make_masked_text_batches(std::move(part), options);
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
  TextLabels labels_;
  std::vector<std::int64_t> lengths_;  // of the sequences of a batch, the longest first
  std::int64_t evaluate_every_;
};

const bool registered = Registry<WorkloadKind>::instance().add(
    {.name = "bert",
     .summary =
         "Masked language model: size tiny, mini, base or large, head gathered or full; preset "
         "tiny, small or paper",
     .parameters = {"batch", "data", "dropout", "evaluate_every", "head", "heads", "hidden",
                    "labels", "layers", "lengths", "preset", "sequence", "size", "vocabulary"},
     .examples = {"bert(batch=2,sequence=16,size=tiny,vocabulary=500)",
                  "bert(lengths=bucketed,preset=tiny,vocabulary=500)",
                  "bert(batch=1,dropout=0,head=full,heads=3,hidden=48,layers=1,sequence=11,"
                  "size=tiny,vocabulary=500)"},
     .create = [](const Spec& spec) {
       return std::make_unique<Bert>(with_preset(spec, presets()));
     }});

}  // namespace
}  // namespace headroom
