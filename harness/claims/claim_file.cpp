// Reads bench/claims/*.toml into Claims. Every error names file and line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/claims/claim.h"
#include "harness/device/device.h"
#include "harness/plan/axes.h"
#include "harness/plan/scenario.h"
#include "harness/plan/toml_section.h"
#include "harness/results/metric.h"

namespace headroom {
namespace {

constexpr std::array kJudges = {Judge::ratio, Judge::difference, Judge::bound, Judge::predicate};
constexpr std::array kPartKinds = {PartKind::direction, PartKind::number, PartKind::cause,
                                   PartKind::interface, PartKind::control};

template <typename Named>
std::vector<std::string> names_in(const std::vector<Named>& items) {
  std::vector<std::string> names;
  for (const Named& item : items) names.push_back(item.name);
  return names;
}

std::vector<std::string> device_classes() { return Registry<DeviceKind>::instance().names(); }

// Returns every axis but the device, which all configurations share.
std::vector<std::string> axes_of_arms() {
  std::vector<std::string> axes = axis_names();
  std::erase(axes, "device");
  return axes;
}

void read_axes(const TomlSection& section, Cell& cell) {
  for (const std::string& axis : axes_of_arms())
    if (section.has(axis)) section.placed(axis, [&] { set_axis(cell, axis, section.text(axis)); });
}

std::vector<Arm> read_arms(const TomlSection& arms, const Cell& common) {
  std::vector<std::pair<toml::source_position, Arm>> placed;
  for (const auto& [key, node] : arms.table()) {
    const TomlSection section = arms.section(key.str());
    section.allow(axes_of_arms());
    Arm arm{std::string(key.str()), common};
    read_axes(section, arm.cell);
    const bool has_workload = arm.cell.workload.name() != kNothing;
    if (takes_workload(arm.cell.scenario) && !has_workload)
      arms.fail(key.str(), "trains but names no workload");
    if (trains(arm.cell) && arm.cell.allocator.name() == kNothing)
      arms.fail(key.str(), "trains but names no allocator");
    placed.emplace_back(key.source().begin, std::move(arm));
  }
  // The TOML library sorts by name, but configurations must keep the order of the file.
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Arm> result;
  for (auto& [position, arm] : placed) result.push_back(std::move(arm));
  return result;
}

ClaimExperiment read_experiment(const TomlSection& section) {
  std::vector<std::string> known = axis_names();
  known.insert(known.end(), {"name", "sweep", "warmup_steps", "measured_steps", "blocks",
                             "timeout_s", "estimated_seconds", "arms"});
  section.allow(known);
  ClaimExperiment experiment;
  experiment.name = section.text("name");
  experiment.device = section.spec("device");
  section.known_name("device", "device class", experiment.device.name(), device_classes());
  Cell common;
  common.device = experiment.device;
  common.workload = Spec(kNothing);
  common.allocator = Spec(kNothing);
  read_axes(section, common);
  common.warmup_steps = section.whole("warmup_steps", common.warmup_steps, 0);
  common.measured_steps = section.whole("measured_steps", common.measured_steps, 1);
  experiment.arms = read_arms(section.section("arms"), common);
  if (experiment.arms.empty()) section.fail("arms", "must name at least one variant");
  if (section.has("sweep")) {
    const TomlSection sweep = section.section("sweep");
    sweep.allow({"parameter", "values", "axis"});
    experiment.sweep = Sweep{sweep.text("parameter"), sweep.values("values"), "workload"};
    if (sweep.has("axis")) experiment.sweep->axis = sweep.known("axis", "axis", axes_of_arms());
    sweep.placed("parameter", [&] {
      for (const std::string& value : experiment.sweep->values)
        for (Arm arm : experiment.arms) set_swept(arm.cell, *experiment.sweep, value);
    });
  }
  experiment.blocks = section.whole("blocks", experiment.blocks, 1);
  experiment.timeout_s = section.whole("timeout_s", experiment.timeout_s, 1);
  experiment.estimated_seconds = section.number("estimated_seconds").value_or(0);
  if (experiment.estimated_seconds < 0) section.fail("estimated_seconds", "must not be negative");
  return experiment;
}

ClaimedFigure read_claimed(const TomlSection& part, Judge judge) {
  const TomlSection section = part.section("claimed");
  ClaimedFigure claimed;
  claimed.delta = section.number("delta");
  if (claimed.delta && *claimed.delta <= 0) section.fail("delta", "must be above 0");
  if (judge == Judge::bound) {
    section.allow({"at_least", "at_most"});
    claimed.at_least = section.number("at_least");
    claimed.at_most = section.number("at_most");
    if (!claimed.at_least && !claimed.at_most)
      part.fail("claimed", "needs at_least or at_most for the judge 'bound'");
    return claimed;
  }
  if (judge == Judge::predicate) {
    section.allow({"holds"});
    claimed.holds = section.flag("holds");
    (*claimed.holds ? claimed.at_least : claimed.at_most) = *claimed.holds ? 1 : 0;
    return claimed;
  }
  section.allow({"value", "direction", "tolerance", "delta"});
  claimed.value = section.number("value");
  if (claimed.value) {
    if (*claimed.value == 0) section.fail("value", "must not be 0");
    if (judge == Judge::ratio && *claimed.value <= -1)
      section.fail("value", "is ratio - 1 and must be above -1");
    if (section.has("direction")) section.fail("direction", "follows from the sign of value");
    claimed.direction = *claimed.value < 0 ? -1 : 1;
    claimed.tolerance = section.number("tolerance").value_or(0);
    if (claimed.tolerance <= 0 || claimed.tolerance > 0.5)
      section.fail("tolerance", "must be above 0 and at most 0.5: a share of the value");
    const double size =
        judge == Judge::ratio ? std::abs(std::log1p(*claimed.value)) : std::abs(*claimed.value);
    const double delta = claimed.delta.value_or(0);
    if ((judge == Judge::ratio ? std::log1p(delta) : delta) > size / 2)
      section.fail("delta", "must be at most half of the claimed effect");
    return claimed;
  }
  if (section.has("tolerance")) section.fail("tolerance", "needs a value");
  const double direction = section.number("direction").value_or(0);
  if (direction != 1 && direction != -1)
    section.fail("direction", "must be 1 (more) or -1 (less) where there is no value");
  claimed.direction = static_cast<int>(direction);
  return claimed;
}

std::string placeholder_of(Judge judge) {
  if (judge == Judge::bound) return "{value}";
  return judge == Judge::predicate ? "{cases}" : "{less|more}";
}

// Whether it has one placeholder, no digit and a full stop. Any pair of words may stand for less
// and more.
bool is_sentence(const std::string& found, const std::string& placeholder) {
  const std::size_t open = found.find('{');
  const std::size_t close = found.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return false;
  if (open != found.rfind('{') || close != found.rfind('}')) return false;
  if (!found.ends_with('.') || found.find_first_of("0123456789") != std::string::npos) return false;
  const std::string inside = found.substr(open, close - open + 1);
  const std::size_t bar = inside.find('|');
  if (placeholder.find('|') == std::string::npos) return inside == placeholder;
  return bar != std::string::npos && bar == inside.rfind('|') && bar > 1 && bar + 2 < inside.size();
}

// A sentence that the figures fill. Only its placeholder says how much and in which direction, so
// that no figures can contradict the rest.
std::string read_found(const TomlSection& section, Judge judge) {
  const std::string found = section.text("found", "");
  if (!found.empty() && !is_sentence(found, placeholder_of(judge)))
    section.fail("found",
                 fmt::format("must be a sentence with one {} and without digits, and end with a "
                             "full stop: the judge is '{}'",
                             placeholder_of(judge), to_string(judge)));
  return found;
}

ClaimPart read_part(const TomlSection& section, const std::vector<ClaimExperiment>& experiments) {
  section.allow({"name", "text", "found", "kind", "judge", "metrics", "experiments", "baseline",
                 "treatment", "claimed"});
  ClaimPart part;
  part.name = section.text("name");
  part.text = section.text("text");
  part.kind = section.choice("kind", "kind of part", kPartKinds);
  part.judge = section.choice("judge", "judge", kJudges);
  part.found = read_found(section, part.judge);
  part.metrics = section.texts("metrics");
  for (const std::string& metric : part.metrics)
    section.placed("metrics", [&] { find_metric(metric); });
  if (part.metrics.empty()) section.fail("metrics", "must not be empty");
  part.treatment = section.text("treatment");
  if (needs_no_baseline(part.judge) && section.has("baseline"))
    section.fail("baseline",
                 fmt::format("has no meaning for the judge '{}'", to_string(part.judge)));
  if (!needs_no_baseline(part.judge)) part.baseline = section.text("baseline");
  part.experiments = section.texts("experiments");
  if (part.experiments.empty()) section.fail("experiments", "must not be empty");
  for (const std::string& name : part.experiments) {
    section.known_name("experiments", "experiment", name, names_in(experiments));
    const auto& experiment =
        *std::find_if(experiments.begin(), experiments.end(),
                      [&](const ClaimExperiment& candidate) { return candidate.name == name; });
    const auto arms = names_in(experiment.arms);
    section.known_name("treatment", fmt::format("variant of experiment '{}'", name), part.treatment,
                       arms);
    if (!part.baseline.empty())
      section.known_name("baseline", fmt::format("variant of experiment '{}'", name), part.baseline,
                         arms);
  }
  part.claimed = read_claimed(section, part.judge);
  return part;
}

void require_unique_names(const TomlSection& file, std::string_view key,
                          const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second) file.fail(key, fmt::format("has the name '{}' twice", name));
}

Claim read_claim(const TomlSection& file) {
  file.allow({"id", "title", "statement", "source", "subject", "pitfalls", "limits", "instead",
              "experiment", "part"});
  Claim claim;
  claim.id = file.text("id");
  if (claim.id.find_first_of("/ =") != std::string::npos)
    file.fail("id", "must not contain blanks, '/' or '='");
  claim.title = file.text("title");
  claim.statement = file.text("statement");
  const TomlSection source = file.section("source");
  source.allow({"title", "section", "date", "url"});
  claim.source = {source.text("title"), source.text("section"), source.text("date", ""),
                  source.text("url", "")};
  if (!claim.source.url.empty() && !claim.source.url.starts_with("https://"))
    source.fail("url", "does not begin with https://");
  const TomlSection subject = file.section("subject");
  subject.allow({"engine", "device_class", "text", "allocators"});
  claim.subject = {subject.text("engine"),
                   subject.known("device_class", "device class", device_classes()),
                   subject.text("text"), subject.texts("allocators")};
  claim.pitfalls = file.texts("pitfalls");
  claim.limits = file.texts("limits");
  claim.instead = file.text("instead");
  for (const TomlSection& section : file.sections("experiment"))
    claim.experiments.push_back(read_experiment(section));
  require_unique_names(file, "experiment", names_in(claim.experiments));
  for (const TomlSection& section : file.sections("part"))
    claim.parts.push_back(read_part(section, claim.experiments));
  require_unique_names(file, "part", names_in(claim.parts));
  return claim;
}

}  // namespace

Claim read_claim(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    throw InputError(fmt::format("{}: there is no such claim file", path));
  const toml::table table = parse_toml_file(path);
  return read_claim(TomlSection(table, path, "the claim"));
}

std::vector<Claim> read_claims(const std::string& directory) {
  if (!std::filesystem::is_directory(directory))
    throw InputError(fmt::format("{}: there is no such directory of claims", directory));
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".toml") paths.insert(entry.path().string());
  std::vector<Claim> claims;
  std::set<std::string> ids;
  for (const std::string& path : paths) {
    claims.push_back(read_claim(path));
    if (!ids.insert(claims.back().id).second)
      throw InputError(fmt::format("{}: the id '{}' is taken by another file of {}", path,
                                   claims.back().id, directory));
  }
  return claims;
}

}  // namespace headroom
