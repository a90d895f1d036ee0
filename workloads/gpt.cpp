// GPT (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; sizes of Brown
// et al. 2020, "Language Models are Few-Shot Learners", table 2.1): a stack of causal decoders,
// normalisation before each branch, positions learnt, the head without bias on the token
// embeddings. Dense attention in every layer, where GPT-3 alternates with banded ones; GELU by the
// error function, where GPT's is the tanh approximation. Neither changes which values are kept for
// the backward pass.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/registry.h"
#include "workloads/choice.h"
#include "workloads/data/next_token_batches.h"
#include "workloads/preset.h"
#include "workloads/text_model.h"

namespace headroom {
namespace {

// Where the printed width is not the number of heads times 128 (xl: 24 heads in 2048; 13b: 40 in
// 5140), one of the two is corrected to match heads of width 128.
const TextModelSizes& gpt_sizes() {
  static const TextModelSizes table = {
      {"tiny", {2, 128, 2}},     {"small", {12, 768, 12}}, {"medium", {24, 1024, 16}},
      {"large", {24, 1536, 16}}, {"xl", {24, 2048, 16}},   {"2.7b", {32, 2560, 32}},
      {"6.7b", {32, 4096, 32}},  {"13b", {40, 5120, 40}},  {"175b", {96, 12288, 96}}};
  return table;
}

const Presets& gpt_presets() {
  static const Presets table = {
      {"tiny", {{"size", "tiny"}, {"batch", "4"}, {"sequence", "32"}, {"vocabulary", "500"}}},
      {"small", {{"size", "small"}, {"batch", "4"}, {"sequence", "256"}, {"vocabulary", "8000"}}},
      {"paper", {{"size", "175b"}, {"batch", "1"}, {"sequence", "2048"}}}};
  return table;
}

constexpr TextModelDefaults kGptDefaults = {
    .size = "small", .sequence = 2048, .shortest_sequence = 2, .vocabulary = 50257};

class Gpt final : public TextModel {
 public:
  explicit Gpt(const Spec& spec)
      : TextModel(spec, gpt_sizes(), kGptDefaults),
        context_(spec.integer("context", std::max<std::int64_t>(2048, options().sequence))) {
    require_at_least(spec, {{"context", context_, options().sequence}});
  }

 private:
  Guesses build(Program& program, const TextModelOptions& options, Phase phase) const override {
    Transformer net(program, options.transformer(1e-5));
    net.builder().set_phase(phase);
    const ValueId tokens = net.token_input("tokens");
    const ValueId positions = net.token_input("positions");
    const ValueId labels = net.token_input("labels");
    net.take_key();

    const ValueId table = net.table("embeddings.tokens", options.vocabulary);
    const ValueId places = net.table("embeddings.positions", context_);
    ValueId x = net.look_up("embeddings.tokens", table, tokens);
    x = net.add("embeddings.add", x, net.look_up("embeddings.positions", places, positions));
    x = net.dropout("embeddings.dropout", x);
    // Residual branches are initialised with smaller weights, because their outputs add up.
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

  TextBatches batches(std::uint64_t seed) const override {
    return [made = NextTokenOptions{.batch = options().batch,
                                    .sequence = options().sequence,
                                    .seed = seed}](EncodedText text) {
      return make_next_token_batches(std::move(text), made);
    };
  }
  std::int64_t shortest_text() const override { return options().sequence + 1; }

  std::int64_t context_;  // rows of the table of positions
};

const bool gpt_is_registered = Registry<WorkloadKind>::instance().add(
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
       return std::make_unique<Gpt>(with_preset(spec, gpt_presets()));
     }});

}  // namespace
}  // namespace headroom
