// BERT (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers"), trained as a
// masked language model: the encoder with normalisation after each residual sum, and a head whose
// output weights are the token embeddings. No next-sentence head and no pooler.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/base/registry.h"
#include "workloads/data/masked_text_batches.h"
#include "workloads/preset.h"
#include "workloads/text_model.h"

namespace headroom {
namespace {

// base and large: the paper's; tiny and mini: Turc et al. 2019, "Well-Read Students Learn Better".
const TextModelSizes& bert_sizes() {
  static const TextModelSizes table = {{"tiny", {2, 128, 2}},
                                       {"mini", {4, 256, 4}},
                                       {"base", {12, 768, 12}},
                                       {"large", {24, 1024, 16}}};
  return table;
}

// paper: Devlin et al. 2019, appendix A.2.
const Presets& bert_presets() {
  static const Presets table = {
      {"tiny", {{"size", "tiny"}, {"batch", "4"}, {"sequence", "32"}, {"vocabulary", "500"}}},
      {"small", {{"size", "mini"}, {"batch", "8"}, {"sequence", "128"}, {"vocabulary", "8000"}}},
      {"paper", {{"size", "large"}, {"batch", "256"}, {"sequence", "512"}}}};
  return table;
}

constexpr TextModelDefaults kBertDefaults = {
    .size = "base", .sequence = 128, .shortest_sequence = kShortestSequence, .vocabulary = 30522};

class Bert final : public TextModel {
 public:
  explicit Bert(const Spec& spec)
      : TextModel(spec, bert_sizes(), kBertDefaults),
        head_(chosen<Head>(spec, "head", "gathered",
                           {{"gathered", Head::gathered}, {"full", Head::full}})),
        labels_(chosen<TextLabels>(
            spec, "labels", "as_read",
            {{"as_read", TextLabels::as_read}, {"shuffled", TextLabels::shuffled}})) {}

 private:
  Guesses build(Program& program, const TextModelOptions& options, Phase phase) const override {
    Transformer net(program, options.transformer(1e-12));
    ProgramBuilder& builder = net.builder();
    builder.set_phase(phase);
    const ValueId tokens = net.token_input("tokens");
    const ValueId positions = net.token_input("positions");
    const ValueId segments = net.token_input("segments");
    net.attend_where(builder.input("mask", {options.batch, options.sequence}, DType::s32));
    const bool gathered = head_ == Head::gathered;
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
    embed("embeddings.positions", table_of_positions(), positions);
    embed("embeddings.segments", 2, segments);
    x = net.dropout("embeddings.dropout", net.norm("embeddings.norm", x));
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const std::string attention = fmt::format("encoder.{}.attention", i);
      const std::string feed_forward = fmt::format("encoder.{}.feed_forward", i);
      x = net.norm(attention + ".norm",
                   net.add(attention + ".add", net.attention(attention, x), x));
      x = net.norm(feed_forward + ".norm",
                   net.add(feed_forward + ".add", net.feed_forward(feed_forward, x), x));
    }
    if (gathered) x = builder.emit_one("gather_rows", "head.guessed", {x, rows});
    x = net.linear("head.transform", x, options.hidden);
    x = net.norm("head.norm", builder.emit_one("gelu", "head.gelu", {x}));
    const ValueId bias = net.zeros("head.bias", options.vocabulary);
    return {builder.emit_one("linear", "head.logits", {x, table, bias}), labels};
  }

  TextBatches batches(std::uint64_t seed) const override {
    return [made = MaskedTextOptions{.batch = options().batch,
                                     .sequence = options().sequence,
                                     .seed = seed,
                                     .head = head_,
                                     .labels = labels_}](EncodedText text) {
      return make_masked_text_batches(std::move(text), made);
    };
  }
  std::int64_t shortest_text() const override { return options().sequence; }

  // Rows of the table of positions: the paper's, or the longest sequence if that is more.
  std::int64_t table_of_positions() const {
    return std::max<std::int64_t>(512, options().sequence);
  }

  Head head_;
  TextLabels labels_;
};

const bool bert_is_registered = Registry<WorkloadKind>::instance().add(
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
       return std::make_unique<Bert>(with_preset(spec, bert_presets()));
     }});

}  // namespace
}  // namespace headroom
