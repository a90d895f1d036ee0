#include "harness/stats/leak_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/base/error.h"
#include "harness/base/units.h"

namespace headroom {
namespace {

// Blocks are lengthened until they look independent of each other. The lower limit still allows a
// 95 % interval with two discordant pairs to spare.
constexpr std::size_t kMostBlocks = 16;
constexpr std::size_t kFewestBlocks = 8;
constexpr double kIndependent = 0.1;
constexpr std::size_t kFinePoints = 240;
// Growth is slowing down when the slope of its second half is below this share of the first half's.
constexpr double kSlowing = 0.6;
// A jump this many times as high as the next one is not noise.
constexpr double kStandsOut = 3;
// Ratio of the slope that is detected in most cases to the interval's half-width: an estimate, not
// calibrated.
constexpr double kDetectable = 2.0;
constexpr double kEdge =
    0.05;  // share of the half-width; no length is predicted for slopes closer to the limit

Series independent_blocks(const Series& series) {
  std::size_t count = std::min(kMostBlocks, series.size());
  Series blocks = block_medians(series, count);
  while (count > kFewestBlocks && residual_autocorrelation(blocks) > kIndependent) {
    count = std::max(kFewestBlocks, count * 3 / 4);
    blocks = block_medians(series, count);
  }
  return blocks;
}

double median_rise(const Series& blocks) {
  std::vector<double> rises;
  for (std::size_t i = 1; i < blocks.size(); ++i)
    rises.push_back(blocks.values[i] - blocks.values[i - 1]);
  const auto middle = rises.begin() + static_cast<std::ptrdiff_t>(rises.size() / 2);
  std::nth_element(rises.begin(), middle, rises.end());
  return *middle;
}

struct Calm {
  Series series;
  double jump = 0;
};

// The same series with its largest jump reduced to an ordinary rise. The median of a block that
// contains a jump may lie half way, which splits one jump into two rises; therefore two
// neighbouring rises are treated as one.
Calm without_largest_jump(Series series) {
  const std::size_t count = std::min(kMostBlocks, series.size());
  const Series blocks = block_medians(series, count);
  const auto rise = [&](std::size_t i) { return blocks.values[i + 2] - blocks.values[i]; };
  std::size_t before = 0;
  for (std::size_t i = 1; i + 2 < count; ++i)
    if (rise(i) > rise(before)) before = i;
  const double ordinary = median_rise(blocks);
  const double excess = rise(before) - 2 * ordinary;
  const double excess_within = blocks.values[before + 1] - blocks.values[before] - ordinary;
  const std::size_t within = block_begin(series.size(), count, before + 1);
  const std::size_t after = block_begin(series.size(), count, before + 2);
  for (std::size_t i = within; i < series.size(); ++i)
    series.values[i] -= i < after ? excess_within : excess;
  return {std::move(series), std::max(0.0, rise(before))};
}

// The first half of a series against its second. The slopes are estimated from more points than the
// intervals, which need independent blocks.
struct Halves {
  double early_slope = 0;
  double late_slope = 0;
  Interval early;
  Interval late;
};
Halves compare_halves(const Series& series, double level) {
  const Series fine = block_medians(series, kFinePoints);
  const std::size_t middle = series.size() / 2;
  return {theil_sen(fine.part(0, fine.size() / 2)),
          theil_sen(fine.part(fine.size() / 2, fine.size())),
          theil_sen_interval(independent_blocks(series.part(0, middle)), level),
          theil_sen_interval(independent_blocks(series.part(middle, series.size())), level)};
}

// Slower growth alone does not show this: a leak during a warm-up also slows down when that ends.
bool has_stopped(const Halves& halves, double harmless) {
  return halves.early.low > harmless && halves.late.high <= harmless;
}

double typical(const Series& series) { return block_medians(series, 1).values.front(); }

double noise_of(const LeakFinding& finding) {
  return (finding.interval.high - finding.interval.low) / 2;
}

// The interval's width shrinks as length^-1.5, because growth accumulates while noise does not.
std::optional<double> length_to_decide(const LeakFinding& finding, double harmless, double length) {
  const double half_width = noise_of(finding);
  const double distance = std::abs(finding.slope - harmless);
  if (!std::isfinite(half_width) || distance <= kEdge * half_width) return std::nullopt;
  return length * (std::max(1.1, std::pow(half_width / distance, 2.0 / 3.0)) - 1);
}

std::string signed_bytes(double bytes) {
  if (std::isinf(bytes)) return bytes > 0 ? "∞" : "−∞";
  return (bytes <= -0.5 ? "−" : "") +
         format_bytes(static_cast<Bytes>(std::min(std::round(std::abs(bytes)), 0x1p62)));
}

}  // namespace

std::string_view to_string(LeakVerdict verdict) {
  switch (verdict) {
    case LeakVerdict::leak:
      return "leak";
    case LeakVerdict::no_leak:
      return "no leak";
    case LeakVerdict::levels_off:
      return "levels off";
    case LeakVerdict::undecided:
      break;
  }
  return "undecided";
}

std::optional<double> length_to_see(const LeakFinding& finding, double slope) {
  const double noise = noise_of(finding);
  if (!std::isfinite(noise) || slope <= 0) return std::nullopt;
  return finding.length * std::pow(kDetectable * noise / slope, 2.0 / 3.0);
}

namespace {

// The finding for a series too short to decide, with the length that is missing.
LeakFinding undecided(const Series& series) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  LeakFinding finding;
  finding.interval = {-kInfinity, kInfinity};
  finding.detectable_slope = kInfinity;
  if (series.size() < 2) return finding;
  finding.length = series.at.back() - series.at.front();
  if (series.size() < kFewestLeakPoints)
    finding.more_needed = finding.length / static_cast<double>(series.size() - 1) *
                          static_cast<double>(kFewestLeakPoints - series.size());
  return finding;
}

// Judges growth beyond the harmless slope: sets the verdict, or the length needed for one.
void judge_growth(LeakFinding& finding, const Halves& halves, double harmless) {
  if (has_stopped(halves, harmless)) {
    finding.verdict = LeakVerdict::levels_off;
  } else if (finding.interval.low <= harmless) {
    finding.more_needed = length_to_decide(finding, harmless, finding.length);
  } else if (halves.late_slope < kSlowing * halves.early_slope) {
    finding.more_needed = finding.length;  // slowing down: a longer series shows where it ends
  } else {
    finding.verdict = LeakVerdict::leak;
  }
}

}  // namespace

LeakFinding detect_leak(const Series& series, const LeakOptions& options) {
  check_series(series);
  if (!(options.level > 0 && options.level < 1) ||
      !(options.warmup_share >= 0 && options.warmup_share <= 0.5))
    throw Error("leak detection needs a level in (0, 1) and a warm-up share in [0, 0.5]");
  LeakFinding finding = undecided(series);
  if (series.size() < kFewestLeakPoints) return finding;
  const auto warmup =
      static_cast<std::size_t>(options.warmup_share * static_cast<double>(series.size()));
  const Series steady = series.part(warmup, series.size());
  const Series blocks = independent_blocks(steady);
  const Calm calm = without_largest_jump(steady);
  const Series calm_blocks = independent_blocks(calm.series);
  const double harmless = options.harmless_slope;

  finding.blocks = blocks.size();
  finding.warmup_growth = typical(steady) - series.values.front();
  finding.slope = theil_sen(blocks);
  finding.interval = theil_sen_interval(blocks, options.level);
  // A single step up is not a leak: growth must also be significant without the largest rise.
  const Interval of_calm = theil_sen_interval(calm_blocks, options.level);
  const bool stands_out = calm.jump > kStandsOut * without_largest_jump(calm.series).jump;
  const bool one_jump =
      (finding.interval.low > harmless && of_calm.low <= harmless) ||
      (stands_out && finding.interval.high > harmless && of_calm.high <= harmless);
  if (one_jump) {
    finding.slope = theil_sen(calm_blocks);
    finding.interval = of_calm;
  }
  const Interval& interval = finding.interval;
  const double noise = (interval.high - interval.low) / 2;
  finding.detectable_slope = harmless + kDetectable * noise;

  if (interval.high <= harmless) {
    const bool grew = one_jump || finding.warmup_growth > (harmless + noise) * finding.length;
    finding.verdict = grew ? LeakVerdict::levels_off : LeakVerdict::no_leak;
    return finding;
  }
  judge_growth(finding, compare_halves(steady, options.level), harmless);
  return finding;
}

std::string describe(const LeakFinding& finding, const LeakOptions& options,
                     std::string_view unit) {
  if (!std::isfinite(finding.interval.low) || !std::isfinite(finding.interval.high))
    return "too short to tell";
  return fmt::format("{} per {} ({:g} % interval {} … {})", signed_bytes(finding.slope), unit,
                     100 * options.level, signed_bytes(finding.interval.low),
                     signed_bytes(finding.interval.high));
}

}  // namespace headroom
