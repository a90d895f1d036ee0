#include "harness/plan/suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/text.h"
#include "harness/control/injection.h"
#include "harness/device/device.h"
#include "harness/device/traits.h"
#include "harness/plan/axes.h"
#include "harness/plan/scenario.h"
#include "harness/plan/toml_section.h"

namespace headroom {
namespace {

constexpr int kNoisyBlocks = 10;
constexpr int kExactBlocks = 2;  // enough to check that two processes agree

// One [[experiment]] table: a cell to start from and the values of each axis.
struct Matrix {
  std::string id;
  std::string arms = "allocator";  // the axis whose values are compared
  Experiment pattern;
  Cell cell;
  std::map<std::string, std::vector<std::string>> values;
};

std::string canonical(const TomlSection& section, const std::string& key, const std::string& axis,
                      const std::string& value) {
  return section.placed(key, [&] {
    Cell cell;
    set_axis(cell, axis, value);
    return axis_value(cell, axis);
  });
}

// Reads the canonical values of one axis from a text or a list of texts.
std::vector<std::string> read_axis(const TomlSection& section, const std::string& axis) {
  if (!section.has(axis)) return {};
  std::vector<std::string> values;
  if (section.table().get(axis)->is_string()) {
    values = {section.text(axis)};
  } else {
    values = section.texts(axis);
  }
  if (values.empty()) section.fail(axis, "must not be empty");
  for (std::string& value : values) value = canonical(section, axis, axis, value);
  return values;
}

void put_baseline_first(const TomlSection& section, const std::string& axis,
                        std::vector<std::string>& arms) {
  const std::string baseline = canonical(section, "baseline", axis, section.text("baseline"));
  const auto found = std::find(arms.begin(), arms.end(), baseline);
  if (found == arms.end()) section.fail("baseline", "is not among the compared values");
  std::rotate(arms.begin(), found, found + 1);
}

// Checks a control: a configuration without effect, compared with itself or with injected effects.
void check_control(const TomlSection& section, const Matrix& matrix) {
  const auto found = matrix.values.find("inject");
  const bool clean_first = found != matrix.values.end() && found->second.front() == kNoInjection;
  if (!clean_first || found->second.size() < 2)
    section.fail(
        section.table(),
        fmt::format("control '{}' needs inject = [\"{}\", …]: \"none\" first, then \"none\" "
                    "again or effects",
                    matrix.id, kNoInjection));
}

bool takes_workload(const Matrix& matrix) {
  const auto scenarios = matrix.values.find("scenario");
  return scenarios == matrix.values.end() ||
         std::any_of(scenarios->second.begin(), scenarios->second.end(),
                     [](const std::string& text) { return takes_workload(Spec::parse(text)); });
}

Matrix read_matrix(const TomlSection& section, const AxisOverrides& overrides) {
  std::vector<std::string> known = axis_names();
  known.insert(known.end(), {"id", "kind", "arms", "baseline", "warmup_steps", "measured_steps",
                             "blocks", "timeout_s", "estimated_seconds"});
  section.allow(known);
  Matrix matrix;
  matrix.id = section.text("id");
  if (section.text("kind", "comparison") == "control") {
    matrix.pattern.kind = ExperimentKind::control;
    matrix.arms = "inject";
  } else if (section.has("kind")) {
    section.known("kind", "kind of experiment", {"comparison", "control"});
  }
  if (section.has("arms")) {
    if (matrix.pattern.kind == ExperimentKind::control)
      section.fail("arms", "is not for controls, which compare the values of inject");
    matrix.arms = section.known("arms", "axis", axis_names());
  }
  matrix.cell.warmup_steps = section.whole("warmup_steps", matrix.cell.warmup_steps, 1);
  matrix.cell.measured_steps = section.whole("measured_steps", matrix.cell.measured_steps, 1);
  matrix.pattern.blocks = section.whole("blocks", kNoisyBlocks, 1);
  matrix.pattern.timeout_s = section.whole("timeout_s", matrix.pattern.timeout_s, 1);
  matrix.pattern.estimated_seconds = section.number("estimated_seconds").value_or(0);
  if (matrix.pattern.estimated_seconds < 0) section.fail("estimated_seconds", "must be above 0");

  for (const std::string& axis : axis_names()) {
    std::vector<std::string> values = read_axis(section, axis);
    if (axis == matrix.arms && section.has("baseline")) put_baseline_first(section, axis, values);
    const auto found = overrides.find(axis);
    // Overrides do not apply to controls, which test the instrument.
    const bool replaced =
        found != overrides.end() && matrix.pattern.kind != ExperimentKind::control;
    if (replaced) values = found->second;
    if (!values.empty()) matrix.values[axis] = values;
  }
  if (matrix.pattern.kind == ExperimentKind::control) check_control(section, matrix);
  std::vector<std::string> needed = {"device", matrix.arms};
  if (takes_workload(matrix))
    needed.insert(needed.end(), {"workload", "allocator"});
  else
    matrix.cell.workload = matrix.cell.allocator = Spec(kNothing);
  for (const std::string& axis : needed)
    if (!matrix.values.contains(axis))
      section.fail(section.table(), fmt::format("experiment '{}' names no {}", matrix.id, axis));
  return matrix;
}

// Refuses matrices too large to finish: each cell is a process in every block.
void check_size(const TomlSection& section, const Matrix& matrix) {
  constexpr double kMostCells = 100'000;
  constexpr double kMostSamples = 100'000'000;
  double cells = 1;
  for (const auto& [axis, values] : matrix.values) cells *= static_cast<double>(values.size());
  if (cells > kMostCells || cells * matrix.pattern.blocks > kMostSamples)
    section.fail(
        section.table(),
        fmt::format(
            "experiment '{}' has {:.0f} configurations in {} blocks; at most {:.0f} configurations "
            "and {:.0f} samples are run",
            matrix.id, cells, matrix.pattern.blocks, kMostCells, kMostSamples));
}

// Expands every combination of the axes from `axis` on, except the axis whose values are compared.
// `point` names the values of the axes that have several.
void expand(const Matrix& matrix, std::size_t axis, Cell cell,
            const std::vector<std::string>& point, const std::string& suite,
            std::vector<Experiment>& out) {
  const std::vector<std::string>& axes = axis_names();
  if (axis < axes.size()) {
    const std::string& name = axes[axis];
    const auto found = matrix.values.find(name);
    if (found == matrix.values.end() || name == matrix.arms)
      return expand(matrix, axis + 1, cell, point, suite, out);
    for (const std::string& value : found->second) {
      set_axis(cell, name, value);
      std::vector<std::string> further = point;
      if (found->second.size() > 1) further.push_back(fmt::format("{}={}", name, value));
      expand(matrix, axis + 1, cell, further, suite, out);
    }
    return;
  }
  Experiment experiment = matrix.pattern;
  experiment.point = fmt::format("{}", fmt::join(point, " "));
  experiment.id =
      fmt::format("{}/{}{}{}", suite, matrix.id, point.empty() ? "" : "/", experiment.point);
  experiment.origin = suite;
  if (traits_of(cell.device).exact) experiment.blocks = kExactBlocks;
  for (const std::string& value : matrix.values.at(matrix.arms)) {
    set_axis(cell, matrix.arms, value);
    // The same configuration twice makes an A/A comparison, which tests the instrument.
    const auto again = std::count_if(experiment.arms.begin(), experiment.arms.end(),
                                     [&](const Arm& arm) { return arm.cell.id() == cell.id(); });
    experiment.arms.push_back({again == 0 ? value : fmt::format("{}#{}", value, again + 1), cell});
  }
  out.push_back(experiment);
}

}  // namespace

Suite read_suite(const std::filesystem::path& file, const AxisOverrides& overrides) {
  const toml::table table = parse_toml_file(file.string());
  const TomlSection section(table, file.string(), "the suite");
  section.allow({"name", "description", "claims", "leave_out", "max_pairs", "experiment"});
  const std::string name = section.text("name");
  // The name becomes part of a directory name.
  if (!is_file_name(name))
    section.fail("name", "must be at most 200 bytes without slashes and control characters");
  Suite suite{
      .name = name,
      .description = section.text("description"),
      .claims = section.has("claims") ? section.texts("claims") : std::vector<std::string>{},
      .leave_out =
          section.has("leave_out") ? section.texts("leave_out") : std::vector<std::string>{},
      .max_pairs = section.whole("max_pairs", 0, 1),
      .experiments = {}};
  std::vector<std::string> known = Registry<DeviceKind>::instance().names();
  for (std::string& scenario : Registry<ScenarioKind>::instance().names())
    known.push_back(std::move(scenario));
  for (const std::string& left_out : suite.leave_out)
    section.known_name("leave_out", "device class or scenario", left_out, known);
  if (!section.has("experiment")) return suite;
  std::set<std::string> ids;
  for (const TomlSection& entry : section.sections("experiment")) {
    const Matrix matrix = read_matrix(entry, overrides);
    check_size(entry, matrix);
    if (!ids.insert(matrix.id).second) entry.fail("id", "is used twice");
    expand(matrix, 0, matrix.cell, {}, suite.name, suite.experiments);
  }
  return suite;
}

std::vector<std::string> suite_names(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(directory)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace headroom
