// Does memory leak? A series of bytes over steps (or seconds) in, a verdict with its slope out:
// of live bytes of a trace, of RSS or PSS of a process tree, of device bytes. What the rates of
// right and wrong verdicts are stands in bench/statistics/README.md.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/stats/slope.h"

namespace headroom {

enum class LeakVerdict {
  leak,        // it grows, by more than is harmless, all along
  no_leak,     // whatever it does is within what is harmless
  levels_off,  // it grew and stopped: a warm-up, a cache, one step up
  undecided,   // noise, slowing growth or a short series leave it open
};
std::string_view to_string(LeakVerdict verdict);  // "leak", "no leak", "levels off", "undecided"

struct LeakOptions {
  double level = 0.95;
  // Growth up to this counts as none, in bytes per unit of `at`. With 0 and noise no series can
  // ever prove that there is no leak: what is not one stays undecided.
  double harmless_slope = 0;
  double warmup_share = 0.25;  // of the series, left out at its beginning; in [0, 0.5]
};

struct LeakFinding {
  LeakVerdict verdict = LeakVerdict::undecided;
  // After the warm-up, in bytes per unit of `at`. Where growth is one jump, what there is besides.
  double slope = 0;
  Interval interval;  // of `level`; infinite when the series is too short
  // The smallest slope that noise like this would let a series of this length show in most cases;
  // infinite as the interval is.
  double detectable_slope = 0;
  double warmup_growth = 0;  // bytes: from the start to the typical value after the warm-up
  double largest_jump = 0;   // bytes: between two neighbouring blocks after the warm-up
  std::size_t blocks = 0;    // that the interval rests on
  // How much longer the series must get until noise like this lets it decide, in units of `at`;
  // only when undecided, and absent where the slope lies on the edge of what is harmless.
  std::optional<double> more_needed;
};

// Fewer points than this are always undecided.
inline constexpr std::size_t kFewestLeakPoints = 8;

// Throws Error for a series that check_series refuses, or a level or share out of range.
LeakFinding detect_leak(const Series& series, const LeakOptions& options = {});

// "5.0 MiB per step (95 % interval 4.8 MiB … 5.2 MiB)"; `unit` is what `at` counts.
std::string describe(const LeakFinding& finding, const LeakOptions& options, std::string_view unit);

}  // namespace headroom
