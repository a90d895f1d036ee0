// A stage of an input pipeline. Stages deliver records or whole batches; each pulls from the one
// behind it. This file has what stages share: counters, stopping and errors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/units.h"
#include "harness/workload/pipeline_report.h"
#include "harness/workload/records.h"

namespace headroom {

// Thrown to any thread that waits in a pipeline that is being stopped.
struct PipelineStopped {};

class Stage {
 public:
  explicit Stage(std::string name) : name_(std::move(name)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const std::string& name() const { return name_; }
  StageReport report() const;
  Bytes host_bytes() const { return held_; }
  // Why the stage did not do what its name promises; absent if it did. Asked after training.
  virtual Reason why_not_engaged() const { return std::nullopt; }

 protected:
  // Runs `work` and adds its time to the time that the stage in front waited.
  void timed(const std::function<void()>& work);
  void count_element() { ++elements_; }
  void hold(Bytes bytes);
  void release(Bytes bytes) { held_ -= bytes; }
  virtual std::map<std::string, std::uint64_t> counters() const { return {}; }

 private:
  std::string name_;
  std::atomic<std::uint64_t> elements_ = 0;
  std::atomic<std::uint64_t> wait_ns_ = 0;
  std::atomic<Bytes> held_ = 0;
  std::atomic<Bytes> peak_ = 0;
};

struct Element {
  std::int64_t position = 0;  // position in the stream, from 0
  std::int64_t epoch = 0;
  std::int64_t record = 0;  // index of the record in the data
  std::vector<std::byte> bytes;
};

// An endless stream of records. Choosing the next record is cheap and happens in order; loading it
// may be slow and may run on several threads at once.
class RecordStage : public Stage {
 public:
  using Stage::Stage;
  Element next();               // one thread at a time; the bytes are valid after load()
  void load(Element& element);  // may be called from any thread

 private:
  virtual Element do_next() = 0;
  virtual void do_load(Element& element) = 0;
};

// An endless stream of batches.
class BatchStage : public Stage {
 public:
  using Stage::Stage;
  void next(BatchBuffers inputs);
  // Like BatchSource::lend_training_batch().
  LentBatch lend();

 private:
  virtual void do_next(BatchBuffers inputs) = 0;
  virtual LentBatch do_lend();
};

// Runs `work` on an element; errors it throws name the stage and the element's place.
void at_element(const std::string& stage, const Element& element,
                const std::function<void()>& work);

// Sleeps for `ns`; throws PipelineStopped if the pipeline is stopped meanwhile.
void sleep_unless_stopped(std::uint64_t ns, const std::stop_token& stop);

}  // namespace headroom
