// The order of a run: blocks in rounds over the experiments, arms within a block in random order
// from the logged seed. What a block looks like depends on the seed and its name alone, so a
// resumed or filtered run keeps the order of the whole one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/plan/experiment.h"
#include "harness/plan/shard.h"

namespace headroom {

struct SampleBlock {
  std::size_t experiment = 0;     // index into the list of experiments
  int number = 0;                 // within the experiment
  std::uint64_t seed = 0;         // of every arm's sample: arms differ in nothing but the arm
  std::vector<std::size_t> arms;  // in order of execution
};

SampleBlock make_block(const Experiment& experiment, std::size_t index, int number,
                       std::uint64_t seed);

// Round r holds block r of every experiment that has so many. Of several shards each block is in
// exactly one, decided by the seed; they differ by one block at most.
std::vector<SampleBlock> schedule(const std::vector<Experiment>& experiments, std::uint64_t seed,
                                  const Shard& shard = {});

}  // namespace headroom
