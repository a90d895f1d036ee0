#include "harness/base/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/text.h"

namespace headroom {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kInKey = "abcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kInName = "abcdefghijklmnopqrstuvwxyz0123456789_-";
constexpr std::string_view kInValue =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:/+-";

// A spec must fit on a command line, and an error message that quotes it must fit on a screen.
void check_length(std::string_view text) {
  constexpr std::size_t kMost = 10'000;
  if (text.size() > kMost)
    throw InputError(
        fmt::format("'{}…' is longer than {} characters", printable(text.substr(0, 60)), kMost));
}

bool is_word(std::string_view text, std::string_view first, std::string_view others) {
  return !text.empty() && first.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(others) == std::string_view::npos;
}

[[noreturn]] void throw_form(const Spec& spec, const std::string& key, const std::string& value,
                             std::string_view wanted) {
  throw InputError(fmt::format("{}: parameter '{}' is '{}', but must be {}", spec.to_string(), key,
                               value, wanted));
}

template <typename Number>
Number parse_number(const Spec& spec, const std::string& key, const std::string& value,
                    std::string_view wanted) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    throw_form(spec, key, value, wanted);
  return number;
}

}  // namespace

Spec::Spec(std::string name, std::map<std::string, std::string> parameters)
    : name_(std::move(name)), parameters_(std::move(parameters)) {}

// Parses a name, optionally followed by key=value pairs in parentheses. A lone value, as in
// limit(4GiB), is the value of the parameter "value".
Spec Spec::parse(std::string_view text) {
  check_length(text);
  std::string_view name = trimmed(text);
  std::string_view inside;
  bool sound = true;
  if (const std::size_t open = name.find('('); open != std::string_view::npos) {
    sound = name.back() == ')';
    inside = name.substr(open + 1, name.size() - open - (sound ? 2 : 1));
    sound = sound && inside.find_first_of("()|") == std::string_view::npos;
    name = trimmed(name.substr(0, open));
  }
  if (!sound || !is_word(name, kLower, kInName))
    throw InputError(
        fmt::format("'{}' is not of the form name or name(key=value,key=value)", text));
  Spec spec{std::string(name)};
  if (trimmed(inside).empty()) return spec;
  for (const std::string_view pair : split(inside, ',')) {
    const std::size_t equals = pair.find('=');
    const bool lone = equals == std::string_view::npos;
    const std::string key(lone ? "value" : trimmed(pair.substr(0, equals)));
    const std::string_view value = trimmed(lone ? pair : pair.substr(equals + 1));
    if (!is_word(key, kLower, kInKey) || !is_word(value, kInValue, kInValue))
      throw InputError(fmt::format("'{}': '{}' is not of the form key=value", text, pair));
    if (spec.has(key))
      throw InputError(fmt::format("'{}': parameter '{}' is given twice", text, key));
    spec.set(key, std::string(value));
  }
  return spec;
}

Spec Spec::parse_composition(std::string_view text) {
  check_length(text);
  std::vector<Spec> elements;
  for (const std::string_view element : split(text, '|')) elements.push_back(parse(element));
  Spec outermost = elements.front();
  outermost.inner_.assign(elements.begin() + 1, elements.end());
  return outermost;
}

bool Spec::flag(const std::string& key, bool otherwise) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return otherwise;
  if (found->second == "on" || found->second == "true") return true;
  if (found->second == "off" || found->second == "false") return false;
  throw_form(*this, key, found->second, "on or off");
}

std::int64_t Spec::integer(const std::string& key, std::int64_t otherwise) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return otherwise;
  constexpr const char* kWanted = "a whole number from -2147483647 to 2147483647";
  const auto value = parse_number<std::int64_t>(*this, key, found->second, kWanted);
  if (value < -kMostWhole || value > kMostWhole) throw_form(*this, key, found->second, kWanted);
  return value;
}

double Spec::number(const std::string& key, double otherwise) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return otherwise;
  const auto value = parse_number<double>(*this, key, found->second, "a number");
  if (!std::isfinite(value)) throw_form(*this, key, found->second, "a number");  // "nan", "inf"
  return value;
}

Bytes Spec::bytes(const std::string& key, Bytes otherwise) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return otherwise;
  return parse_bytes(found->second, fmt::format("{}: parameter '{}'", to_string(), key));
}

std::string Spec::text(const std::string& key, const std::string& otherwise) const {
  const auto found = parameters_.find(key);
  return found == parameters_.end() ? otherwise : found->second;
}

void Spec::require_known(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : parameters_) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw_unknown_name(fmt::format("parameter of {}", name_), key, known);
  }
}

std::string Spec::to_string() const {
  std::string text = name_;
  if (!parameters_.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : parameters_)
      pairs.push_back(key == "value" ? value : fmt::format("{}={}", key, value));
    text += fmt::format("({})", fmt::join(pairs, ","));
  }
  for (const Spec& element : inner_) text.append("|").append(element.to_string());
  return text;
}

}  // namespace headroom
