// A strategy, workload or device as the user writes it: `bfc(growth=on,fraction=0.5)`. Adaptors
// compose with `|`, outermost first: `limit(4GiB)|log|caching`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

class Spec {
 public:
  Spec() = default;
  explicit Spec(std::string name, std::map<std::string, std::string> parameters = {});

  // Parses one element. Throws InputError that quotes `text` and points at the error.
  static Spec parse(std::string_view text);
  // Parses one element or a composition `a|b|c`. Returns the first element, which holds the others.
  static Spec parse_composition(std::string_view text);

  // This accessor and those below, except to_string, refer to the outermost element.
  const std::string& name() const { return name_; }
  // The elements after the first, outermost first; empty for a spec of one element.
  const std::vector<Spec>& inner() const { return inner_; }
  const Spec& innermost() const { return inner_.empty() ? *this : inner_.back(); }
  const std::map<std::string, std::string>& parameters() const { return parameters_; }
  bool has(const std::string& key) const { return parameters_.contains(key); }
  void set(const std::string& key, std::string value) { parameters_[key] = std::move(value); }

  static constexpr std::int64_t kMostWhole = 2'147'483'647;

  // Typed look-ups with a default. Throw InputError when the value has the wrong type.
  bool flag(const std::string& key, bool otherwise) const;  // on|off|true|false
  // Limited to ±kMostWhole, so that the value fits an int and the product of two fits 64 bits.
  std::int64_t integer(const std::string& key, std::int64_t otherwise) const;
  double number(const std::string& key, double otherwise) const;
  Bytes bytes(const std::string& key, Bytes otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;

  // Throws InputError naming the nearest known key when a parameter is not in `known`.
  void require_known(const std::vector<std::string>& known) const;

  // The canonical form: parameters sorted by key, no blanks, `|` between elements. Parsing it gives
  // an equal Spec.
  std::string to_string() const;
  bool operator==(const Spec&) const = default;

 private:
  std::string name_;
  std::map<std::string, std::string> parameters_;
  std::vector<Spec> inner_;
};

}  // namespace headroom
