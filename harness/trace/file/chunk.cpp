#include "harness/trace/file/chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "harness/base/error.h"
#include "harness/trace/file/columns.h"

namespace headroom::trace_file {
namespace {

// A chunk is decoded in strips small enough for the L1 and L2 caches, not column by column.
constexpr std::size_t kStrip = 512;
using Strip = std::array<std::uint64_t, kStrip>;

struct Column {
  const char* name;
  void (*get)(std::span<const TraceEvent> events, std::uint64_t* values);
  // Returns false when a value is out of range.
  bool (*set)(const std::uint64_t* values, std::span<TraceEvent> events, const Layout& layout);
};

template <auto kField>
void get_number(std::span<const TraceEvent> events, std::uint64_t* values) {
  for (const TraceEvent& event : events) *values++ = static_cast<std::uint64_t>(event.*kField);
}

template <auto kField>
bool set_number(const std::uint64_t* values, std::span<TraceEvent> events, const Layout&) {
  bool fits = true;
  for (TraceEvent& event : events) {
    event.*kField = static_cast<std::remove_reference_t<decltype(event.*kField)>>(*values);
    fits = fits && static_cast<std::uint64_t>(event.*kField) == *values++;
  }
  return fits;
}

// A column of indices into the file's own table of names, so that the order of an enumeration may
// change.
template <auto kField, auto kTable>
bool set_named(const std::uint64_t* values, std::span<TraceEvent> events, const Layout& layout) {
  const auto& meaning = layout.*kTable;
  for (TraceEvent& event : events) {
    if (*values >= meaning.size()) return false;
    event.*kField = meaning[*values++];
  }
  return true;
}

// The column holds −1 for events outside ops.
void get_op(std::span<const TraceEvent> events, std::uint64_t* values) {
  for (const TraceEvent& event : events)
    *values++ = event.op == kNoOp ? ~std::uint64_t{0} : event.op;
}

bool set_op(const std::uint64_t* values, std::span<TraceEvent> events, const Layout&) {
  bool fits = true;
  for (TraceEvent& event : events) {
    event.op = static_cast<std::uint32_t>(*values);  // −1 becomes kNoOp
    fits = fits && (*values < kNoOp || *values == ~std::uint64_t{0});
    ++values;
  }
  return fits;
}

// The bytes of a block beyond the requested size. They are few even where the size is large, so the
// column stays narrow.
void get_slack(std::span<const TraceEvent> events, std::uint64_t* values) {
  for (const TraceEvent& event : events) *values++ = event.size - event.requested;
}

bool set_slack(const std::uint64_t* values, std::span<TraceEvent> events, const Layout&) {
  for (TraceEvent& event : events) event.size = event.requested + *values++;
  return true;
}

using E = TraceEvent;
constexpr std::array<Column, 11> kColumns = {{
    {"kind", get_number<&E::kind>, set_named<&E::kind, &Layout::kinds>},
    {"role", get_number<&E::role>, set_named<&E::role, &Layout::roles>},
    {"phase", get_number<&E::phase>, set_named<&E::phase, &Layout::phases>},
    {"stream", get_number<&E::stream>, set_number<&E::stream>},
    {"id", get_number<&E::id>, set_number<&E::id>},
    {"op", get_op, set_op},
    {"step", get_number<&E::step>, set_number<&E::step>},
    {"requested_bytes", get_number<&E::requested>, set_number<&E::requested>},
    {"slack_bytes", get_slack, set_slack},  // after requested_bytes, to which it is added
    {"address", get_number<&E::address>, set_number<&E::address>},
    {"time_ns", get_number<&E::time_ns>, set_number<&E::time_ns>},
}};

// Readers of the content's columns, in the order of kColumns.
std::vector<ColumnReader> open_columns(std::string_view content, const Layout& layout,
                                       std::size_t count) {
  std::array<std::optional<ColumnReader>, kColumns.size()> found;
  for (const std::string& name : layout.columns) {
    try {
      const ColumnReader reader(content, count);
      const auto known = std::find_if(kColumns.begin(), kColumns.end(),
                                      [&](const Column& column) { return name == column.name; });
      if (known != kColumns.end())
        found[static_cast<std::size_t>(known - kColumns.begin())] = reader;
    } catch (const InputError& error) {
      throw InputError(fmt::format("column '{}' {}", name, error.what()));
    }
  }
  if (!content.empty())
    throw InputError(fmt::format("{} bytes are left after the last column", content.size()));
  std::vector<ColumnReader> readers;
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if (!found[i]) throw InputError(fmt::format("column '{}' is missing", kColumns[i].name));
    readers.push_back(*found[i]);
  }
  return readers;
}

}  // namespace

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Column& column : kColumns) all.emplace_back(column.name);
    return all;
  }();
  return names;
}

void encode_chunk(std::span<const TraceEvent> events, std::string& content) {
  const auto count = static_cast<std::uint32_t>(events.size());
  content.assign(reinterpret_cast<const char*>(&count), sizeof count);
  std::vector<std::uint64_t> values(events.size());
  for (const Column& column : kColumns) {
    column.get(events, values.data());
    append_column(values, content);
  }
}

void decode_chunk(std::string_view content, const Layout& layout, std::vector<TraceEvent>& events) {
  std::uint32_t count = 0;
  if (content.size() < sizeof count) throw InputError("has no count of events");
  std::memcpy(&count, content.data(), sizeof count);
  content.remove_prefix(sizeof count);
  if (count == 0 || count > kMaximumChunkEvents)
    throw InputError(fmt::format("says that it holds {} events", count));
  std::vector<ColumnReader> readers = open_columns(content, layout, count);

  const std::size_t before = events.size();
  events.resize(before + count);
  Strip strip;
  for (std::size_t begin = 0; begin < count; begin += kStrip) {
    const std::size_t length = std::min(kStrip, count - begin);
    const std::span<TraceEvent> part = std::span(events).subspan(before + begin, length);
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      readers[i].take(std::span(strip).first(length));
      if (!kColumns[i].set(strip.data(), part, layout))
        throw InputError(
            fmt::format("column '{}' holds a value that does not fit", kColumns[i].name));
    }
  }
}

}  // namespace headroom::trace_file
