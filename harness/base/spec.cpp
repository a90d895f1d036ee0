#include "harness/base/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {
namespace {

// A spec is a regular language: name, then optionally key=value pairs in parentheses. A lone
// value, as in limit(4GiB), stands for the parameter "value".
const std::regex& element_pattern() {
  static const std::regex pattern(R"(\s*([a-z][a-z0-9_\-]*)\s*(?:\(([^()|]*)\))?\s*)");
  return pattern;
}

const std::regex& pair_pattern() {
  static const std::regex pattern(R"(\s*(?:([a-z][a-z0-9_]*)\s*=\s*)?([A-Za-z0-9_.:/+\-]+)\s*)");
  return pattern;
}

std::vector<std::string> split(const std::string& text, const std::regex& separator) {
  return {std::sregex_token_iterator(text.begin(), text.end(), separator, -1),
          std::sregex_token_iterator()};
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

Spec Spec::parse(std::string_view text) {
  const std::string subject(text);
  std::smatch match;
  if (!std::regex_match(subject, match, element_pattern()))
    throw InputError(
        fmt::format("'{}' is not of the form name or name(key=value,key=value)", subject));
  Spec spec(match[1]);
  const std::string inside = match[2];
  if (inside.find_first_not_of(" \t") == std::string::npos) return spec;
  static const std::regex comma(",");
  for (const std::string& pair : split(inside + (inside.back() == ',' ? " " : ""), comma)) {
    std::smatch parts;
    if (!std::regex_match(pair, parts, pair_pattern()))
      throw InputError(fmt::format("'{}': '{}' is not of the form key=value", subject, pair));
    const std::string key = parts[1].matched ? std::string(parts[1]) : "value";
    if (spec.has(key))
      throw InputError(fmt::format("'{}': parameter '{}' is given twice", subject, key));
    spec.set(key, parts[2]);
  }
  return spec;
}

Spec Spec::parse_composition(std::string_view text) {
  static const std::regex bar(R"(\|)");
  const std::string subject(text);
  std::vector<Spec> elements;
  for (const std::string& element : split(subject + (subject.ends_with('|') ? " " : ""), bar))
    elements.push_back(parse(element));
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
  return parse_number<std::int64_t>(*this, key, found->second, "a whole number");
}

double Spec::number(const std::string& key, double otherwise) const {
  const auto found = parameters_.find(key);
  if (found == parameters_.end()) return otherwise;
  return parse_number<double>(*this, key, found->second, "a number");
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
