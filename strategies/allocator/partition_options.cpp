#include "strategies/allocator/partition_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr std::string_view kRest = "rest";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Reads a share: "0.4" of the capacity, or "4GiB".
Bytes read_share(const Spec& spec, const std::string& text, Bytes capacity) {
  double fraction = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fraction);
  if (error != std::errc() || end != text.data() + text.size())
    return parse_bytes(text, spec.to_string());
  if (!(fraction > 0 && fraction <= 1))
    throw InputError(fmt::format(
        "{}: a share is {}, but must be above 0 and at most 1, or bytes with their unit",
        spec.to_string(), text));
  return static_cast<Bytes>(static_cast<double>(capacity) * fraction);
}

void require_room(const Spec& spec, Bytes sum, Bytes capacity) {
  if (sum <= capacity) return;
  throw InputError(fmt::format("{}: the shares add up to {}, but the device has {}",
                               spec.to_string(), format_bytes(sum), format_bytes(capacity)));
}

// Whether `module` is one part of the dotted name, or several consecutive parts.
bool is_inside(std::string_view name, std::string_view module) {
  for (std::size_t at = name.find(module); at != std::string_view::npos;
       at = name.find(module, at + 1)) {
    const std::size_t end = at + module.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

void read_parts(const Spec& spec, Bytes capacity, PartitionOptions& options) {
  std::optional<std::size_t> rest;
  Bytes sum = 0;
  for (const std::string& text : split(spec.text("shares", ""), '/')) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0)
      throw InputError(
          fmt::format("{}: '{}' is not of the form module:share or "
                      "module+module:share",
                      spec.to_string(), text));
    const Bytes share = read_share(spec, text.substr(colon + 1), capacity);
    const std::string name = text.substr(0, colon);
    for (const std::string& module : split(name, '+')) {
      const bool again =
          module == kRest ? rest.has_value()
                          : std::any_of(options.modules.begin(), options.modules.end(),
                                        [&](const auto& known) { return known.first == module; });
      if (again) throw InputError(fmt::format("{}: '{}' is named twice", spec.to_string(), module));
      if (module == kRest)
        rest = options.parts.size();
      else
        options.modules.emplace_back(module, options.parts.size());
    }
    options.parts.push_back({name, share, share});
    sum += share;
  }
  if (!rest)
    throw InputError(
        fmt::format("{}: one part must take what no other names, as in "
                    "shares=generator:0.4/discriminator+rest:0.6",
                    spec.to_string()));
  options.rest = *rest;
  require_room(spec, sum, capacity);
}

void read_schedule(const Spec& spec, Bytes capacity, PartitionOptions& options) {
  if (spec.has("after") != spec.has("then"))
    throw InputError(fmt::format("{}: after= (steps) and then= (shares, as in 0.5/0.5) go together",
                                 spec.to_string()));
  if (!spec.has("after")) return;
  options.after = spec.integer("after", 0);
  if (options.after < 1)
    throw InputError(fmt::format("{}: after counts steps from 1", spec.to_string()));
  const std::vector<std::string> shares = split(spec.text("then", ""), '/');
  if (shares.size() != options.parts.size())
    throw InputError(fmt::format("{}: then names {} shares for {} parts", spec.to_string(),
                                 shares.size(), options.parts.size()));
  Bytes sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    options.parts[i].then = read_share(spec, shares[i], capacity);
    sum += options.parts[i].then;
  }
  require_room(spec, sum, capacity);
}

}  // namespace

std::size_t PartitionOptions::part_of(std::string_view name) const {
  for (const auto& [module, part] : modules)
    if (is_inside(name, module)) return part;
  return rest;
}

PartitionOptions read_partition_options(const Spec& spec, Bytes capacity) {
  PartitionOptions options;
  read_parts(spec, capacity, options);
  read_schedule(spec, capacity, options);
  std::stable_sort(options.modules.begin(), options.modules.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return options;
}

}  // namespace headroom
