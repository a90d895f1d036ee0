#include "harness/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "harness/base/error.h"
#include "harness/base/text.h"

namespace headroom {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* verb) {
  throw InputError(fmt::format("{}: cannot be {}: {}", file.string(), verb, std::strerror(errno)));
}

constexpr int kSignal = SIGVTALRM;
constexpr std::size_t kLongestName = 1'000;  // bytes
constexpr std::uintmax_t kBytesPerSecond = 1U << 17;

void end_program(int, siginfo_t* info, void*) {
  if (info->si_code != SI_TIMER) ::_exit(128 + kSignal);  // somebody sent it
  const auto* message = static_cast<const std::string*>(info->si_value.sival_ptr);
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, message->data(), message->size());
  ::_exit(static_cast<int>(ExitCode::usage));
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

std::chrono::nanoseconds longest_reading(const std::filesystem::path& file) {
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(file, unknown);
  return std::chrono::seconds(60 + (unknown ? 0 : size / kBytesPerSecond));
}

ReadingTime::ReadingTime(const std::filesystem::path& file, std::chrono::nanoseconds limit)
    : message_(fmt::format(
          "headroom: {}: reading it took more than {} s of processor time; it may be damaged\n",
          shortened(printable_lines(file.string()), kLongestName),
          std::chrono::duration_cast<std::chrono::seconds>(limit).count())) {
  struct sigaction action {};
  action.sa_sigaction = end_program;
  action.sa_flags = SA_SIGINFO;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = kSignal;
  event.sigev_value.sival_ptr = &message_;
  if (sigaction(kSignal, &action, nullptr) != 0 ||
      timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0)
    return;
  started_ = true;
  itimerspec time{};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  time.it_value.tv_sec = static_cast<std::time_t>(seconds.count());
  time.it_value.tv_nsec = (limit - seconds).count();
  timer_settime(timer_, 0, &time, nullptr);
}

ReadingTime::~ReadingTime() {
  if (started_) timer_delete(timer_);
}

}  // namespace headroom
