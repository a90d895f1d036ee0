// The design of a comparison on simulated machine noise: how often identical arms look different,
// and how often a slowdown is seen. Behind `headroom selftest`, bench/statistics and the tests;
// its rates are computed wherever they are told, never quoted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom {

// Of the logarithm of a run's time.
struct MachineNoise {
  double drift_sd = 0.05;        // slow drift: first-order autoregressive, memory 0.9 a run
  double independent_sd = 0.02;  // from run to run
  double burst_share = 0.03;     // of the runs, made slower by up to 15 %
};
// No drift and no bursts; differences of pairs have this standard deviation.
MachineNoise independent_noise(double sd_of_differences);

enum class Design {
  one_after_the_other,  // all runs of A, then all of B; Welch's t-test
  paired,               // A and B back to back, order randomised; this instrument's interval
  two_stage,            // paired, and as many pairs more as the pilot's dispersion asks for
};

struct Simulation {
  Design design = Design::paired;
  MachineNoise noise = {};
  double effect = 0;       // of B, on the log scale; 0: identical arms
  double delta = 0;        // the margin that WORSE must pass
  std::size_t pairs = 10;  // of two_stage: the pilot
  std::size_t max_pairs = 60;
  int rounds = 2000;
  std::uint64_t seed = 20250917;
};

// Shares of the rounds.
struct DesignRates {
  double alarms = 0;  // the 95 % interval leaves 0 out
  double worse = 0;   // it lies above delta
  double pairs = 0;   // mean number taken
};
DesignRates simulate(const Simulation& simulation);

}  // namespace headroom
