#include "harness/memory/trace_io.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "harness/base/error.h"

namespace headroom {
namespace {

using nlohmann::json;

constexpr std::string_view kSchemaVersion = "1.1.0";
constexpr int kReadableMajor = 1;

constexpr std::array kKinds = {EventKind::alloc,        EventKind::free, EventKind::segment_alloc,
                               EventKind::segment_free, EventKind::oom,  EventKind::segment_map,
                               EventKind::segment_unmap};

template <typename Enum>
std::vector<Enum> all_values(int count) {
  std::vector<Enum> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<Enum>(i));
  return values;
}
std::vector<EventKind> kinds() { return {kKinds.begin(), kKinds.end()}; }
std::vector<Role> roles() { return all_values<Role>(kRoleCount); }
std::vector<Phase> phases() { return all_values<Phase>(kPhaseCount); }

template <typename Enum>
json names_of(const std::vector<Enum>& values) {
  json names = json::array();
  for (const Enum value : values) names.push_back(to_string(value));
  return names;
}

json to_json(const Trace& trace) {
  const auto column = [&](auto&& field) {
    json values = json::array();
    for (const TraceEvent& event : trace.events) values.push_back(field(event));
    return values;
  };
  using E = TraceEvent;
  return {
      {"schema_version", kSchemaVersion},
      {"header",
       {{"device", trace.header.device},
        {"rules", trace.header.rules},
        {"allocator", trace.header.allocator},
        {"workload", trace.header.workload},
        {"capacity_bytes", trace.header.capacity_bytes},
        {"granule_bytes", trace.header.granule_bytes}}},
      {"op_names", trace.op_names},
      {"kinds", names_of(kinds())},
      {"roles", names_of(roles())},
      {"phases", names_of(phases())},
      {"columns",
       {{"kind", column([](const E& e) { return static_cast<int>(e.kind); })},
        {"role", column([](const E& e) { return static_cast<int>(e.role); })},
        {"phase", column([](const E& e) { return static_cast<int>(e.phase); })},
        {"stream", column([](const E& e) { return e.stream; })},
        {"id", column([](const E& e) { return e.id; })},
        {"op", column([](const E& e) { return e.op == kNoOp ? -1 : std::int64_t{e.op}; })},
        {"step", column([](const E& e) { return e.step; })},
        {"requested_bytes", column([](const E& e) { return e.requested; })},
        {"size_bytes", column([](const E& e) { return e.size; })},
        {"address", column([](const E& e) { return e.address; })},
        {"time_ns", column([](const E& e) { return e.time_ns; })}}},
  };
}

// A number of the file that must fit the field it is for.
template <typename Field>
Field number(const json& value) {
  if (!value.is_number_integer()) throw InputError("holds something else than whole numbers");
  if (value.is_number_unsigned()) {
    const auto wide = value.get<std::uint64_t>();
    if (wide > static_cast<std::uint64_t>(std::numeric_limits<Field>::max()))
      throw InputError(fmt::format("holds {}, which is too large", wide));
    return static_cast<Field>(wide);
  }
  const auto wide = value.get<std::int64_t>();  // negative
  if (std::is_unsigned_v<Field> || wide < std::numeric_limits<std::int32_t>::min())
    throw InputError(fmt::format("holds {}", wide));
  return static_cast<Field>(wide);
}

class Reader {
 public:
  explicit Reader(const json& file) : file_(file) {}

  Trace read() {
    check_version();
    Trace trace;
    const json& header = file_.at("header");
    trace.header = {.device = header.at("device").get<std::string>(),
                    .rules = header.at("rules").get<std::string>(),
                    .allocator = header.at("allocator").get<std::string>(),
                    .workload = header.at("workload").get<std::string>(),
                    .capacity_bytes = number<Bytes>(header.at("capacity_bytes")),
                    .granule_bytes = number<Bytes>(header.value("granule_bytes", json(0U)))};
    trace.op_names = file_.at("op_names").get<std::vector<std::string>>();
    trace.events.resize(file_.at("columns").at("kind").size());
    named_column(trace, "kind", "kinds", kinds(), &TraceEvent::kind);
    named_column(trace, "role", "roles", roles(), &TraceEvent::role);
    named_column(trace, "phase", "phases", phases(), &TraceEvent::phase);
    column(trace, "stream", &TraceEvent::stream);
    column(trace, "id", &TraceEvent::id);
    each(trace, "op", [](TraceEvent& event, const json& value) {
      event.op = value == -1 ? kNoOp : number<std::uint32_t>(value);
    });
    column(trace, "step", &TraceEvent::step);
    column(trace, "requested_bytes", &TraceEvent::requested);
    column(trace, "size_bytes", &TraceEvent::size);
    column(trace, "address", &TraceEvent::address);
    column(trace, "time_ns", &TraceEvent::time_ns);
    return trace;
  }

 private:
  void check_version() const {
    const auto version = file_.at("schema_version").get<std::string>();
    if (version.substr(0, version.find('.')) != std::to_string(kReadableMajor))
      throw InputError(fmt::format("has schema version {}, but this program reads {}.x", version,
                                   kReadableMajor));
  }

  template <typename Visit>
  void each(Trace& trace, const char* name, const Visit& visit) const {
    const json& values = file_.at("columns").at(name);
    if (values.size() != trace.events.size())
      throw InputError(fmt::format("column '{}' has {} entries of {}", name, values.size(),
                                   trace.events.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      try {
        visit(trace.events[i], values[i]);
      } catch (const InputError& error) {
        throw InputError(fmt::format("column '{}' {} at event {}", name, error.what(), i));
      }
    }
  }

  template <typename Field>
  void column(Trace& trace, const char* name, Field TraceEvent::*field) const {
    each(trace, name,
         [&](TraceEvent& event, const json& value) { event.*field = number<Field>(value); });
  }

  // Through the file's own table of names, so that the order of an enumeration may change.
  template <typename Enum>
  void named_column(Trace& trace, const char* name, const char* table,
                    const std::vector<Enum>& known, Enum TraceEvent::*field) const {
    std::vector<Enum> meaning;
    for (const json& text : file_.at(table)) {
      const auto match = std::find_if(known.begin(), known.end(), [&](Enum value) {
        return to_string(value) == text.get<std::string>();
      });
      if (match == known.end())
        throw InputError(
            fmt::format("'{}' names '{}', which is unknown", table, text.get<std::string>()));
      meaning.push_back(*match);
    }
    each(trace, name, [&](TraceEvent& event, const json& value) {
      const auto index = number<std::uint32_t>(value);
      if (index >= meaning.size()) throw InputError(fmt::format("holds {}", index));
      event.*field = meaning[index];
    });
  }

  const json& file_;
};

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, CloseFile>;

std::string read_all(const std::string& path) {
  const File file(gzopen(path.c_str(), "rb"));
  if (file == nullptr)
    throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::string text;
  std::array<char, 1 << 16> buffer{};
  int count = 0;
  while ((count = gzread(file.get(), buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  int error = Z_OK;
  const char* reason = gzerror(file.get(), &error);
  if (count < 0 || error != Z_OK)
    throw InputError(fmt::format("{}: is cut off or damaged: {}", path,
                                 error == Z_ERRNO ? std::strerror(errno) : reason));
  return text;
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path) {
  const std::string unfinished = path + ".unfinished";
  File file(gzopen(unfinished.c_str(), "wb"));
  if (file == nullptr)
    throw InputError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  const std::string text = to_json(trace).dump();
  const bool written = gzfwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || gzclose(file.release()) != Z_OK) {
    const int error = errno;
    file.reset();
    std::filesystem::remove(unfinished);
    throw DeviceError(fmt::format("{}: writing failed: {}", path, std::strerror(error)));
  }
  std::filesystem::rename(unfinished, path);
}

Trace read_trace(const std::string& path) {
  const std::string text = read_all(path);
  try {
    return Reader(json::parse(text)).read();
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: is not a Headroom trace: {}", path, error.what()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace headroom
