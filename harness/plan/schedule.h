// The order of a run: rounds over the experiments, one block of each per round. The configurations
// of a block have a random order, drawn from the recorded seed. A block depends only on the seed
// and its name, so a resumed or filtered run keeps the order of the whole run.
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
  std::uint64_t seed = 0;         // the same for every sample of the block
  std::vector<std::size_t> arms;  // in order of execution
};

SampleBlock make_block(const Experiment& experiment, std::size_t index, int number,
                       std::uint64_t seed);

// Round r holds block r of every experiment that has one. With several shards, the seed assigns
// each block to exactly one of them; shards differ by at most one block.
std::vector<SampleBlock> schedule(const std::vector<Experiment>& experiments, std::uint64_t seed,
                                  const Shard& shard = {});

}  // namespace headroom
