#include "harness/trace/file/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"

namespace headroom::trace_file {
namespace {

using nlohmann::json;

constexpr std::string_view kVersion = "1.0";
constexpr std::string_view kReadableMajor = "1";

template <typename Enum>
std::vector<Enum> all_values(int count) {
  std::vector<Enum> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<Enum>(i));
  return values;
}
std::vector<EventKind> kinds() { return all_values<EventKind>(kEventKindCount); }
std::vector<Role> roles() { return all_values<Role>(kRoleCount); }
std::vector<Phase> phases() { return all_values<Phase>(kPhaseCount); }

template <typename Enum>
json names_of(const std::vector<Enum>& values) {
  json names = json::array();
  for (const Enum value : values) names.push_back(to_string(value));
  return names;
}

// Names may contain paths that are not UTF-8; invalid bytes are replaced because JSON must be
// UTF-8.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename Enum>
std::vector<Enum> meanings(const json& file, const char* table, const std::vector<Enum>& known) {
  std::vector<Enum> values;
  for (const auto& name : file.at(table).get<std::vector<std::string>>()) {
    const auto match = std::find_if(known.begin(), known.end(),
                                    [&](Enum value) { return to_string(value) == name; });
    if (match == known.end())
      throw InputError(fmt::format("'{}' names '{}', which is unknown", table, name));
    values.push_back(*match);
  }
  return values;
}

std::uint64_t count_at(const json& object, const char* key) {
  const json& value = object.at(key);
  if (!value.is_number_unsigned()) throw InputError(fmt::format("'{}' is not a count", key));
  return value.get<std::uint64_t>();
}

std::optional<Bytes> bytes_or_null(const json& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_number_unsigned()) throw InputError("'placement' has bytes that are not a count");
  return value.get<Bytes>();
}

std::vector<Placement> placements_of(const json& rows) {
  std::vector<Placement> placements;
  for (const json& row : rows) {
    Placement placement{.block = row.at(0).get<std::uint32_t>(), .asked = {}};
    placement.asked.alignment = bytes_or_null(row.at(1)).value_or(1);
    placement.asked.offset = bytes_or_null(row.at(2));
    placement.asked.hint = bytes_or_null(row.at(3));
    for (const json& gap : row.at(4))
      placement.asked.gaps.push_back({.lower = gap.at(0).get<std::int64_t>(),
                                      .upper = gap.at(1).get<std::int64_t>(),
                                      .begin = bytes_or_null(gap.at(2)).value_or(0),
                                      .end = bytes_or_null(gap.at(3)).value_or(0)});
    placements.push_back(std::move(placement));
  }
  return placements;
}

template <typename Parse>
auto parsed(std::string_view text, const Parse& parse) {
  try {
    return parse(json::parse(text));
  } catch (const json::exception& error) {
    throw InputError(fmt::format("is damaged: {}", error.what()));
  }
}

}  // namespace

std::string header_text(const TraceHeader& header) {
  return dump({{"version", kVersion},
               {"device", header.device},
               {"rules", header.rules},
               {"allocator", header.allocator},
               {"workload", header.workload},
               {"capacity_bytes", header.capacity_bytes},
               {"granule_bytes", header.granule_bytes},
               {"kinds", names_of(kinds())},
               {"roles", names_of(roles())},
               {"phases", names_of(phases())},
               {"columns", column_names()}});
}

std::string names_text(std::span<const std::string> names) {
  return dump(json(std::vector<std::string>(names.begin(), names.end())));
}

std::string end_text(const FileEnd& end) {
  return dump({{"events", end.events}, {"op_names", end.op_names}});
}

FileHeader parse_header(std::string_view text) {
  return parsed(text, [](const json& file) {
    const auto version = file.at("version").get<std::string>();
    if (version.substr(0, version.find('.')) != kReadableMajor)
      throw InputError(fmt::format("is of version {}, but this program reads {}.x; use a newer one",
                                   version, kReadableMajor));
    std::optional<std::vector<Placement>> placement;
    if (file.contains("placement")) placement = placements_of(file.at("placement"));
    return FileHeader{.trace = {.device = file.at("device").get<std::string>(),
                                .rules = file.at("rules").get<std::string>(),
                                .allocator = file.at("allocator").get<std::string>(),
                                .workload = file.at("workload").get<std::string>(),
                                .capacity_bytes = count_at(file, "capacity_bytes"),
                                .granule_bytes = count_at(file, "granule_bytes")},
                      .layout = {.columns = file.at("columns").get<std::vector<std::string>>(),
                                 .kinds = meanings(file, "kinds", kinds()),
                                 .roles = meanings(file, "roles", roles()),
                                 .phases = meanings(file, "phases", phases())},
                      .placement = std::move(placement)};
  });
}

std::vector<std::string> parse_names(std::string_view text) {
  return parsed(text, [](const json& names) { return names.get<std::vector<std::string>>(); });
}

FileEnd parse_end(std::string_view text) {
  return parsed(text, [](const json& end) {
    return FileEnd{.events = count_at(end, "events"), .op_names = count_at(end, "op_names")};
  });
}

}  // namespace headroom::trace_file
