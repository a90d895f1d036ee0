// The common part of transformers trained on text, without the network: sizes, batches of several
// lengths, held-out text and evaluation. BERT and GPT each add what they build and how they cut a
// text into batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/workload/workload.h"
#include "workloads/choice.h"
#include "workloads/data/held_out_text.h"
#include "workloads/transformer.h"

namespace headroom {

struct TextModelSize {
  std::int64_t layers, hidden, heads;
};
using TextModelSizes = std::map<std::string, TextModelSize>;

// The defaults of one kind of model; sequence lengths are in tokens.
struct TextModelDefaults {
  const char* size;
  std::int64_t sequence, shortest_sequence, vocabulary;
};

struct TextModelOptions {
  std::int64_t batch, sequence, layers, hidden, heads, vocabulary;
  double dropout;

  TransformerSize transformer(double epsilon) const {
    return {.batch = batch,
            .sequence = sequence,
            .hidden = hidden,
            .heads = heads,
            .dropout = dropout,
            .epsilon = epsilon};
  }
};

// The outputs of the head from which losses and hits are computed.
struct Guesses {
  ValueId logits, labels;
};

class TextModel : public Workload {
 public:
  // Throws InputError for sizes that are invalid or inconsistent.
  TextModel(const Spec& spec, const TextModelSizes& sizes, const TextModelDefaults& defaults);

  Program training_forward() const override { return training_forward(options_.sequence); }
  std::vector<std::vector<Program>> training_shapes() const override;
  std::vector<std::size_t> shape_cycle() const override;
  int evaluation_interval() const override { return static_cast<int>(evaluate_every_); }
  std::optional<Program> evaluation() const override;
  std::int64_t batch_size() const override { return options_.batch; }
  std::vector<std::filesystem::path> data_files() const override;
  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override;

 protected:
  const TextModelOptions& options() const { return options_; }

 private:
  // Builds the network for the sequence length and dropout of `options`.
  virtual Guesses build(Program& program, const TextModelOptions& options, Phase phase) const = 0;
  // Makes the batches of a text, with sequences up to the longest.
  virtual TextBatches batches(std::uint64_t seed) const = 0;
  // The smallest number of tokens from which a batch can be made.
  virtual std::int64_t shortest_text() const = 0;

  Program training_forward(std::int64_t sequence) const;

  TextModelOptions options_;
  std::string data_;
  std::vector<std::int64_t> lengths_;  // sequence lengths of batches, longest first
  std::int64_t evaluate_every_;
};

}  // namespace headroom
