// The interface of a workload: its forward Programs and the source of its batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"
#include "harness/workload/records.h"

namespace headroom {

// Fills host buffers, one per input of the training Programs in their order, plain row-major. If
// steps differ in shape, the buffer sizes identify the shape. Training batches and held-out batches
// may be requested on different threads at the same time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void next_training_batch(std::span<const std::span<std::byte>> inputs) = 0;
  // Returns the next training batch in memory that the device can copy from directly
  // (Device::stage). Throws InputError if the source has no such memory.
  virtual LentBatch lend_training_batch();
  // Fills the next whole held-out batch, in order; false when none is left.
  virtual bool next_held_out_batch(std::span<const std::span<std::byte>> inputs) = 0;
  virtual void restart_held_out() = 0;
  // Why these are not the batches that the workload's parameters name; absent if they are. For
  // example, labels that should have been shuffled kept their order.
  virtual Reason why_not_engaged() const { return std::nullopt; }
};

class Workload {
 public:
  virtual ~Workload() = default;
  // Forward pass and loss; the Trainer differentiates it.
  virtual Program training_forward() const = 0;
  // The forward passes of one step, in order, for workloads whose networks take turns. They share
  // persistent values by name, and each trains those that it does not freeze.
  virtual std::vector<Program> training_forwards() const { return {training_forward()}; }
  // The forward passes of one step in each shape, the usual shape first, for workloads whose steps
  // differ in shape (a smaller last batch of an epoch, texts of several lengths). All share
  // persistent values.
  virtual std::vector<std::vector<Program>> training_shapes() const {
    return {training_forwards()};
  }
  // Indices into training_shapes() of steps 1, 2, …, repeated cyclically. It depends on neither the
  // seed nor the data, so that runs on every device request the same bytes.
  virtual std::vector<std::size_t> shape_cycle() const { return {0}; }
  // A held-out batch is scored after every so many steps; 0 = never.
  virtual int evaluation_interval() const { return 0; }
  // False if the Programs are whole steps already, with no loss to differentiate.
  virtual bool is_trained() const { return true; }
  // Inference on the same persistent values: results[0] = number of correct predictions.
  virtual std::optional<Program> evaluation() const = 0;
  virtual std::int64_t batch_size() const = 0;
  // Opens (on first use: generates) the data. Not called on meta.
  virtual std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const = 0;
  // The records of training batches, for pipelines that load, decode and order them themselves.
  // why_no_records() says why there are none. Not called on meta.
  virtual std::unique_ptr<RecordSource> open_records(std::uint64_t seed) const;
  virtual std::string why_no_records() const;
  // The files that open_data() reads, valid once it has been called; for the record of a run.
  virtual std::vector<std::filesystem::path> data_files() const { return {}; }
  // Held-out batches to score after the last step; 0 = none.
  virtual int held_out_batches() const { return 0; }
};

struct WorkloadKind {
  static constexpr std::string_view kKind = "workload";
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;
  std::function<std::unique_ptr<Workload>(const Spec&)> create;
};

std::unique_ptr<Workload> make_workload(const Spec& spec);

}  // namespace headroom
