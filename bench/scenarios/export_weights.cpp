// export_weights: the size of the trained weights of the cell's workload when they are exported for
// inference, and their accuracy. The cell is trained as usual; then the values that its evaluation
// reads are packed, without masks (unless the forward pass multiplies by them), optimizer states
// and gradients.
//   form=fp32   as they are (default)
//   form=int8   weights of two and more dimensions in 8 bits with an fp32 scale a row; the held-out
//               batches are scored with the rounded weights, activations stay fp32
//   form=csr, bitmap, two_of_four   weights of two and more dimensions in compressed storage
//               (sparse_weights.h), even if that takes more than dense; two_of_four packs only
//               weights with two zeros in every group of four. The held-out batches are scored
//               with the unpacked weights: nothing here multiplies packed ones
// Bytes count the contents without names and shapes, both uncompressed and compressed (zstd at
// level 19), where the zeros of pruning save space. Compressed bytes and accuracy depend on the
// seed. The scenario needs a device that computes.
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "bench/scenarios/int8_weights.h"
#include "bench/scenarios/sparse_weights.h"
#include "harness/base/registry.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/scenario.h"
#include "harness/trace/recorder.h"
#include "harness/training/trainer.h"

namespace headroom {
namespace {

std::string form_of(const Spec& spec) {
  const std::string form = spec.text("form", "fp32");
  if (form != "fp32" && form != "int8" && !sparse_form_of(form))
    throw InputError(fmt::format("{}: form is fp32, int8, csr, bitmap or two_of_four, not '{}'",
                                 spec.to_string(), form));
  return form;
}

void check_export(const Spec& spec) {
  spec.require_known({"form"});
  form_of(spec);
}

struct Artifact {
  std::vector<std::byte> bytes = {};
  // Shapes of the weights in compressed storage.
  std::vector<Shape> sparse = {};
  std::size_t zeros = 0;
};

template <typename Number>
void append(std::vector<std::byte>& artifact, const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  artifact.insert(artifact.end(), bytes.begin(), bytes.end());
}

// Appends the value in 8 bits and writes the rounded value back to the trainer.
void round_to_int8(Trainer& trainer, const Value& value, std::vector<std::byte>& artifact) {
  std::vector<float> weights = trainer.read_floats(value);
  const Int8Rows rounded = quantise(weights, static_cast<std::size_t>(value.shape[0]));
  append(artifact, rounded.numbers);
  append(artifact, rounded.scales);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = rounded.at(i);
  trainer.write_persistent(value, std::as_bytes(std::span(weights)));
}

// Appends the value in compressed storage and writes the unpacked value back to the trainer.
// Returns false when the value cannot be stored in this form.
bool compress(Trainer& trainer, const Value& value, SparseForm form, Artifact& artifact) {
  if (!fits(form, value.shape)) return false;
  const std::vector<float> weights = trainer.read_floats(value);
  const auto packed = pack(form, weights, value.shape);
  if (!packed) return false;
  append(artifact.bytes, *packed);
  artifact.sparse.push_back(value.shape);
  artifact.zeros += static_cast<std::size_t>(std::count(weights.begin(), weights.end(), 0.0F));
  const std::vector<float> again = unpack(form, *packed, value.shape);
  trainer.write_persistent(value, std::as_bytes(std::span(again)));
  return true;
}

Artifact pack(Trainer& trainer, const Program& inference, const std::string& form) {
  Artifact artifact;
  const auto sparse = sparse_form_of(form);
  for (const Value& value : inference.values) {
    if (!value.persistent) continue;
    const bool matrix = value.role == Role::weight && value.shape.size() >= 2;
    if (matrix && form == "int8")
      round_to_int8(trainer, value, artifact.bytes);
    else if (!matrix || !sparse || !compress(trainer, value, *sparse, artifact))
      append(artifact.bytes, trainer.read_persistent(value));
  }
  return artifact;
}

// For the weights in compressed storage: their dense size, their share of zeros, and the share
// above which the storage saves memory.
std::map<std::string, double> sparse_figures(const Artifact& artifact, SparseForm form) {
  double numbers = 0;
  for (const Shape& shape : artifact.sparse) numbers += static_cast<double>(element_count(shape));
  if (numbers == 0) return {};
  std::map<std::string, double> figures = {
      {"sparse_dense_bytes", numbers * sizeof(float)},
      {"sparsity", static_cast<double>(artifact.zeros) / numbers}};
  if (const auto share = break_even_sparsity(form, artifact.sparse))
    figures["break_even_sparsity"] = *share;
  return figures;
}

std::size_t zstd_bytes(const std::vector<std::byte>& contents) {
  std::vector<std::byte> packed(ZSTD_compressBound(contents.size()));
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), contents.data(), contents.size(), 19);
  if (ZSTD_isError(size) != 0) throw Error(fmt::format("zstd failed: {}", ZSTD_getErrorName(size)));
  return size;
}

ScenarioResult export_weights(const Cell& cell, std::uint64_t seed) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(cell.device.name());
  const auto device = kind.create(cell.device);
  if (!device->computes())
    throw NotSupported(fmt::format(
        "export_weights trains, and device {} computes nothing: take host", cell.device.name()));
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan =
      plan_training(*workload, cell, cell.rules.empty() ? kind.default_rules : cell.rules);
  if (!plan.evaluate || workload->held_out_batches() == 0)
    throw NotSupported(
        fmt::format("export_weights scores held-out batches, of which {} has none: "
                    "give held_out_batches, or take a workload that has an evaluation",
                    cell.workload.to_string()));
  const auto allocator = make_allocator(cell.allocator, device->memory());
  TraceRecorder recorder(1);
  Trainer trainer(plan, *device, *allocator, recorder, workload->open_data(seed), seed);
  for (int step = 0; step < cell.warmup_steps + cell.measured_steps; ++step) trainer.step();
  const std::string form = form_of(cell.scenario);
  const Artifact artifact = pack(trainer, *plan.evaluate, form);
  ScenarioResult result = {
      .figures = {{"artifact_bytes", static_cast<double>(artifact.bytes.size())},
                  {"compressed_bytes", static_cast<double>(zstd_bytes(artifact.bytes))},
                  {"held_out_accuracy", trainer.evaluate(workload->held_out_batches())}},
      .note = "",
      .why_not_engaged = plan.not_engaged};
  if (const auto sparse = sparse_form_of(form)) {
    result.figures.merge(sparse_figures(artifact, *sparse));
    if (artifact.sparse.empty() && !result.why_not_engaged)
      result.why_not_engaged = fmt::format(
          "{}: no weight can be stored in this form; prune them for it (pruning=two_of_four)",
          cell.scenario.to_string());
  }
  return result;
}

const bool export_weights_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "export_weights",
     .summary = "Trains, then packs the weights for inference in fp32, in int8 or without their "
                "zeros (csr, bitmap, two_of_four): bytes, compressed bytes and held-out accuracy",
     .parameters = {"form"},
     .examples = {"export_weights(form=int8)", "export_weights(form=csr)"},
     .figures = {{.name = "artifact_bytes", .unit = "B", .text = "exported weights", .exact = true},
                 {.name = "compressed_bytes", .unit = "B", .text = "exported weights, compressed"},
                 {.name = "sparse_dense_bytes",
                  .unit = "B",
                  .text = "dense size of the weights in compressed storage",
                  .exact = true},
                 {.name = "sparsity",
                  .unit = "1",
                  .text = "share of zeros in the weights in compressed storage"},
                 {.name = "break_even_sparsity",
                  .unit = "1",
                  .text = "share of zeros above which the storage takes less than dense",
                  .exact = true},
                 {.name = "held_out_accuracy",
                  .unit = "1",
                  .text = "held-out accuracy of the exported weights",
                  .more_is_better = true}},
     .check = check_export,
     .run = export_weights,
     .engine = nullptr,
     .takes_workload = true});

}  // namespace
}  // namespace headroom
