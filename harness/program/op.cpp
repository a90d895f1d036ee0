#include "harness/program/op.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace headroom {
namespace {

template <typename T>
const T& attribute(const Op& op, const std::string& key, std::string_view wanted) {
  const auto found = op.attributes.find(key);
  if (found == op.attributes.end())
    throw Error(fmt::format("{} ({}): attribute '{}' is missing", op.name, op.kind, key));
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr)
    throw Error(fmt::format("{} ({}): attribute '{}' is not {}", op.name, op.kind, key, wanted));
  return *value;
}

}  // namespace

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::load:
      return "load";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
    case Phase::evaluate:
      return "evaluate";
    case Phase::initialize:
      return "initialize";
    case Phase::discriminator:
      return "discriminator";
    case Phase::generator:
      return "generator";
  }
  throw Error("not a phase");
}

std::int64_t Op::integer(const std::string& key) const {
  return attribute<std::int64_t>(*this, key, "a whole number");
}

double Op::number(const std::string& key) const {
  return attribute<double>(*this, key, "a number");
}

const std::vector<std::int64_t>& Op::list(const std::string& key) const {
  return attribute<std::vector<std::int64_t>>(*this, key, "a list of whole numbers");
}

}  // namespace headroom
