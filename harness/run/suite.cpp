#include "harness/run/suite.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/run/axes.h"

namespace headroom {
namespace {

constexpr int kNoisyBlocks = 10;
constexpr int kExactBlocks = 2;  // enough to see that two processes agree

// A TOML table and where it stands, so that every complaint names file and line.
class Reader {
 public:
  Reader(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    throw InputError(fmt::format("{}:{}: {}", file_, at.source().begin.line, what));
  }

  void require_known(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      located(node, [&, name = key.str()] { throw_unknown_name("key", name, known); });
    }
  }

  std::string text(const char* key) const {
    const std::optional<std::string> found = optional_text(key);
    if (!found) fail(table_, fmt::format("key '{}' is missing", key));
    return *found;
  }

  std::optional<std::string> optional_text(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_string()) fail(*node, fmt::format("'{}' must be a string", key));
    return node->ref<std::string>();
  }

  // A string, or a list of strings.
  std::vector<std::string> texts(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (node->is_string()) return {node->ref<std::string>()};
    if (!node->is_array()) fail(*node, fmt::format("'{}' must be a string or a list of them", key));
    std::vector<std::string> result;
    for (const toml::node& element : *node->as_array()) {
      if (!element.is_string()) fail(element, fmt::format("'{}' must hold strings", key));
      result.push_back(element.ref<std::string>());
    }
    if (result.empty()) fail(*node, fmt::format("'{}' is an empty list", key));
    return result;
  }

  int whole_number(const char* key, int otherwise, int least) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const std::optional<std::int64_t> value = node->value_exact<std::int64_t>();
    if (!value || *value < least || *value > 1'000'000)
      fail(*node, fmt::format("'{}' must be a whole number of at least {}", key, least));
    return static_cast<int>(*value);
  }

  double seconds(const char* key, double otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const std::optional<double> value = node->value<double>();
    if (!node->is_number() || !value || *value <= 0)
      fail(*node, fmt::format("'{}' must be a number of seconds above 0", key));
    return *value;
  }

  // Runs `action`; what it complains about happened at `node`.
  template <typename Action>
  void located(const toml::node& node, const Action& action) const {
    try {
      action();
    } catch (const InputError& error) {
      fail(node, error.what());
    }
  }

  const toml::table& table() const { return table_; }
  const toml::node& node(const char* key) const {
    const toml::node* found = table_.get(key);
    return found == nullptr ? static_cast<const toml::node&>(table_) : *found;
  }

 private:
  const toml::table& table_;
  std::string file_;
};

// One [[experiment]] table: a cell to start from and the values of each axis.
struct Matrix {
  std::string id;
  Experiment pattern;
  Cell cell;
  std::map<std::string, std::vector<std::string>> values;
};

Matrix read_matrix(const Reader& reader, const AxisOverrides& overrides) {
  std::vector<std::string> known = axis_names();
  known.insert(known.end(), {"id", "baseline", "warmup_steps", "steps", "blocks", "timeout_s",
                             "estimated_seconds"});
  reader.require_known(known);
  Matrix matrix;
  matrix.id = reader.text("id");
  matrix.cell.warmup_steps = reader.whole_number("warmup_steps", matrix.cell.warmup_steps, 0);
  matrix.cell.measured_steps = reader.whole_number("steps", matrix.cell.measured_steps, 1);
  matrix.pattern.blocks = reader.whole_number("blocks", kNoisyBlocks, 1);
  matrix.pattern.timeout_s = reader.whole_number("timeout_s", matrix.pattern.timeout_s, 1);
  matrix.pattern.estimated_seconds = reader.seconds("estimated_seconds", 0);

  for (const std::string& axis : axis_names()) {
    std::vector<std::string> values = reader.texts(axis.c_str());
    for (std::string& value : values)
      reader.located(reader.node(axis.c_str()), [&] {
        Cell cell;
        set_axis(cell, axis, value);
        value = axis_value(cell, axis);
      });
    if (const auto found = overrides.find(axis); found != overrides.end()) values = found->second;
    if (!values.empty()) matrix.values[axis] = values;
  }
  for (const char* axis : {"workload", "device", "allocator"})
    if (!matrix.values.contains(axis))
      reader.fail(reader.table(), fmt::format("experiment '{}' names no {}", matrix.id, axis));

  auto& arms = matrix.values["allocator"];
  if (const auto baseline = reader.optional_text("baseline");
      baseline && !overrides.contains("allocator")) {
    const auto found = std::find(arms.begin(), arms.end(), Spec::parse(*baseline).to_string());
    if (found == arms.end())
      reader.fail(reader.node("baseline"),
                  fmt::format("baseline '{}' is not among the allocators", *baseline));
    std::rotate(arms.begin(), found, found + 1);
  }
  return matrix;
}

// Every combination of the axes from `axis` on; the last axis, allocator, makes the arms.
void expand(const Matrix& matrix, std::size_t axis, Cell cell, const std::string& point,
            const std::string& suite, std::vector<Experiment>& out) {
  static const std::vector<std::string> order = {"workload",  "device",   "rules",
                                                 "execution", "pipeline", "optimizer"};
  if (axis < order.size()) {
    const auto found = matrix.values.find(order[axis]);
    if (found == matrix.values.end()) return expand(matrix, axis + 1, cell, point, suite, out);
    for (const std::string& value : found->second) {
      set_axis(cell, order[axis], value);
      const std::string tag = found->second.size() > 1 ? order[axis] + "=" + value : "";
      expand(matrix, axis + 1, cell, point.empty() || tag.empty() ? point + tag : point + " " + tag,
             suite, out);
    }
    return;
  }
  Experiment experiment = matrix.pattern;
  experiment.id = suite + "/" + matrix.id + (point.empty() ? "" : "/" + point);
  experiment.origin = suite;
  experiment.point = point;
  if (is_exact_device(cell.device)) experiment.blocks = kExactBlocks;
  for (const std::string& allocator : matrix.values.at("allocator")) {
    set_axis(cell, "allocator", allocator);
    // The same strategy twice is an A/A comparison: the instrument testing itself.
    const auto again = std::count_if(experiment.arms.begin(), experiment.arms.end(),
                                     [&](const Arm& arm) { return arm.cell.id() == cell.id(); });
    experiment.arms.push_back(
        {again == 0 ? allocator : fmt::format("{}#{}", allocator, again + 1), cell});
  }
  out.push_back(experiment);
}

toml::table parse(const std::filesystem::path& file) try {
  return toml::parse_file(file.string());
} catch (const toml::parse_error& error) {
  throw InputError(
      fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()));
}

}  // namespace

Suite read_suite(const std::filesystem::path& file, const AxisOverrides& overrides) {
  const toml::table table = parse(file);
  const Reader reader(table, file.string());
  reader.require_known({"name", "description", "claims", "experiment"});
  Suite suite{.name = reader.text("name"),
              .description = reader.text("description"),
              .claims = reader.texts("claims"),
              .experiments = {}};
  const toml::node* matrices = table.get("experiment");
  if (matrices == nullptr) return suite;
  if (!matrices->is_array_of_tables()) reader.fail(*matrices, "write [[experiment]]");
  for (const toml::node& node : *matrices->as_array()) {
    const Reader entry(*node.as_table(), file.string());
    const Matrix matrix = read_matrix(entry, overrides);
    const std::string id = suite.name + "/" + matrix.id;
    for (const Experiment& earlier : suite.experiments)
      if (earlier.id == id || earlier.id.starts_with(id + "/"))
        entry.fail(entry.node("id"), fmt::format("experiment '{}' stands there twice", matrix.id));
    expand(matrix, 0, matrix.cell, "", suite.name, suite.experiments);
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
