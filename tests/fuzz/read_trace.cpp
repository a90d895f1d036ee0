#include "tests/fuzz/read_trace.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "harness/base/error.h"
#include "harness/trace/file/reader.h"
#include "harness/trace/file/writer.h"
#include "harness/trace/requests.h"

namespace headroom {
namespace {

using trace_file::BlockKind;
using trace_file::BlockWriter;

// Longer traces make a run slow and find nothing new.
constexpr std::size_t kMostEvents = 1 << 18;

std::optional<Trace> read(const std::string& bytes) {
  std::istringstream file(bytes);
  try {
    TraceReader reader(file, "fuzz");
    Trace trace;
    trace.header = reader.header();
    while (trace.events.size() < kMostEvents && reader.read_chunk(trace.events)) {
    }
    trace.op_names = reader.op_names();
    return trace;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string written(const Trace& trace) {
  std::ostringstream file;
  write_trace(trace, file);
  return std::move(file).str();
}

std::string wrong_requests(const Trace& trace) {
  RequestList list;
  try {
    list = requests_of(trace);
  } catch (const InputError&) {
    return "";
  }
  for (const Request& request : list.requests) {
    if (request.block >= list.blocks) return "a request for a block beyond the last";
    if (request.bytes > list.peak_live_bytes) return "a block above the peak of all";
  }
  return "";
}

std::string wrong_with_file(const std::string& file) {
  const std::optional<Trace> trace = read(file);
  if (!trace || trace->events.size() >= kMostEvents) return "";
  const std::optional<Trace> again = read(written(*trace));
  if (!again) return "what was written of it is refused";
  if (again->op_names != trace->op_names) return "op names differ when written and read again";
  if (std::string other = first_difference(*trace, *again); !other.empty()) return other;
  for (std::size_t i = 0; i < trace->events.size(); ++i)
    if (trace->events[i].time_ns != again->events[i].time_ns) return "times differ when read again";
  return wrong_requests(*trace);
}

// Wraps bytes in a file with valid checksums, as an attacker would: each block follows its kind and
// its length in two bytes.
std::string wrapped(std::string_view bytes) {
  constexpr std::string_view kKinds = "HNCE";
  constexpr std::size_t kPrefix = 3;
  std::ostringstream file;
  BlockWriter writer(file);
  while (bytes.size() >= kPrefix) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const auto kind = static_cast<BlockKind>(kKinds[byte(0) % kKinds.size()]);
    const std::size_t length =
        std::min(bytes.size() - kPrefix, byte(1) + std::size_t{256} * byte(2));
    writer.write(kind, bytes.substr(kPrefix, length));
    bytes.remove_prefix(kPrefix + length);
  }
  return std::move(file).str();
}

}  // namespace

std::string wrong_with_reading(std::string_view bytes) {
  if (std::string wrong = wrong_with_file(std::string(bytes)); !wrong.empty()) return wrong;
  const std::string wrong = wrong_with_file(wrapped(bytes));
  return wrong.empty() ? "" : "wrapped: " + wrong;
}

}  // namespace headroom
