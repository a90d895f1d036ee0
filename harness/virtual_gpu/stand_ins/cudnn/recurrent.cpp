// Stands in for cuDNN's recurrent networks (LSTM, GRU). cuDNN does not answer about them without a
// card, so sizes are derived from the network: the weights' size is exact, while the workspace and
// the memory kept for the backward pass are estimates and reported as such.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;
using std::int32_t;

namespace {

// Numbers from cuDNN's documentation (cudnn_ops.h, cudnn_adv.h).
constexpr int kDouble = 1, kHalf = 2, kBfloat16 = 9;
constexpr int kLstm = 2, kGru = 3;
constexpr int kNoBias = 0, kTwoBiases = 2;
constexpr int kSkipInput = 1;
constexpr unsigned kPaddedInput = 1;
constexpr std::size_t kMatrixProductWorkspace = std::size_t{8}
                                                << 20;  // of each layer and direction

// Stored in the memory that cudnnCreate…Descriptor allocates, which is large enough.
struct Rnn {
  int algorithm, cell, bias, direction, input_mode, type, math_precision, math_type;
  int32_t input, hidden, projected, layers;
  struct Dropout* dropout;
  unsigned flags;

  std::size_t directions() const { return direction == 0 ? 1 : 2; }
  std::size_t gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  std::size_t biases() const { return bias == kNoBias ? 0 : bias == kTwoBiases ? 2 : 1; }
  std::size_t output() const { return static_cast<std::size_t>(projected); }
  bool projects() const { return projected != hidden; }
};
struct Dropout {
  float probability;
};
struct Sequences {
  int type, batch, width;
  std::size_t tokens, padded_tokens;  // totals over all sequences, without and with padding
};
struct Tensor {
  int type, dimensions;
  int sizes[3];
};

bool has_dropout(const Rnn& rnn) { return rnn.dropout != nullptr && rnn.dropout->probability > 0; }

std::size_t element_bytes(int type) {
  return type == kDouble ? 8 : type == kHalf || type == kBfloat16 ? 2 : 4;
}

std::size_t as_size(int32_t value) { return static_cast<std::size_t>(value); }

// The number of elements of one gate's input matrix. A pseudo-layer is one direction of a layer.
std::size_t input_matrix(const Rnn& rnn, std::size_t pseudo_layer) {
  if (pseudo_layer >= rnn.directions())
    return as_size(rnn.hidden) * rnn.output() * rnn.directions();
  return rnn.input_mode == kSkipInput ? 0 : as_size(rnn.hidden) * as_size(rnn.input);
}

std::size_t hidden_matrix(const Rnn& rnn) { return as_size(rnn.hidden) * rnn.output(); }

std::size_t matrices_of(const Rnn& rnn, std::size_t pseudo_layer) {
  return rnn.gates() * (input_matrix(rnn, pseudo_layer) + hidden_matrix(rnn)) +
         (rnn.projects() ? hidden_matrix(rnn) : 0);
}

std::size_t matrices_before(const Rnn& rnn, std::size_t pseudo_layer) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < pseudo_layer; ++i) elements += matrices_of(rnn, i);
  return elements;
}

std::size_t pseudo_layers(const Rnn& rnn) { return as_size(rnn.layers) * rnn.directions(); }

std::size_t biases_of(const Rnn& rnn) { return rnn.gates() * rnn.biases() * as_size(rnn.hidden); }

// The number of elements that the forward pass keeps for each token: the gates, the state of an
// LSTM's cell, two more for a GRU and, between layers, the output.
std::size_t kept_elements(const Rnn& rnn) {
  const std::size_t hidden = as_size(rnn.hidden), layers = as_size(rnn.layers);
  const std::size_t cell = rnn.cell == kLstm ? 5 : rnn.cell == kGru ? 6 : 1;
  std::size_t elements = layers * cell * hidden + (layers - 1) * hidden;
  if (rnn.projects()) elements += layers * (hidden + rnn.output());
  return elements * rnn.directions();
}

std::size_t kept_bytes(const Rnn& rnn, const Sequences& sequences) {
  std::size_t bytes = kept_elements(rnn) * sequences.tokens * element_bytes(rnn.type) + 256;
  // One bit per element between layers, with padding; two directions count as four.
  if (has_dropout(rnn))
    bytes += as_size(rnn.layers - 1) * rnn.directions() * rnn.directions() * rnn.output() *
             sequences.padded_tokens / 8;
  return bytes;
}

// Numbers of elements that the passes need in the workspace beside the matrices. The rules were
// found by asking cuDNN 9.26, without a card, about networks whose sizes were varied one by one. Of
// 1,000 other networks of all kinds, 539 sizes are the same to the byte, among them those of all
// 127 LSTMs and GRUs without dropout, projection and padding; nine in ten are within 0.7 %, and all
// within 6 %.
std::size_t backward_elements(const Rnn& rnn, const Sequences& sequences) {
  const std::size_t hidden = as_size(rnn.hidden), directions = rnn.directions();
  const bool is_lstm = rnn.cell == kLstm, is_gru = rnn.cell == kGru;
  std::size_t of_token = 0, of_sequence = 0;  // of each layer
  if (directions == 1) {
    of_token = rnn.gates() + (has_dropout(rnn) ? 1 : 0);
    of_sequence = is_lstm ? 6 : is_gru ? 3 : 1;
  } else if (is_lstm || is_gru) {
    of_token = is_lstm ? 12 : 10;
    of_sequence = is_lstm ? 16 : 10;
  }
  if (rnn.projects()) of_token += directions;
  return hidden * (sequences.tokens * of_token +
                   as_size(sequences.batch) * as_size(rnn.layers) * of_sequence);
}

std::size_t forward_elements(const Rnn& rnn, const Sequences& sequences) {
  const std::size_t hidden = as_size(rnn.hidden), wide = std::max(hidden, as_size(rnn.input));
  const std::size_t layers = as_size(rnn.layers), batch = as_size(sequences.batch);
  const bool is_lstm = rnn.cell == kLstm;
  if (rnn.directions() == 2)
    return sequences.tokens * (4 * wide + (layers == 1 ? 2 : 4) * hidden) +
           batch * layers * (is_lstm ? 10 : 6) * hidden;
  // With several layers and no dropout, at most 4 * layers + 8 steps of each sequence take memory.
  const std::size_t counted_steps = layers == 1 || has_dropout(rnn)
                                        ? sequences.tokens
                                        : std::min(sequences.tokens, (4 * layers + 8) * batch);
  return sequences.tokens * wide + hidden * (batch * layers * (is_lstm ? 3 : 1) + counted_steps);
}

std::size_t workspace_bytes(const Rnn& rnn, const Sequences& sequences) {
  const std::size_t batch = as_size(sequences.batch), pseudo = pseudo_layers(rnn);
  std::size_t forward = forward_elements(rnn, sequences);
  std::size_t backward = backward_elements(rnn, sequences);
  std::size_t lengths = 0;
  if ((rnn.flags & kPaddedInput) != 0) {  // input, output and states are copied without padding
    const std::size_t copied =
        sequences.padded_tokens * (as_size(rnn.input) + rnn.output() * rnn.directions());
    const std::size_t states = batch * pseudo * (rnn.cell == kLstm ? 2 : 1) * as_size(rnn.hidden);
    forward += 2 * copied + 4 * states;
    backward += copied + 2 * states;
    lengths = 8 * batch;
  }
  return (matrices_before(rnn, pseudo) + std::max(forward, backward)) * element_bytes(rnn.type) +
         pseudo * kMatrixProductWorkspace + lengths + 256;
}

void describe(Tensor* tensor, const Rnn& rnn, std::size_t rows, std::size_t columns) {
  *tensor = {rnn.type, 3, {1, static_cast<int>(rows), static_cast<int>(columns)}};
}

}  // namespace

HEADROOM_EXPORT int cudnnSetDropoutDescriptor(Dropout* dropout, void*, float probability, void*,
                                              std::size_t, unsigned long long) {
  dropout->probability = probability;
  return kSuccess;
}
HEADROOM_EXPORT int cudnnRestoreDropoutDescriptor(Dropout* dropout, void*, float probability, void*,
                                                  std::size_t, unsigned long long) {
  dropout->probability = probability;
  return kSuccess;
}
HEADROOM_EXPORT int cudnnSetRNNDescriptor_v8(Rnn* rnn, int algorithm, int cell, int bias,
                                             int direction, int input_mode, int type,
                                             int math_precision, int math_type, int32_t input,
                                             int32_t hidden, int32_t projected, int32_t layers,
                                             Dropout* dropout, unsigned flags) {
  *rnn = {algorithm, cell,  bias,   direction, input_mode, type,    math_precision,
          math_type, input, hidden, projected, layers,     dropout, flags};
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetRNNDescriptor_v8(const Rnn* rnn, int* algorithm, int* cell, int* bias,
                                             int* direction, int* input_mode, int* type,
                                             int* math_precision, int* math_type, int32_t* input,
                                             int32_t* hidden, int32_t* projected, int32_t* layers,
                                             Dropout** dropout, unsigned* flags) {
  const auto give = [](auto* to, auto value) {
    if (to != nullptr) *to = value;
  };
  give(algorithm, rnn->algorithm);
  give(cell, rnn->cell);
  give(bias, rnn->bias);
  give(direction, rnn->direction);
  give(input_mode, rnn->input_mode);
  give(type, rnn->type);
  give(math_precision, rnn->math_precision);
  give(math_type, rnn->math_type);
  give(input, rnn->input);
  give(hidden, rnn->hidden);
  give(projected, rnn->projected);
  give(layers, rnn->layers);
  give(dropout, rnn->dropout);
  give(flags, rnn->flags);
  return kSuccess;
}
HEADROOM_EXPORT int cudnnSetRNNDataDescriptor(Sequences* sequences, int type, int, int longest,
                                              int batch, int width, const int* lengths, void*) {
  *sequences = {type, batch, width, std::accumulate(lengths, lengths + batch, std::size_t{0}),
                as_size(longest) * as_size(batch)};
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetTensorNdDescriptor(const Tensor* tensor, int wanted, int* type,
                                               int* dimensions, int* sizes, int* strides) {
  *type = tensor->type;
  *dimensions = tensor->dimensions;
  int stride = 1;
  for (int i = tensor->dimensions; i-- > 0; stride *= tensor->sizes[i]) {
    if (i >= wanted) continue;
    sizes[i] = tensor->sizes[i];
    strides[i] = stride;
  }
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetRNNWeightSpaceSize(void*, const Rnn* rnn, std::size_t* bytes) {
  const std::size_t all = pseudo_layers(*rnn);
  *bytes = (matrices_before(*rnn, all) + all * biases_of(*rnn)) * element_bytes(rnn->type);
  return kSuccess;
}
// The matrices of all layers precede all biases.
HEADROOM_EXPORT int cudnnGetRNNWeightParams(void*, const Rnn* rnn, int32_t pseudo_layer,
                                            std::size_t, char* weights, int32_t number,
                                            Tensor* matrix, char** matrix_at, Tensor* bias,
                                            char** bias_at) {
  const std::size_t layer = as_size(pseudo_layer), gate = as_size(number), gates = rnn->gates();
  const std::size_t hidden = as_size(rnn->hidden), bytes = element_bytes(rnn->type);
  const std::size_t of_input = input_matrix(*rnn, layer), of_hidden = hidden_matrix(*rnn);
  if (matrix != nullptr) {
    const bool is_projection = gate == 2 * gates, is_input = gate < gates;
    if (is_projection)
      describe(matrix, *rnn, rnn->output(), hidden);
    else
      describe(matrix, *rnn, hidden, is_input ? of_input / hidden : rnn->output());
    const std::size_t before =
        is_input ? gate * of_input : gates * of_input + (gate - gates) * of_hidden;
    *matrix_at = weights + (matrices_before(*rnn, layer) + before) * bytes;
  }
  if (bias != nullptr) {
    describe(bias, *rnn, hidden, 1);
    const std::size_t before = matrices_before(*rnn, pseudo_layers(*rnn)) + layer * biases_of(*rnn);
    *bias_at = weights + (before + gate * hidden) * bytes;
  }
  return kSuccess;
}
HEADROOM_EXPORT int cudnnGetRNNTempSpaceSizes(void*, const Rnn* rnn, int training,
                                              const Sequences* sequences, std::size_t* workspace,
                                              std::size_t* kept) {
  note_size_estimated("cudnnGetRNNTempSpaceSizes");
  if (workspace != nullptr) *workspace = workspace_bytes(*rnn, *sequences);
  if (kept != nullptr) *kept = training != 0 ? kept_bytes(*rnn, *sequences) : 0;
  return kSuccess;
}
