// Simulates the accuracy of the leak detector: how often it reports a leak where there is none, and
// how often it finds leaks of 0.01 to 10 MB per step, in several kinds of noise. Usage:
//   build/bench/statistics/leaks [ROUNDS]
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

#include "harness/stats/leak_detector.h"

namespace headroom {
namespace {

constexpr double kMb = 1e6;
constexpr double kLeaks[] = {0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10};  // MB a step
constexpr int kLengths[] = {50, 200, 1000};                       // steps
constexpr std::uint64_t kSeed = 20261121;

using Random = std::mt19937_64;
using Levels = std::vector<double>;  // bytes after each step

// A kind of noise; `add` adds one round of it to the levels.
struct Noise {
  const char* name;
  std::function<void(Levels&, Random&)> add;
};

void add_independent(Levels& bytes, Random& random) {
  std::normal_distribution<double> normal(0, 2 * kMb);
  for (double& value : bytes) value += normal(random);
}

void add_remembering(Levels& bytes, Random& random, double memory) {
  std::normal_distribution<double> normal(0, 5 * kMb);
  double level = normal(random);
  for (double& value : bytes) {
    level = memory * level + std::sqrt(1 - memory * memory) * normal(random);
    value += level;
  }
}

void add_warm_up(Levels& bytes, double share) {
  for (std::size_t step = 0; step < bytes.size(); ++step)
    bytes[step] +=
        500 * kMb *
        (1 - std::exp(-static_cast<double>(step) / (share * static_cast<double>(bytes.size()))));
}

void add_cache(Levels& bytes, Random& random, std::size_t period) {
  const std::size_t phase = random() % period;
  for (std::size_t step = 0; step < bytes.size(); ++step)
    bytes[step] +=
        20 * kMb * static_cast<double>((step + phase) % period) / static_cast<double>(period);
}

void add_jumps(Levels& bytes, Random& random, int count) {
  for (int i = 0; i < count; ++i) {
    const std::size_t at = random() % bytes.size();
    for (std::size_t step = at; step < bytes.size(); ++step) bytes[step] += 50 * kMb;
  }
}

const std::vector<Noise>& noises() {
  static const std::vector<Noise> all = {
      {"none: bytes counted exactly", [](Levels&, Random&) {}},
      {"independent, sd 2 MB", add_independent},
      {"remembering 0.9, sd 5 MB", [](Levels& b, Random& r) { add_remembering(b, r, 0.9); }},
      {"remembering 0.97, sd 5 MB", [](Levels& b, Random& r) { add_remembering(b, r, 0.97); }},
      {"cache of 20 MB, emptied every 13 steps",
       [](Levels& b, Random& r) {
         add_independent(b, r);
         add_cache(b, r, 13);
       }},
      {"warm-up of 500 MB, 1/20 of the time",
       [](Levels& b, Random& r) {
         add_independent(b, r);
         add_warm_up(b, 0.05);
       }},
      {"warm-up of 500 MB, 1/4 of the time",
       [](Levels& b, Random& r) {
         add_independent(b, r);
         add_warm_up(b, 0.25);
       }},
      {"one step up of 50 MB",
       [](Levels& b, Random& r) {
         add_independent(b, r);
         add_jumps(b, r, 1);
       }},
      {"three steps up of 50 MB",
       [](Levels& b, Random& r) {
         add_independent(b, r);
         add_jumps(b, r, 3);
       }},
  };
  return all;
}

double share_called_leak(const Noise& noise, int steps, double leak, int rounds) {
  Random random(kSeed);
  int called = 0;
  for (int round = 0; round < rounds; ++round) {
    Series series;
    series.values.assign(static_cast<std::size_t>(steps), 2000 * kMb);
    noise.add(series.values, random);
    for (int step = 0; step < steps; ++step) {
      series.at.push_back(step);
      series.values[static_cast<std::size_t>(step)] += leak * kMb * step;
    }
    called += detect_leak(series).verdict == LeakVerdict::leak ? 1 : 0;
  }
  return 100.0 * called / rounds;
}

int run(int rounds) {
  fmt::print(
      "Simulated, {} rounds a figure, seed {}: verdicts \"leak\" in %, by MB leaked a step.\n\n",
      rounds, kSeed);
  fmt::print("| {:38} | {:>5} | {:>7} |", "noise", "steps", "no leak");
  for (const double leak : kLeaks)
    if (leak > 0) fmt::print(" {:>5} |", leak);
  fmt::print("\n|{:-<40}|{:->6}:|{:->8}:|", "", "", "");
  for (std::size_t i = 1; i < std::size(kLeaks); ++i) fmt::print("{:->6}:|", "");
  fmt::print("\n");
  for (const Noise& noise : noises()) {
    for (const int steps : kLengths) {
      fmt::print("| {:38} | {:>5} |", noise.name, steps);
      for (const double leak : kLeaks)
        fmt::print(" {:>{}.1f} |", share_called_leak(noise, steps, leak, rounds), leak > 0 ? 5 : 7);
      fmt::print("\n");
    }
  }
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  int rounds = 400;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
    if (argc > 2 || error != std::errc() || end != text.data() + text.size() || rounds < 1) {
      fmt::print(stderr, "usage: leaks [ROUNDS]\n");
      return 2;
    }
  }
  return headroom::run(rounds);
}
