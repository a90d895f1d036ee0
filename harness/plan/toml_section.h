// Reads a TOML table key by key; every error names file and line. Include it in few source files,
// because it includes the whole parser.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/registry.h"
#include "harness/base/spec.h"
#include "harness/plan/toml_keys.h"

namespace headroom {

inline toml::table parse_toml_file(const std::string& path) try {
  const std::string text = read_file(path);
  const ReadingTime bounded(path);
  check_dotted_keys(text, path);
  return toml::parse(text, path);
} catch (const toml::parse_error& error) {
  throw InputError(
      fmt::format("{}:{}: {}", path, error.source().begin.line, std::string(error.description())));
}

class TomlSection {
 public:
  TomlSection(const toml::table& table, std::string path, std::string name)
      : table_(table), path_(std::move(path)), name_(std::move(name)) {}

  const toml::table& table() const { return table_; }

  [[noreturn]] void fail(const toml::node& node, std::string_view what) const {
    throw InputError(fmt::format("{}:{}: {}", path_, node.source().begin.line, what));
  }
  [[noreturn]] void fail(std::string_view key, std::string_view what) const {
    const toml::node* node = table_.get(key);
    fail(node != nullptr ? *node : table_, fmt::format("'{}' of {} {}", key, name_, what));
  }
  // Runs `read` and adds the place to its InputErrors, which know only the value.
  template <typename Read>
  auto placed(std::string_view key, Read read) const {
    try {
      return read();
    } catch (const InputError& error) {
      const toml::node* node = table_.get(key);
      fail(node != nullptr ? *node : table_, error.what());
    }
  }

  void allow(const std::vector<std::string>& keys) const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
      try {
        throw_unknown_name(fmt::format("key of {}", name_), name, keys);
      } catch (const InputError& error) {
        throw InputError(fmt::format("{}:{}: {}", path_, key.source().begin.line, error.what()));
      }
    }
  }

  bool has(std::string_view key) const { return table_.contains(key); }

  std::string text(std::string_view key) const {
    const toml::node& node = required(key);
    if (!node.is_string() || node.as_string()->get().empty()) fail(key, "must be a text");
    return node.as_string()->get();
  }
  std::string text(std::string_view key, std::string otherwise) const {
    return has(key) ? text(key) : std::move(otherwise);
  }
  // Reads one of a closed set of names.
  template <typename Values>
  auto choice(std::string_view key, std::string_view kind, const Values& values) const {
    const std::string name = text(key);
    std::vector<std::string> choices;
    for (const auto value : values) {
      if (to_string(value) == name) return value;
      choices.emplace_back(to_string(value));
    }
    placed(key, [&] { throw_unknown_name(kind, name, choices); });
    return values.front();
  }
  std::string known(std::string_view key, std::string_view kind,
                    const std::vector<std::string>& names) const {
    return known_name(key, kind, text(key), names);
  }
  std::string known_name(std::string_view key, std::string_view kind, const std::string& name,
                         const std::vector<std::string>& names) const {
    if (std::find(names.begin(), names.end(), name) == names.end())
      placed(key, [&] { throw_unknown_name(kind, name, names); });
    return name;
  }
  Spec spec(std::string_view key) const {
    const std::string value = text(key);
    return placed(key, [&] { return Spec::parse(value); });
  }
  bool flag(std::string_view key) const {
    const toml::node& node = required(key);
    if (!node.is_boolean()) fail(key, "must be true or false");
    return node.as_boolean()->get();
  }
  int whole(std::string_view key, int otherwise, int least) const {
    if (!has(key)) return otherwise;
    const toml::node& node = required(key);
    const auto value = node.is_integer() ? node.as_integer()->get() : std::int64_t{-1};
    if (value < least || value > 1'000'000)
      fail(key, fmt::format("must be a whole number from {} on", least));
    return static_cast<int>(value);
  }
  std::optional<double> number(std::string_view key) const {
    if (!has(key)) return std::nullopt;
    const auto value = required(key).value<double>();
    if (!value || !std::isfinite(*value)) fail(key, "must be a number");
    return value;
  }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> result;
    for (const toml::node& node : array(key)) {
      if (!node.is_string()) fail(node, fmt::format("'{}' must hold texts only", key));
      result.push_back(node.as_string()->get());
    }
    return result;
  }
  // Reads strings or whole numbers, as text.
  std::vector<std::string> values(std::string_view key) const {
    std::vector<std::string> result;
    for (const toml::node& node : array(key)) {
      if (node.is_integer())
        result.push_back(std::to_string(node.as_integer()->get()));
      else if (node.is_string())
        result.push_back(node.as_string()->get());
      else
        fail(node, fmt::format("'{}' must hold whole numbers or texts", key));
    }
    if (result.empty()) fail(key, "must not be empty");
    return result;
  }

  TomlSection section(std::string_view key) const {
    const toml::node& node = required(key);
    if (!node.is_table()) fail(key, "must be a table");
    return {*node.as_table(), path_, std::string(key)};
  }
  std::vector<TomlSection> sections(std::string_view key) const {
    std::vector<TomlSection> result;
    for (const toml::node& node : array(key)) {
      if (!node.is_table()) fail(key, fmt::format("must be written as [[{}]]", key));
      result.emplace_back(*node.as_table(), path_, std::string(key));
    }
    if (result.empty()) fail(key, "must not be empty");
    return result;
  }

 private:
  const toml::node& required(std::string_view key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) fail(table_, fmt::format("{} lacks the key '{}'", name_, key));
    return *node;
  }
  const toml::array& array(std::string_view key) const {
    const toml::node& node = required(key);
    if (!node.is_array()) fail(key, "must be a list");
    return *node.as_array();
  }

  const toml::table& table_;
  std::string path_;
  std::string name_;
};

}  // namespace headroom
