#include "harness/trace/trace_io.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/trace/file/reader.h"
#include "harness/trace/file/writer.h"

namespace headroom {
namespace {

// A few bytes can encode a chunk of equal events, so the number of events is limited by the file's
// size to keep a small file from exhausting memory.
constexpr std::uint64_t kFreeEvents = std::uint64_t{1} << 22;
constexpr std::uint64_t kEventsPerByte = 64;

void write(const Trace& trace, const std::string& path, const std::string& name) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) throw InputError(fmt::format("{}: cannot be written: {}", name, std::strerror(errno)));
  try {
    write_trace(trace, file);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace

void write_trace(const Trace& trace, const std::string& path) {
  const std::string unfinished = path + ".unfinished";
  try {
    write(trace, unfinished, path);
  } catch (const InputError&) {
    std::error_code ignored;
    std::filesystem::remove(unfinished, ignored);
    throw;
  }
  std::filesystem::rename(unfinished, path);
}

Trace read_trace(const std::string& path) {
  const ReadingTime bounded(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  TraceReader reader(file, path);
  Trace trace{.header = reader.header(), .events = {}, .op_names = {}};
  while (reader.read_chunk(trace.events))
    if (trace.events.size() > kFreeEvents + kEventsPerByte * reader.bytes_read())
      throw InputError(fmt::format("{}: claims over {} events in {} bytes", path,
                                   trace.events.size(), reader.bytes_read()));
  trace.op_names = reader.op_names();
  return trace;
}

std::optional<std::vector<Placement>> read_placement(const std::string& path) {
  const ReadingTime bounded(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return TraceReader(file, path).placement();
}

bool is_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic(trace_file::kMagic.size(), '\0');
  file.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  return magic == trace_file::kMagic;
}

}  // namespace headroom
