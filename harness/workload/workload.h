// What a workload plugs in: its forward Programs and where its batches come from.
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

#include "harness/base/spec.h"
#include "harness/program/program.h"
#include "harness/workload/records.h"

namespace headroom {

// Fills host buffers, one per input of the training Programs in their order, plain row-major. Where
// steps differ in shape, the sizes of the buffers tell the shape. Training batches may be asked for
// on another thread than held-out ones, at the same time.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void next_training_batch(std::span<const std::span<std::byte>> inputs) = 0;
  // The same batch where it lies already: in memory that the device copies from by itself
  // (Device::stage). Throws InputError where the source has no such memory.
  virtual LentBatch lend_training_batch();
  // Whole batches of the held-out part, in order; false when there are none left.
  virtual bool next_held_out_batch(std::span<const std::span<std::byte>> inputs) = 0;
  virtual void restart_held_out() = 0;
  // Why these are not the batches the workload's parameters name ("" = they are): labels that were
  // to be shuffled and stayed in place, and the like.
  virtual std::string why_not_engaged() const { return ""; }
};

class Workload {
 public:
  virtual ~Workload() = default;
  // Forward pass and loss; the Trainer differentiates it.
  virtual Program training_forward() const = 0;
  // Where networks take turns: the forward passes of one step, in their order. They share
  // persistent values by name, and each trains those that it does not freeze.
  virtual std::vector<Program> training_forwards() const { return {training_forward()}; }
  // Where steps differ in shape (the odd last batch of an epoch, texts of several lengths): the
  // forward passes of one step in each shape, the usual one first. All share persistent values.
  virtual std::vector<std::vector<Program>> training_shapes() const {
    return {training_forwards()};
  }
  // Which of them steps 1, 2, … take, over and over. Whatever the seed, and known without the data,
  // so that runs on every device ask for the same bytes.
  virtual std::vector<std::size_t> shape_cycle() const { return {0}; }
  // After every so many steps a held-out batch is scored; 0 = never.
  virtual int evaluation_interval() const { return 0; }
  // False where the Programs are whole steps already and no loss is to be differentiated.
  virtual bool is_trained() const { return true; }
  // Inference on the same persistent values: results[0] = number of correct predictions.
  virtual std::optional<Program> evaluation() const = 0;
  virtual std::int64_t batch_size() const = 0;
  // Opens (on first use: generates) the data. Not called on meta.
  virtual std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const = 0;
  // The records that training batches are made of, for pipelines that load, decode and order them
  // their own way; why_no_records() says why there are none. Not called on meta.
  virtual std::unique_ptr<RecordSource> open_records(std::uint64_t seed) const;
  virtual std::string why_no_records() const;
  // The files open_data() reads, once it has been called; for the record of a run.
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
