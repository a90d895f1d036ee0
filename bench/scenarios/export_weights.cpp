// export_weights: what the trained weights of the cell's workload take when they are handed over
// for inference, and how well they do then. The cell is trained as always; then the values that its
// evaluation reads are packed: masks are left behind (unless the forward pass multiplies by them),
// optimizer states and gradients too.
//   form=fp32   as they are (default)
//   form=int8   weights of two and more dimensions in 8 bits with an fp32 scale a row; the held-out
//               batches are scored with the rounded weights, activations stay fp32
// Bytes are of the contents, without names and shapes, as they are and compressed (zstd at level
// 19), which is where zeros of pruning are worth something. Compressed bytes and accuracy depend on
// the seed. Computes, so it needs a device that does.
#include <fmt/format.h>
#include <zstd.h>

#include <cstring>

#include "bench/scenarios/int8_weights.h"
#include "harness/base/registry.h"
#include "harness/memory/recorder.h"
#include "harness/run/accumulation.h"
#include "harness/run/scenario.h"
#include "harness/run/trainer.h"

namespace headroom {
namespace {

bool in_int8(const Spec& spec) {
  const std::string form = spec.text("form", "fp32");
  if (form != "fp32" && form != "int8")
    throw InputError(fmt::format("{}: form is fp32 or int8, not '{}'", spec.to_string(), form));
  return form == "int8";
}

void check(const Spec& spec) {
  spec.require_known({"form"});
  in_int8(spec);
}

template <typename Number>
void append(std::vector<std::byte>& artifact, const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  artifact.insert(artifact.end(), bytes.begin(), bytes.end());
}

// Appends the value in 8 bits and leaves what they stand for in the trainer.
void round_to_int8(Trainer& trainer, const Value& value, std::vector<std::byte>& artifact) {
  const auto plain = trainer.read_persistent(value);
  std::vector<float> weights(plain.size() / sizeof(float));
  std::memcpy(weights.data(), plain.data(), plain.size());
  const Int8Rows rounded = quantise(weights, static_cast<std::size_t>(value.shape[0]));
  append(artifact, rounded.numbers);
  append(artifact, rounded.scales);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = rounded.at(i);
  trainer.write_persistent(value, std::as_bytes(std::span(weights)));
}

std::vector<std::byte> pack(Trainer& trainer, const Program& inference, bool int8) {
  std::vector<std::byte> artifact;
  for (const Value& value : inference.values) {
    if (!value.persistent) continue;
    if (int8 && value.role == Role::weight && value.shape.size() >= 2)
      round_to_int8(trainer, value, artifact);
    else
      append(artifact, trainer.read_persistent(value));
  }
  return artifact;
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
  const std::vector<std::byte> artifact = pack(trainer, *plan.evaluate, in_int8(cell.scenario));
  return {.figures = {{"artifact_bytes", static_cast<double>(artifact.size())},
                      {"compressed_bytes", static_cast<double>(zstd_bytes(artifact))},
                      {"held_out_accuracy", trainer.evaluate(workload->held_out_batches())}},
          .note = "",
          .why_not_engaged = plan.not_engaged};
}

const bool registered = Registry<ScenarioKind>::instance().add(
    {.name = "export_weights",
     .summary = "Trains, then packs the weights for inference in fp32 or int8: bytes, compressed "
                "bytes and held-out accuracy",
     .parameters = {"form"},
     .examples = {"export_weights(form=int8)"},
     .figures = {{.name = "artifact_bytes",
                  .unit = "B",
                  .text = "weights handed over for inference",
                  .exact = true},
                 {.name = "compressed_bytes",
                  .unit = "B",
                  .text = "weights handed over for inference, compressed"},
                 {.name = "held_out_accuracy",
                  .unit = "1",
                  .text = "held-out accuracy of the weights handed over",
                  .more_is_better = true}},
     .check = check,
     .run = export_weights,
     .engine = nullptr,
     .takes_workload = true});

}  // namespace
}  // namespace headroom
