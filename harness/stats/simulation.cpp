#include "harness/stats/simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "harness/stats/distributions.h"
#include "harness/stats/paired.h"

namespace headroom {
namespace {

constexpr double kMemory = 0.9;
constexpr double kLargestBurst = 0.15;

class Machine {
 public:
  Machine(const MachineNoise& noise, std::mt19937_64& generator)
      : noise_(noise), generator_(generator), drift_(noise.drift_sd * normal_(generator)) {}

  // Returns the logarithm of the time of one sample.
  double measure() {
    drift_ =
        kMemory * drift_ + noise_.drift_sd * std::sqrt(1 - kMemory * kMemory) * normal_(generator_);
    const bool burst = uniform_(generator_) < noise_.burst_share;
    return drift_ + noise_.independent_sd * normal_(generator_) +
           (burst ? kLargestBurst * uniform_(generator_) : 0);
  }
  bool coin() { return generator_() % 2 == 0; }

 private:
  const MachineNoise& noise_;
  std::mt19937_64& generator_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double drift_;
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of_mean(const std::vector<double>& values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  const auto n = static_cast<double>(values.size());
  return squares / (n - 1) / n;
}

// Welch's interval for the difference of two means.
Interval welch_interval(const std::vector<double>& a, const std::vector<double>& b) {
  const double of_a = variance_of_mean(a);
  const double of_b = variance_of_mean(b);
  const auto n = static_cast<double>(a.size());
  const double sum = of_a + of_b;
  const double degrees = sum * sum / ((of_a * of_a + of_b * of_b) / (n - 1));
  const double width = student_t_quantile(0.975, degrees) * std::sqrt(sum);
  const double difference = mean(b) - mean(a);
  return {difference - width, difference + width};
}

Interval one_after_the_other(const Simulation& simulation, Machine& machine) {
  std::vector<double> a(simulation.pairs);
  std::vector<double> b(simulation.pairs);
  for (double& value : a) value = machine.measure();
  for (double& value : b) value = machine.measure() + simulation.effect;
  return welch_interval(a, b);
}

void add_pairs(const Simulation& simulation, Machine& machine, std::size_t count,
               std::vector<double>& differences) {
  while (differences.size() < count) {
    const double first = machine.measure();
    const double second = machine.measure();
    const double difference = machine.coin() ? second - first : first - second;
    differences.push_back(difference + simulation.effect);
  }
}

}  // namespace

MachineNoise independent_noise(double sd_of_differences) {
  return {.drift_sd = 0, .independent_sd = sd_of_differences / std::sqrt(2.0), .burst_share = 0};
}

DesignRates simulate(const Simulation& simulation) {
  std::mt19937_64 generator(simulation.seed);
  DesignRates rates;
  for (int round = 0; round < simulation.rounds; ++round) {
    Machine machine(simulation.noise, generator);
    Interval interval;
    std::size_t pairs = simulation.pairs;
    if (simulation.design == Design::one_after_the_other) {
      interval = one_after_the_other(simulation, machine);
    } else {
      std::vector<double> differences;
      add_pairs(simulation, machine, pairs, differences);
      if (simulation.design == Design::two_stage) {
        pairs = std::min(pairs_needed(differences, simulation.delta), simulation.max_pairs);
        add_pairs(simulation, machine, pairs, differences);
      }
      interval = compare_pairs(differences, 0).ci95;
    }
    rates.alarms += interval.low > 0 || interval.high < 0 ? 1 : 0;
    rates.worse += interval.low > simulation.delta ? 1 : 0;
    rates.pairs += static_cast<double>(pairs);
  }
  for (double* sum : {&rates.alarms, &rates.worse, &rates.pairs}) *sum /= simulation.rounds;
  return rates;
}

}  // namespace headroom
