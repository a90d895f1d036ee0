#include "harness/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "harness/base/error.h"

namespace headroom {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* verb) {
  throw InputError(fmt::format("{}: cannot be {}: {}", file.string(), verb, std::strerror(errno)));
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  std::error_code missing;
  if (std::filesystem::is_directory(file, missing))
    throw InputError(fmt::format("{}: is a directory, not a file", file.string()));
  // Reading a pipe or a device may never end.
  if (std::filesystem::is_other(file, missing))
    throw InputError(fmt::format("{}: is a device or a pipe, not a file", file.string()));
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, "read");
  // Read in chunks: files in /proc report no size. A stream would take a signal for an error.
  std::string text;
  std::array<char, 65'536> piece;
  ssize_t count = 0;
  while ((count = ::read(descriptor, piece.data(), piece.size())) > 0 ||
         (count < 0 && errno == EINTR))
    if (count > 0) text.append(piece.data(), static_cast<std::size_t>(count));
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  if (count < 0) fail(file, "read");
  return text;
}

std::optional<std::string> read_first_line(const std::filesystem::path& file) {
  if (::access(file.c_str(), R_OK) != 0) return std::nullopt;
  const std::string text = read_file(file);
  if (text.empty()) return std::nullopt;
  return text.substr(0, text.find('\n'));
}

bool on_disk(int descriptor) {
  int result = 0;
  do result = ::fsync(descriptor);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

void write_file_durably(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path draft = file.string() + ".part";
  const int descriptor = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(file, "written");
  bool written = true;
  while (!text.empty() && written) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    written = count > 0 || (count < 0 && errno == EINTR);
  }
  written = written && on_disk(descriptor);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  if (!written || ::rename(draft.c_str(), file.c_str()) != 0) {
    const int why = errno;
    ::unlink(draft.c_str());
    errno = why;
    fail(file, "written");
  }
}

}  // namespace headroom
