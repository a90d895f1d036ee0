// Simulates the statistical power of comparison designs: the rate of false alarms between identical
// configurations, and how often a slowdown of twice the margin is detected, for sequential runs,
// randomised pairs, and pairs in two stages. Usage:
//   build/bench/statistics/design [ROUNDS]
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "harness/stats/simulation.h"
#include "harness/stats/verdict.h"

namespace headroom {
namespace {

constexpr std::pair<Design, const char*> kDesigns[] = {
    {Design::one_after_the_other, "A, then B; Welch's test"},
    {Design::paired, "randomised pairs"},
    {Design::two_stage, "pairs in two stages"},
};

void print_row(const char* noise_name, const MachineNoise& noise, int rounds) {
  for (const auto& [design, name] : kDesigns) {
    Simulation simulation{.design = design,
                          .noise = noise,
                          .delta = std::log1p(kNoisyMargin),
                          .pairs = 10,
                          .max_pairs = 60,
                          .rounds = rounds};
    const DesignRates identical = simulate(simulation);
    simulation.effect = 2 * simulation.delta;
    const DesignRates slower = simulate(simulation);
    fmt::print("| {:32} | {:23} | {:5.1f} | {:12.1f} | {:8.1f} | {:10.1f} |\n", noise_name, name,
               slower.pairs, 100 * identical.alarms, 100 * slower.alarms, 100 * slower.worse);
  }
}

int run(int rounds) {
  fmt::print(
      "Simulated, {} rounds a row. Margin {:.0f} %, slowdown of twice the margin, 10 pairs; two "
      "stages: at most 60.\n\n",
      rounds, 100 * kNoisyMargin);
  fmt::print("| {:32} | {:23} | {:5} | {:12} | {:8} | {:10} |\n", "noise", "design", "pairs",
             "false alarms", "seen", "WORSE");
  fmt::print("|{:-<34}|{:-<25}|{:->6}:|{:->13}:|{:->9}:|{:->11}:|\n", "", "", "", "", "", "");
  print_row("drifting (5 %, 2 %, bursts 3 %)", {}, rounds);
  for (const double sd : {0.02, 0.05, 0.12})
    print_row(fmt::format("independent, sd of pairs {:.0f} %", 100 * sd).c_str(),
              independent_noise(sd), rounds);
  fmt::print(
      "\nShares in %. Seen: the 95 % interval leaves 0 out. WORSE: it lies above the "
      "margin.\n");
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  int rounds = 4000;
  if (argc > 1) {
    const std::string_view text = argv[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounds);
    if (argc > 2 || error != std::errc() || end != text.data() + text.size() || rounds < 1) {
      fmt::print(stderr, "usage: design [ROUNDS]\n");
      return 2;
    }
  }
  return headroom::run(rounds);
}
