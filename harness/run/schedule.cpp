#include "harness/run/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "harness/base/sha256.h"

namespace headroom {

Block make_block(const Experiment& experiment, std::size_t index, int number, std::uint64_t seed) {
  const std::string name = fmt::format("{}\n{}\n{}", seed, experiment.id, number);
  Block block{.experiment = index, .number = number, .seed = hashed_number(name), .arms = {}};
  block.arms.resize(experiment.arms.size());
  std::iota(block.arms.begin(), block.arms.end(), std::size_t{0});
  std::vector<std::uint64_t> rank;
  for (const Arm& arm : experiment.arms) rank.push_back(hashed_number(name + "\n" + arm.name));
  std::sort(block.arms.begin(), block.arms.end(),
            [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });
  return block;
}

std::vector<Block> schedule(const std::vector<Experiment>& experiments, std::uint64_t seed) {
  int rounds = 0;
  for (const Experiment& experiment : experiments) rounds = std::max(rounds, experiment.blocks);
  std::vector<Block> blocks;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < experiments.size(); ++i)
      if (round < experiments[i].blocks)
        blocks.push_back(make_block(experiments[i], i, round, seed));
  return blocks;
}

}  // namespace headroom
