#include "harness/evidence/wording.h"

#include <fmt/format.h>

#include <cmath>

namespace headroom {
namespace {

std::string with_true_minus(std::string text) {
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 1))
    text.replace(at, 1, "\u2212");
  return text;
}

std::string duration_text(double ns) {
  const double size = std::abs(ns);
  if (size >= 1e9) return fmt::format("{:.3g} s", ns / 1e9);
  if (size >= 1e6) return fmt::format("{:.3g} ms", ns / 1e6);
  if (size >= 1e3) return fmt::format("{:.3g} µs", ns / 1e3);
  return fmt::format("{:.3g} ns", ns);
}

std::string interval_text(const Interval& interval, Scale scale, std::string_view unit) {
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high)) return "unbounded";
  return fmt::format("{} … {}", effect_text(interval.low, scale, unit),
                     effect_text(interval.high, scale, unit));
}

double default_delta(const ClaimPart& part, bool exact) {
  double delta = std::log1p(exact ? kExactMargin : kNoisyMargin);
  if (part.judge != Judge::ratio) delta = 0;
  if (part.claimed.value && part.judge == Judge::ratio)
    delta = std::min(delta, std::abs(std::log1p(*part.claimed.value)) / 2);
  return delta;
}

std::string certainty_text(const Finding& finding, std::string_view unit,
                           std::string_view provenance) {
  if (finding.comparison.exact && finding.exact_within > 0)
    return finding.reason_code == "exact_unrepeated"
               ? fmt::format("{}, one process", provenance)
               : fmt::format("{}, the same in every process to {:.2g} %", provenance,
                             100 * finding.exact_within);
  if (finding.comparison.exact) return fmt::format("{}, exact", provenance);
  std::string text = fmt::format("{}, interval {}, {} pairs", provenance,
                                 interval_text(finding.comparison.ci95, finding.scale, unit),
                                 finding.comparison.pairs);
  if (finding.looks > 0)
    text += fmt::format(
        ", some of which were added after {} at the results: intervals hold at {:.4g} % instead of "
        "{:.4g} %",
        finding.looks == 1 ? "a look" : fmt::format("{} looks", finding.looks),
        100 * (1 - finding.alpha), 100 * (1 - finding.alpha * std::exp2(finding.looks)));
  if (finding.excluded > 0) text += fmt::format(", {} excluded", finding.excluded);
  if (finding.demoted) text += ", although it should be the same in every process";
  return text;
}

}  // namespace

std::string value_text(double value, std::string_view unit) {
  if (unit == "B" && value >= 0) return format_bytes(static_cast<Bytes>(std::llround(value)));
  if (unit == "ns") return with_true_minus(duration_text(value));
  if (unit == "1/s") return fmt::format("{:.3g}/s", value);
  return with_true_minus(fmt::format("{:.4g}", value));
}

std::string effect_text(double theta, Scale scale, std::string_view unit) {
  if (scale == Scale::difference) {
    const std::string size = value_text(std::abs(theta), unit);
    return theta < 0 ? "\u2212" + size : theta > 0 ? "+" + size : size;
  }
  const double effect = std::expm1(theta);
  if (effect >= 3) return fmt::format("{:.3g}×", 1 + effect);
  const double percent = 100 * effect;
  if (std::abs(percent) < 0.005) return percent == 0 ? "0 %" : "0.00 %";
  return with_true_minus(std::abs(percent) < 1 ? fmt::format("{:+.2f} %", percent)
                                               : fmt::format("{:+.1f} %", percent));
}

ClaimedRange claimed_range(const ClaimPart& part, bool exact) {
  ClaimedRange range;
  const ClaimedFigure& claimed = part.claimed;
  const auto to_scale = [&](double x) { return part.judge == Judge::ratio ? std::log1p(x) : x; };
  range.effect.direction = claimed.direction;
  range.effect.delta = claimed.delta ? to_scale(*claimed.delta) : default_delta(part, exact);
  if (claimed.value) {
    range.effect.value = to_scale(*claimed.value);
    range.effect.tolerance = claimed.tolerance * std::abs(*range.effect.value);
    range.low = *range.effect.value - range.effect.tolerance;
    range.high = *range.effect.value + range.effect.tolerance;
  }
  return range;
}

std::string claimed_text(const ClaimPart& part, const Metric& metric, bool exact) {
  const ClaimedFigure& claimed = part.claimed;
  if (claimed.holds) return *claimed.holds ? "yes" : "no";
  if (part.judge == Judge::bound) {
    if (claimed.at_least && claimed.at_most)
      return fmt::format("{} … {}", value_text(*claimed.at_least, metric.unit),
                         value_text(*claimed.at_most, metric.unit));
    return claimed.at_least ? "at least " + value_text(*claimed.at_least, metric.unit)
                            : "at most " + value_text(*claimed.at_most, metric.unit);
  }
  const Scale scale = part.judge == Judge::ratio ? Scale::log_ratio : Scale::difference;
  const ClaimedRange range = claimed_range(part, exact);
  if (claimed.value)
    return fmt::format("{} (accepted: {})", effect_text(*range.effect.value, scale, metric.unit),
                       interval_text({range.low, range.high}, scale, metric.unit));
  const char* direction = claimed.direction < 0 ? "less" : "more";
  if (range.effect.delta == 0) return direction;
  return fmt::format("{}, by over {}", direction,
                     effect_text(range.effect.delta, scale, metric.unit).substr(1));
}

std::string evidence_sentence(const ClaimPart& part, const Metric& metric, const Finding& finding,
                              std::string_view provenance) {
  if (!finding.compared) return finding.why_not + ".";
  const std::string note = finding.note.empty() ? "" : fmt::format(" {}", finding.note);
  if (part.claimed.holds)
    return fmt::format("{} {}{}", part.text, *finding.treatment_value >= 1 ? "Yes" : "No",
                       note.empty() ? "." : ":" + note);
  const std::string treatment =
      fmt::format("{} {}", part.treatment, value_text(*finding.treatment_value, metric.unit));
  const std::string claimed = claimed_text(part, metric, finding.comparison.exact);
  if (!finding.baseline_value)
    return fmt::format("{}: {} ({}); claimed {}.{}", metric.text, treatment,
                       certainty_text(finding, metric.unit, provenance), claimed, note);
  return fmt::format("{}: {} against {} {}, {} ({}); claimed {}.{}", metric.text, treatment,
                     part.baseline, value_text(*finding.baseline_value, metric.unit),
                     effect_text(finding.comparison.theta, finding.scale, metric.unit),
                     certainty_text(finding, metric.unit, provenance), claimed, note);
}

std::string tail_sentence(const Tail& tail, const Metric& mean, const std::string& baseline,
                          const std::string& treatment) {
  const bool of_treatment = tail.theta > 0;
  return fmt::format(
      "Rare slow steps are slower or more frequent with {} than with {}: {}, in which they count, "
      "moves the comparison by another {} (interval {}).",
      of_treatment ? treatment : baseline, of_treatment ? baseline : treatment, mean.text,
      effect_text(tail.theta, Scale::log_ratio, mean.unit),
      interval_text(tail.ci95, Scale::log_ratio, mean.unit));
}

std::string range_text(const std::vector<std::string>& values, const std::vector<bool>& holds) {
  std::string text;
  for (std::size_t first = 0; first < values.size(); ++first) {
    if (!holds[first]) continue;
    std::size_t last = first;
    while (last + 1 < values.size() && holds[last + 1]) ++last;
    if (!text.empty()) text += ", ";
    text += first == last ? values[first] : fmt::format("{}…{}", values[first], values[last]);
    first = last;
  }
  return text;
}

}  // namespace headroom
