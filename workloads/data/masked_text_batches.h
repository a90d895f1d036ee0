// Batches for masked language modelling, as Devlin et al. 2019 (BERT), section 3.1 and appendix A,
// make them: two neighbouring pieces of text, 15 % of the tokens to be guessed, of which 80 % are
// masked, 10 % replaced and 10 % left alone; one sequence in ten is shorter and padded.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/workload/workload.h"
#include "workloads/data/byte_pairs.h"

namespace headroom {

enum class TextLabels : std::uint8_t {
  as_read,
  shuffled,  // targets permuted within each batch: only their frequencies can be learnt
};

// Whether the head reads only the tokens to be guessed, or all tokens.
enum class Head : std::uint8_t { gathered, full };

struct MaskedTextOptions {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;  // the longest length
  std::uint64_t seed = 0;
  Head head = Head::gathered;
  TextLabels labels = TextLabels::as_read;
};

inline constexpr std::int64_t kShortestSequence = 8;

// The number of tokens to be guessed in a sequence of this length.
std::int64_t predictions_of(std::int64_t sequence);

// Inputs, all s32: tokens, positions and segments [batch·sequence], mask [batch, sequence], for a
// gathered head the rows to be guessed [batch·predictions], the labels (of these rows, or of all;
// -1 where there is nothing to guess), and if the Program takes one, a fresh dropout key [2]. The
// buffers' sizes determine the sequence length of each batch.
std::unique_ptr<BatchSource> make_masked_text_batches(EncodedText text, MaskedTextOptions options);

}  // namespace headroom
