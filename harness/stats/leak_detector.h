// Decides whether memory leaks. The input is a series of bytes over steps (or seconds): live bytes
// of a trace, RSS or PSS of a process tree, or device bytes. The output is a verdict with a slope.
// The measured error rates of the verdicts are in bench/statistics/README.md.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/stats/slope.h"

namespace headroom {

enum class LeakVerdict {
  leak,        // it grows throughout, by more than is harmless
  no_leak,     // any change is within what is harmless
  levels_off,  // it grew, then changed only within what is harmless: a warm-up, a cache, one
               // step
  undecided,   // noise, slowing growth or a short series leave it open
};
std::string_view to_string(LeakVerdict verdict);  // "leak", "no leak", "levels off", "undecided"

struct LeakOptions {
  double level = 0.95;
  // Slopes up to this count as no growth, in bytes per unit of `at`. With 0, a noisy series can
  // never prove that there is no leak, so a series that does not leak stays undecided.
  double harmless_slope = 0;
  double warmup_share = 0.25;  // share of the series dropped at its beginning; in [0, 0.5]
};

struct LeakFinding {
  LeakVerdict verdict = LeakVerdict::undecided;
  // Slope after the warm-up, in bytes per unit of `at`. Where growth is a single jump, the slope
  // without that jump.
  double slope = 0;
  Interval interval;  // at confidence `level`; infinite when the series is too short
  // The smallest slope that would be detected in most cases with this noise and series length;
  // infinite when the interval is.
  double detectable_slope = 0;
  double length = 0;         // of the series, in units of `at`
  double warmup_growth = 0;  // bytes: from the start to the typical value after the warm-up
  std::size_t blocks = 0;    // number of blocks behind the interval
  // Additional length, in units of `at`, that would decide the series at this noise. Set only when
  // the verdict is undecided; absent when the slope is too close to the harmless limit.
  std::optional<double> more_needed;
};

// A series with fewer points is always undecided.
inline constexpr std::size_t kFewestLeakPoints = 8;

// The length of a series, in units of `at`, in which a slope would be detected in most cases at the
// noise of this one: an estimate. Absent when the series is too short to tell its noise.
std::optional<double> length_to_see(const LeakFinding& finding, double slope);

// Throws Error for a series that check_series rejects, or a level or share out of range.
LeakFinding detect_leak(const Series& series, const LeakOptions& options = {});

// For example "5.0 MiB per step (95 % interval 4.8 MiB … 5.2 MiB)"; `unit` is the unit of `at`.
std::string describe(const LeakFinding& finding, const LeakOptions& options, std::string_view unit);

}  // namespace headroom
