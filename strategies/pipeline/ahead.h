// A thread that makes batches ahead of the training thread, each in its own place. For stages that
// hold batches ready.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/workload/pipeline.h"

namespace headroom {

// The memory of one batch.
class BatchPlace {
 public:
  virtual ~BatchPlace() = default;
  // Makes room for inputs of these sizes. Old contents are lost.
  virtual void fit(const std::vector<Bytes>& sizes) = 0;
  virtual Bytes bytes() const = 0;  // host memory; never shrinks

  const std::vector<std::span<std::byte>>& inputs() const { return inputs_; }

 protected:
  std::vector<std::span<std::byte>> inputs_;
};

enum class Depth : std::uint8_t {
  fixed,
  grows  // doubled, up to 16, when no batch is ready although all places had been full
};

class BatchesAhead : public BatchStage {
 public:
  struct Options {
    std::size_t depth = 1;  // number of batches in work, ready and taken
    Depth rule = Depth::fixed;
    // Called by the thread.
    std::function<std::unique_ptr<BatchPlace>()> make_place;
  };
  BatchesAhead(std::string name, std::unique_ptr<BatchStage> inner, const StageContext& context,
               Options options);
  ~BatchesAhead() override;

 protected:
  struct Asked {
    // Without the first batch, because the pipeline may have just begun.
    std::uint64_t times = 0;
    std::uint64_t ready = 0;
    std::uint64_t under_way = 0;
  };

  // The oldest batch, once there is one. Throws what making it threw.
  std::unique_ptr<BatchPlace> take();
  void give_back(std::unique_ptr<BatchPlace> place);
  Asked asked() const;
  std::map<std::string, std::uint64_t> counters() const override;

 private:
  void do_next(BatchBuffers inputs) override;
  void note_what_is_there();
  void work();
  void make(std::uint64_t batch);
  std::unique_ptr<BatchPlace> take_free();

  std::unique_ptr<BatchStage> inner_;
  BatchSizes sizes_;
  std::stop_source stop_;
  Options options_;
  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable_any changed_;
  std::size_t depth_;
  std::size_t in_use_ = 0;  // in work, ready or taken
  std::deque<std::unique_ptr<BatchPlace>> ready_;
  std::vector<std::unique_ptr<BatchPlace>> free_;
  std::exception_ptr error_;
  bool was_full_ = false;  // since the depth was set
  std::size_t most_ready_ = 0;
  Asked asked_;
  std::jthread worker_;  // last: it uses all of the above
};

}  // namespace headroom
