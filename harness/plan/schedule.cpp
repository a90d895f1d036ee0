#include "harness/plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "harness/base/sha256.h"

namespace headroom {

SampleBlock make_block(const Experiment& experiment, std::size_t index, int number,
                       std::uint64_t seed) {
  const std::string name = fmt::format("{}\n{}\n{}", seed, experiment.id, number);
  SampleBlock block{.experiment = index, .number = number, .seed = hashed_number(name), .arms = {}};
  block.arms.resize(experiment.arms.size());
  std::iota(block.arms.begin(), block.arms.end(), std::size_t{0});
  std::vector<std::uint64_t> rank;
  for (const Arm& arm : experiment.arms) rank.push_back(hashed_number(name + "\n" + arm.name));
  std::sort(block.arms.begin(), block.arms.end(),
            [&](std::size_t a, std::size_t b) { return rank[a] < rank[b]; });
  return block;
}

std::vector<SampleBlock> schedule(const std::vector<Experiment>& experiments, std::uint64_t seed,
                                  const Shard& shard) {
  int rounds = 0;
  for (const Experiment& experiment : experiments) rounds = std::max(rounds, experiment.blocks);
  std::vector<SampleBlock> blocks;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < experiments.size(); ++i)
      if (round < experiments[i].blocks)
        blocks.push_back(make_block(experiments[i], i, round, seed));
  if (shard.count == 1) return blocks;
  // Blocks are dealt to shards in order of their seeds, which are hashes. In schedule order, one
  // shard could get all blocks of one experiment.
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(blocks[a].seed, a) < std::pair(blocks[b].seed, b);
  });
  std::vector<bool> mine(blocks.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    mine[order[i]] = static_cast<int>(i) % shard.count == shard.number - 1;
  std::vector<SampleBlock> dealt;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (mine[i]) dealt.push_back(std::move(blocks[i]));
  return dealt;
}

}  // namespace headroom
