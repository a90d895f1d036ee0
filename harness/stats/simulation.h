// Simulates comparisons under machine noise: how often identical configurations look different, and
// how often a slowdown is detected. Used by `headroom selftest`, bench/statistics and the tests.
// The rates are always computed where they are reported, never quoted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Noise of the logarithm of a sample's time.
struct MachineNoise {
  double drift_sd = 0.05;  // slow drift: first-order autoregressive, coefficient 0.9 per sample
  double independent_sd = 0.02;  // independent noise of each sample
  double burst_share = 0.03;     // share of the samples that are up to 15 % slower
};
// Noise without drift or bursts, where paired differences have this standard deviation.
MachineNoise independent_noise(double sd_of_differences);

enum class Design {
  one_after_the_other,  // all samples of A, then all of B; Welch's t-test
  paired,               // A and B back to back in random order; the interval of paired.h
  two_stage,            // paired, with as many more pairs as the pilot's dispersion requires
};

struct Simulation {
  Design design = Design::paired;
  MachineNoise noise = {};
  double effect = 0;       // effect of B on the log scale; 0: A and B are identical
  double delta = 0;        // the margin for WORSE
  std::size_t pairs = 10;  // for two_stage: the size of the pilot
  std::size_t max_pairs = 60;
  int rounds = 2000;
  std::uint64_t seed = 20250917;
};

// Shares of the simulated rounds.
struct DesignRates {
  double alarms = 0;  // the 95 % interval excludes 0
  double worse = 0;   // the 95 % interval lies above delta
  double pairs = 0;   // mean number of pairs taken
};
DesignRates simulate(const Simulation& simulation);

}  // namespace headroom
