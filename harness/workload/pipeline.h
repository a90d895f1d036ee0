// Input pipelines: how batches get from files to the Trainer. A spec composes stages, outermost
// first: `prefetch(2)|map(threads=2)|cache|stream`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/device/device.h"
#include "harness/workload/stage.h"
#include "harness/workload/workload.h"

namespace headroom {

// Returns the bytes of each input of the n-th training batch, from 0, since steps may differ in
// shape.
using BatchSizes = std::function<std::vector<Bytes>(std::uint64_t)>;

enum class RecordOrder : std::uint8_t {
  workload,  // the workload's own order: all records shuffled anew every epoch
  files      // the order in the files, as a shuffle buffer expects
};

// The inputs from which the stages of one pipeline are built.
struct StageContext {
  RecordSource* records = nullptr;  // null if the workload delivers whole batches
  RecordOrder order = RecordOrder::workload;
  BatchSizes batch_sizes;
  std::uint64_t seed = 0;
  // Stop source of the whole pipeline. Stages with threads request the stop before they join them.
  std::stop_source stop;
  // Makes memory that the device can copy from directly; null if the pipeline feeds no device.
  std::function<std::unique_ptr<DeviceMemory>()> make_host_memory;
  // Destroys everything behind the outermost stage and builds it again; called by that stage.
  std::function<std::unique_ptr<BatchStage>(std::unique_ptr<BatchStage>)> rebuild;
};

// A plug-in sets the factories that apply to it: a source of records or of batches, a stage over
// records or over batches, or the step from records to batches.
struct StageKind {
  static constexpr std::string_view kKind = "pipeline stage";
  using Records = std::unique_ptr<RecordStage>;
  using Batches = std::unique_ptr<BatchStage>;

  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;  // whole pipelines
  // Throws InputError if parameter values are invalid.
  std::function<void(const Spec&)> check = nullptr;
  // Whether the stage loads records when it chooses the next one, so that no stage in front of it
  // can avoid the loading.
  std::function<bool(const Spec&)> loads_ahead = nullptr;
  bool saves_loading = false;
  bool needs_file_order = false;
  bool rebuilds = false;  // rebuilds the stages behind it; must be the outermost
  // How many batches it lends at a time, to be copied to the device while it computes. Such a stage
  // must be the outermost.
  std::function<std::size_t(const Spec&)> staged_batches = nullptr;
  std::function<Records(const Spec&, const StageContext&)> record_source = nullptr;
  std::function<Batches(const Spec&, std::unique_ptr<BatchSource>)> batch_source = nullptr;
  std::function<Records(const Spec&, Records, const StageContext&)> over_records = nullptr;
  std::function<Batches(const Spec&, Records, const StageContext&)> to_batches = nullptr;
  std::function<Batches(const Spec&, Batches, const StageContext&)> over_batches = nullptr;
  // Bytes held when full, if the spec and the bytes of a batch determine them.
  std::function<std::optional<Bytes>(const Spec&, Bytes batch)> full_bytes = nullptr;
};

// Returns the stages of a spec, outermost first, including the implicit ones: a source, `batch` and
// `map`. Throws InputError for unknown names and parameters and for invalid orders.
std::vector<Spec> pipeline_stages(const Spec& spec);
void check_pipeline(const Spec& spec);
// Throws NotSupported with the reason if this workload cannot feed this pipeline.
void check_pipeline(const Spec& spec, const Workload& workload);
// Number of batches that the pipeline lends at a time; 0 if it lends none.
std::size_t staged_batches(const Spec& spec);

// The source from which the Trainer takes batches. Stopping it, even with threads at work, takes at
// most as long as the record in progress or, if the workload delivers whole batches, the batch in
// progress.
class Pipeline final : public BatchSource {
 public:
  // `workload` and `device` must outlive it. Without a device nothing is staged.
  Pipeline(const Spec& spec, const Workload& workload, BatchSizes sizes, std::uint64_t seed,
           Device* device = nullptr);
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void next_training_batch(BatchBuffers inputs) override { outermost_->next(inputs); }
  LentBatch lend_training_batch() override;
  bool next_held_out_batch(BatchBuffers inputs) override;
  void restart_held_out() override;
  Reason why_not_engaged() const override;

  // Reports of the stages, outermost first. For a stage that was rebuilt: the sums of elements and
  // waits, the highest peak, and the counters of the last instance.
  std::vector<StageReport> reports() const;
  Bytes host_bytes() const;  // held by all stages now

 private:
  template <typename Made>
  Made keep(Made stage);
  std::unique_ptr<BatchStage> build();
  std::unique_ptr<BatchStage> rebuild(std::unique_ptr<BatchStage> old);

  // The record of a stage that was destroyed.
  struct Past {
    StageReport report;
    bool engaged;
  };

  const Workload& workload_;
  BatchSizes sizes_;
  std::size_t staged_ = 0;                 // batches lent at a time
  std::vector<Spec> specs_;                // innermost first, without one that rebuilds
  std::uint64_t first_batch_ = 0;          // first batch of the current stages
  std::unique_ptr<RecordSource> records_;  // outlives the stages
  BatchSource* data_ = nullptr;            // owned by the source stage
  StageContext context_;
  std::vector<const Stage*> stages_;  // innermost first
  // Parallel to the first elements of stages_; empty if nothing was rebuilt.
  std::vector<Past> past_;
  std::unique_ptr<BatchStage> outermost_;
};

// The stages of a pipeline that is not run (on meta), with their bytes when full if the spec and
// the bytes of a batch determine them.
std::vector<StageReport> estimate_pipeline(const Spec& spec, Bytes batch);

}  // namespace headroom
