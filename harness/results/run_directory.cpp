#include "harness/results/run_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunFile = "run.json";
constexpr const char* kSamplesFile = "samples.jsonl";

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return on_disk(descriptor);
}

}  // namespace

RunDirectory RunDirectory::create(const fs::path& root, const std::string& suite) {
  const std::string stamp = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
  std::error_code error;
  fs::create_directories(root, error);
  fs::path path = root / fmt::format("{}-{}", stamp, suite);
  // Two runs may start in the same second.
  for (int again = 2; !error && !fs::create_directory(path, error) && !error; ++again)
    path = root / fmt::format("{}-{}-{}", stamp, suite, again);
  if (!error) fs::create_directory(path / "traces", error);
  if (error)
    throw InputError(
        fmt::format("{}: no run can be written there: {}; choose another place with "
                    "--out DIR",
                    root.string(), error.message()));
  return {path, O_CREAT | O_EXCL};
}

RunDirectory RunDirectory::reopen(const fs::path& path) {
  RunDirectory directory(path, 0);
  const std::string text = read_file(path / kSamplesFile);
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole != text.size() && ::ftruncate(directory.samples_, static_cast<off_t>(whole)) != 0)
    throw InputError(fmt::format("{}: cannot be written: {}", (path / kSamplesFile).string(),
                                 std::strerror(errno)));
  return directory;
}

RunDirectory::RunDirectory(fs::path path, int flags)
    : path_(std::move(path)),
      samples_(
          ::open((path_ / kSamplesFile).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0644)) {
  if (samples_ < 0)
    throw InputError(fmt::format("{}: cannot be written: {}", (path_ / kSamplesFile).string(),
                                 std::strerror(errno)));
  if (::flock(samples_, LOCK_EX | LOCK_NB) != 0)
    throw InputError(fmt::format("{}: another headroom is writing this run; wait for it to end",
                                 path_.string()));
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), samples_(std::exchange(other.samples_, -1)) {}

RunDirectory::~RunDirectory() {
  if (samples_ >= 0) ::close(samples_);
}

void RunDirectory::write(const RunInfo& info) const {
  write_file_durably(path_ / kRunFile, to_json(info));
}

void RunDirectory::append(const Sample& sample) {
  struct stat file {};
  if (::fstat(samples_, &file) == 0 && file.st_nlink == 0)
    throw InputError(fmt::format("{}: was deleted while the run was under way",
                                 (path_ / kSamplesFile).string()));
  const off_t before = ::lseek(samples_, 0, SEEK_END);
  if (write_all(samples_, to_json(sample) + "\n")) return;
  const int reason = errno;
  // A partial line would damage the next one. If it cannot be cut off, readers still skip
  // it.
  [[maybe_unused]] const int ignored = ::ftruncate(samples_, before);
  throw InputError(fmt::format("{}: cannot be written: {}; make room",
                               (path_ / kSamplesFile).string(), std::strerror(reason)));
}

void RunDirectory::drop_last(std::size_t samples) {
  if (samples == 0) return;
  const std::string text = read_file(path_ / kSamplesFile);
  std::size_t end = text.size();
  for (; samples > 0 && end > 0; --samples) {
    const std::size_t line = end < 2 ? std::string::npos : text.rfind('\n', end - 2);
    end = line == std::string::npos ? 0 : line + 1;
  }
  if (::ftruncate(samples_, static_cast<off_t>(end)) != 0)
    throw InputError(fmt::format("{}: cannot be written: {}", (path_ / kSamplesFile).string(),
                                 std::strerror(errno)));
}

RecordedRun read_run(const fs::path& path) {
  const fs::path run_file = path / kRunFile;
  if (!fs::exists(run_file))
    throw InputError(
        fmt::format("{}: not a run directory, there is no {} in it; name one that headroom run "
                    "made, as in runs/RUN",
                    path.string(), kRunFile));
  const auto located = [](const std::string& where, const auto& action) {
    try {
      return action();
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", where, error.what()));
    }
  };
  const fs::path samples_file = path / kSamplesFile;
  const ReadingTime bounded(samples_file);
  const std::string run_text = read_file(run_file);
  check_record(run_text, RecordKind::run, run_file.string());
  RecordedRun run{.info = located(run_file.string(), [&] { return run_info_from_json(run_text); }),
                  .samples = {},
                  .torn_last_line = false};
  const std::string text = read_file(samples_file);
  std::size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    run.torn_last_line = end == std::string::npos;
    if (run.torn_last_line) break;
    const std::string record = text.substr(begin, end - begin);
    const std::string where = fmt::format("{}:{}", samples_file.string(), line);
    check_record(record, RecordKind::sample, where);
    run.samples.push_back(located(where, [&] { return sample_from_json(record); }));
    begin = end + 1;
  }
  return run;
}

}  // namespace headroom
