// Takes samples with a machine probe before and after, and adds up what they cost.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "harness/plan/experiment.h"
#include "harness/plan/schedule.h"
#include "harness/results/run_cost.h"
#include "harness/runner/sample_process.h"

namespace headroom {

// One configuration of a block. Experiment and block must outlive it.
struct SamplePlace {
  const Experiment* experiment;
  const SampleBlock* block;
  std::size_t place;  // in the block's random order

  const Arm& arm() const { return experiment->arms[block->arms[place]]; }
};

class BlockSampler {
 public:
  // `cost` must outlive this. Traces go to a folder of the run directory.
  BlockSampler(RunCost& cost, std::filesystem::path run_directory);

  // Takes one sample at each of these places. Several that are timed take turns. Returns nothing
  // after an interrupt.
  std::optional<std::vector<TakenSample>> take(const std::vector<SamplePlace>& places);
  // Touches the device's memory once. The first touch of memory that the machine has not used yet
  // is many times slower than later ones; a separate process bears this cost, so no sample does.
  void touch(const Spec& device);

 private:
  double probe();

  RunCost& cost_;
  std::filesystem::path directory_;
  int cores_;
};

}  // namespace headroom
