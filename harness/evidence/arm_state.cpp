#include "harness/evidence/arm_state.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/traits.h"

namespace headroom {
namespace {

std::string why_device_is_unavailable(const Spec& device) {
  const auto& registry = Registry<DeviceKind>::instance();
  if (!registry.contains(device.name()))
    return fmt::format("this build has no device '{}'", device.name());
  const DeviceKind& kind = registry.find(device.name());
  return kind.unavailable ? kind.unavailable() : "";
}

ResultState result_of(SampleStatus status) {
  switch (status) {
    case SampleStatus::ok:
      return ResultState::present;
    case SampleStatus::oom:
      return ResultState::out_of_memory;
    case SampleStatus::unsupported:
      return ResultState::unavailable;
    case SampleStatus::invalid:
      return ResultState::not_engaged;
    case SampleStatus::crash:
    case SampleStatus::timeout:
      break;
  }
  return ResultState::failed;
}

std::string what_happened(const Arm& arm, const Sample& sample) {
  const std::string reason = sample.reason.empty() ? "" : fmt::format(": {}", sample.reason);
  switch (sample.status) {
    case SampleStatus::oom:
      if (!sample.oom) return fmt::format("{} ran out of memory{}", arm.name, reason);
      return fmt::format("{} ran out of memory asking for {} with {} of {} reserved", arm.name,
                         format_bytes(sample.oom->requested_bytes),
                         format_bytes(sample.oom->reserved_bytes),
                         format_bytes(sample.oom->capacity_bytes));
    case SampleStatus::unsupported:
      return fmt::format("{} cannot run here{}", arm.name, reason);
    case SampleStatus::invalid:
      return fmt::format("{} did not do what its name says{}", arm.name, reason);
    case SampleStatus::timeout:
      return fmt::format("{} did not finish in time{}", arm.name, reason);
    case SampleStatus::ok:
    case SampleStatus::crash:
      break;
  }
  return fmt::format("{} crashed{}", arm.name, reason);
}

}  // namespace

std::string_view to_string(ResultState state) {
  constexpr std::array<std::string_view, 6> kNames = {"ok",      "unavailable", "out_of_memory",
                                                      "not_run", "failed",      "not_engaged"};
  return kNames.at(static_cast<std::size_t>(state));
}

ArmState arm_state(const SampleTable& table, const Experiment& experiment, const Arm& arm) {
  ArmState state;
  const Sample* worst = nullptr;
  for (const auto& [block, sample] : table.of(experiment.id, arm.name)) {
    ++state.samples;
    if (sample->status == SampleStatus::ok) ++state.ok;
    const ResultState result = result_of(sample->status);
    if (result > state.result) {
      state.result = result;
      worst = sample;
    }
  }
  if (state.samples == 0) {
    const std::string unavailable = why_device_is_unavailable(arm.cell.device);
    state.result = unavailable.empty() ? ResultState::not_run : ResultState::unavailable;
    state.why = unavailable.empty() ? fmt::format("{} has not been run", arm.name) : unavailable;
    return state;
  }
  // If a strategy failed to engage even once, the configuration has no result. Other failures are
  // reported elsewhere and do not affect the samples that succeeded.
  if (state.ok > 0 && state.result != ResultState::not_engaged) state.result = ResultState::present;
  if (state.result != ResultState::present) state.why = what_happened(arm, *worst);
  return state;
}

bool count_as_same(double a, double b, const Spec& device) {
  return std::abs(a - b) <= traits_of(device).exact_within * std::abs(a);
}

std::optional<double> agreed_value(const SampleTable::ByBlock& samples, const Metric& metric) {
  std::optional<double> common;
  for (const auto& [block, sample] : samples) {
    if (sample->status != SampleStatus::ok) continue;
    const auto value = metric.value(*sample);
    if (!value || (common && !count_as_same(*common, *value, sample->cell.device)))
      return std::nullopt;
    common = common.value_or(*value);
  }
  return common;
}

std::string lowering_rules_of(const SampleTable::ByBlock& samples) {
  for (const auto& [block, sample] : samples)
    if (sample->status == SampleStatus::ok) return sample->rules;
  return "";
}

}  // namespace headroom
