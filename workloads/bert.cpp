// BERT (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"), trained as a
// masked language model: the encoder with normalisation after each residual sum, and a head whose
// output weights are the token embeddings. No next-sentence head and no pooler.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/workload.h"
#include "workloads/data/masked_text_batches.h"
#include "workloads/data/text_dataset.h"

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

struct Options {
  std::int64_t batch, sequence, layers, hidden, heads, vocabulary;
  double dropout;
  Head head;
};

// Token-major throughout: activations are [batch·sequence, hidden], and attention strides through
// them head by head, so that no tensor is reshaped or transposed.
class Network {
 public:
  Network(Program& program, const Options& options) : builder_(program), options_(options) {}

  ValueId loss() {
    const std::int64_t count = options_.batch * options_.sequence;
    const ValueId tokens = builder_.input("tokens", {count}, DType::s32);
    const ValueId positions = builder_.input("positions", {count}, DType::s32);
    const ValueId segments = builder_.input("segments", {count}, DType::s32);
    mask_ = builder_.input("mask", {options_.batch, options_.sequence}, DType::s32);
    const bool gathered = options_.head == Head::gathered;
    const std::int64_t guesses =
        gathered ? options_.batch * predictions_of(options_.sequence) : count;
    const ValueId rows = gathered ? builder_.input("guessed", {guesses}, DType::s32) : kNoValue;
    const ValueId labels = builder_.input("labels", {guesses}, DType::s32);
    if (options_.dropout > 0) key_ = builder_.input("dropout_key", {2}, DType::s32);

    const ValueId table = embedding("embeddings.tokens", options_.vocabulary);
    ValueId x = builder_.emit_one("gather_rows", "embeddings.tokens", {table, tokens});
    x = embed("embeddings.positions", x, std::max<std::int64_t>(512, options_.sequence), positions);
    x = embed("embeddings.segments", x, 2, segments);
    x = dropout("embeddings.dropout", norm("embeddings.norm", x));
    for (std::int64_t i = 0; i < options_.layers; ++i) x = layer(fmt::format("encoder.{}", i), x);
    if (gathered) x = builder_.emit_one("gather_rows", "head.guessed", {x, rows});
    x = linear("head.transform", x, options_.hidden);
    x = norm("head.norm", builder_.emit_one("gelu", "head.gelu", {x}));
    const ValueId bias = zeros("head.bias", options_.vocabulary);
    const ValueId logits = builder_.emit_one("linear", "head.logits", {x, table, bias});
    return builder_.emit("softmax_cross_entropy", "loss", {logits, labels})[0];
  }

 private:
  ValueId embedding(const std::string& name, std::int64_t rows) {
    return builder_.persistent(name + ".weight", {rows, options_.hidden}, Role::weight,
                               {Fill::normal, kDeviation});
  }
  ValueId zeros(const std::string& name, std::int64_t size) {
    return builder_.persistent(name, {size}, Role::weight, {Fill::constant, 0});
  }

  ValueId embed(const std::string& name, ValueId x, std::int64_t rows, ValueId numbers) {
    const ValueId found = builder_.emit_one("gather_rows", name, {embedding(name, rows), numbers});
    return builder_.emit_one("add", name + ".add", {x, found});
  }

  ValueId linear(const std::string& name, ValueId x, std::int64_t outputs) {
    const std::int64_t inputs = builder_.program().value(x).shape[1];
    const ValueId weight = builder_.persistent(name + ".weight", {outputs, inputs}, Role::weight,
                                               {Fill::normal, kDeviation});
    return builder_.emit_one("linear", name, {x, weight, zeros(name + ".bias", outputs)});
  }

  ValueId norm(const std::string& name, ValueId x) {
    const ValueId scale =
        builder_.persistent(name + ".scale", {options_.hidden}, Role::weight, {Fill::constant, 1});
    return builder_.emit("layer_norm", name, {x, scale, zeros(name + ".shift", options_.hidden)},
                         {{"epsilon", 1e-12}})[0];
  }

  // Each dropout draws from a stream of its own.
  ValueId dropout(const std::string& name, ValueId x) {
    if (options_.dropout == 0) return x;
    return builder_.emit("dropout", name, {x, key_},
                         {{"rate", options_.dropout}, {"stream", next_stream_++}})[0];
  }

  ValueId layer(const std::string& name, ValueId x) {
    ValueId y = attention(name + ".attention", x);
    y = dropout(name + ".attention.dropout",
                linear(name + ".attention.output", y, options_.hidden));
    x = norm(name + ".attention.norm", builder_.emit_one("add", name + ".attention.add", {y, x}));
    y = linear(name + ".feed_forward.inner", x, 4 * options_.hidden);
    y = builder_.emit_one("gelu", name + ".feed_forward.gelu", {y});
    y = dropout(name + ".feed_forward.dropout",
                linear(name + ".feed_forward.output", y, options_.hidden));
    return norm(name + ".feed_forward.norm",
                builder_.emit_one("add", name + ".feed_forward.add", {y, x}));
  }

  ValueId attention(const std::string& name, ValueId x) {
    const ValueId query = linear(name + ".query", x, options_.hidden);
    const ValueId key = linear(name + ".key", x, options_.hidden);
    const ValueId value = linear(name + ".value", x, options_.hidden);
    const Shape batch = {options_.batch, options_.heads};
    const ValueId scores = builder_.emit_one(
        "batched_matmul", name + ".scores", {query, key},
        {{"batch", batch}, {"transposed", Shape{0, 1}}, {"merged", Shape{1, 1, 0}}});
    const std::int64_t width = options_.hidden / options_.heads;
    const ValueId weights =
        builder_.emit_one("masked_softmax", name + ".softmax", {scores, mask_},
                          {{"scale", 1 / std::sqrt(static_cast<double>(width))}});
    return builder_.emit_one(
        "batched_matmul", name + ".context", {dropout(name + ".softmax.dropout", weights), value},
        {{"batch", batch}, {"transposed", Shape{0, 0}}, {"merged", Shape{0, 1, 1}}});
  }

  static constexpr double kDeviation = 0.02;  // the paper's code

  ProgramBuilder builder_;
  const Options& options_;
  ValueId mask_ = kNoValue;
  ValueId key_ = kNoValue;
  std::int64_t next_stream_ = 0;
};

template <typename Choice>
Choice chosen(const Spec& spec, const std::string& key, const std::string& otherwise,
              const std::map<std::string, Choice>& choices) {
  const std::string value = spec.text(key, otherwise);
  const auto found = choices.find(value);
  if (found != choices.end()) return found->second;
  std::string known;
  for (const auto& [name, choice] : choices) known += (known.empty() ? "" : ", ") + name;
  throw InputError(fmt::format("{}: {} '{}' does not exist; take one of {}", spec.to_string(), key,
                               value, known));
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
                                          {{"gathered", Head::gathered}, {"full", Head::full}})};
  for (const auto& [key, value, least] :
       {std::tuple("batch", options.batch, std::int64_t{1}),
        std::tuple("sequence", options.sequence, kShortestSequence),
        std::tuple("layers", options.layers, std::int64_t{1}),
        std::tuple("hidden", options.hidden, std::int64_t{2}),
        std::tuple("heads", options.heads, std::int64_t{1}),
        std::tuple("vocabulary", options.vocabulary, std::int64_t{kFirstTextToken} + 1)})
    if (value < least)
      throw InputError(fmt::format("{}: {} is {}, but must be at least {}", spec.to_string(), key,
                                   value, least));
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
            {{"as_read", TextLabels::as_read}, {"shuffled", TextLabels::shuffled}})) {}

  Program training_forward() const override {
    Program program;
    program.name = "train";
    program.loss = Network(program, options_).loss();
    program.results = {program.loss};
    return program;
  }

  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return options_.batch; }
  std::vector<std::filesystem::path> data_files() const override { return text_files(data_); }

  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    const auto directory =
        token_set_directory(text_files(data_), static_cast<std::size_t>(options_.vocabulary));
    return make_masked_text_batches(read_token_set(directory), {.batch = options_.batch,
                                                                .sequence = options_.sequence,
                                                                .seed = seed,
                                                                .head = options_.head,
                                                                .labels = labels_});
  }

 private:
  Options options_;
  std::string data_;
  TextLabels labels_;
};

const bool registered = Registry<WorkloadKind>::instance().add(
    {.name = "bert",
     .summary = "Masked language model: size tiny, mini, base or large, head gathered or full",
     .parameters = {"batch", "data", "dropout", "head", "heads", "hidden", "labels", "layers",
                    "sequence", "size", "vocabulary"},
     .examples = {"bert(batch=2,sequence=16,size=tiny,vocabulary=500)",
                  "bert(batch=1,dropout=0,head=full,heads=3,hidden=48,layers=1,sequence=11,"
                  "size=tiny,vocabulary=500)"},
     .create = [](const Spec& spec) { return std::make_unique<Bert>(spec); }});

}  // namespace
}  // namespace headroom
