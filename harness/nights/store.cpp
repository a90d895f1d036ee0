#include "harness/nights/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/results/run_info.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".json";

[[noreturn]] void fail(const fs::path& file) {
  throw InputError(
      fmt::format("{}: the history cannot be written: {}; choose another place with "
                  "--store DIR",
                  file.string(), std::strerror(errno)));
}

// Owns an open file descriptor.
class Descriptor {
 public:
  Descriptor(const fs::path& file, int flags) : descriptor_(::open(file.c_str(), flags, 0644)) {
    if (descriptor_ < 0) fail(file);
  }
  ~Descriptor() { ::close(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Excludes other writers; they wait.
class WriteLock {
 public:
  explicit WriteLock(const fs::path& store) : file_(prepared(store), O_RDWR | O_CREAT | O_CLOEXEC) {
    while (::flock(file_.get(), LOCK_EX) != 0)
      if (errno != EINTR) fail(store);
  }

 private:
  static fs::path prepared(const fs::path& store) {
    std::error_code error;
    fs::create_directories(store / "nights", error);
    if (error) {
      errno = error.value();
      fail(store);
    }
    return store / "lock";
  }

  Descriptor file_;
};

std::vector<std::string> whole_lines(const fs::path& file) {
  std::vector<std::string> lines;
  if (!fs::exists(file)) return lines;
  const std::string text = read_file(file);
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  return lines;
}

// Appends durably: the text is on disk on return. First removes a line left incomplete by a kill.
void append_durably(const fs::path& file, std::string_view text) {
  const Descriptor stream(file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC);
  off_t end = ::lseek(stream.get(), 0, SEEK_END);
  for (char last = 0; end > 0; --end)
    if (::pread(stream.get(), &last, 1, end - 1) != 1 || last == '\n') break;
  if (::ftruncate(stream.get(), end) != 0) fail(file);
  while (!text.empty()) {
    const ssize_t count = ::write(stream.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(file);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (!on_disk(stream.get())) fail(file);
}

void append_lines(const fs::path& file, const std::vector<std::string>& lines) {
  if (!lines.empty()) append_durably(file, fmt::format("{}\n", fmt::join(lines, "\n")));
}

std::vector<std::string> lines_of(const std::vector<Acceptance>& acceptances) {
  std::vector<std::string> lines;
  for (const Acceptance& acceptance : acceptances) lines.push_back(to_json(acceptance));
  return lines;
}

// The part of a night_id that names suite and machine, without start and run.
std::string_view series_of(std::string_view night_id) {
  const std::size_t first = night_id.find('-');
  const std::size_t last = night_id.rfind('-');
  return first < last ? night_id.substr(first + 1, last - first - 1) : night_id;
}

}  // namespace

fs::path HistoryStore::night_file(const std::string& night_id) const {
  return directory_ / "nights" / (night_id + kExtension);
}

// Acceptances are written first: a night without them would have no reference.
bool HistoryStore::add(const Night& night) {
  const WriteLock lock(directory_);
  append_lines(accepted_file(),
               lines_of(self_evident(night, AcceptedState(acceptances()), timestamp_now())));
  const fs::path file = night_file(night.night_id);
  if (fs::exists(file)) return false;
  write_file_durably(file, to_json(night));
  return true;
}

void HistoryStore::accept(const std::vector<Acceptance>& acceptances) {
  const WriteLock lock(directory_);
  append_lines(accepted_file(), lines_of(acceptances));
}

std::vector<std::string> HistoryStore::night_ids() const {
  std::vector<std::string> ids;
  const fs::path nights = directory_ / "nights";
  if (!fs::is_directory(nights)) return ids;
  for (const auto& entry : fs::directory_iterator(nights))
    if (entry.path().extension() == kExtension) ids.push_back(entry.path().stem().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

Night HistoryStore::read(const std::string& night_id) const {
  const fs::path file = night_file(night_id);
  const ReadingTime bounded(file);
  return night_from_json(read_file(file), file.string());
}

Night HistoryStore::last_night() const {
  const auto ids = night_ids();
  if (ids.empty())
    throw InputError(
        fmt::format("{}: no history, there is no night in it; begin one with: headroom history add "
                    "RUN --store {}",
                    directory_.string(), directory_.string()));
  return read(ids.back());
}

Night HistoryStore::night_of_run(const std::string& run_id) const {
  auto ids = night_ids();
  std::reverse(ids.begin(), ids.end());
  for (const std::string& id : ids)
    if (Night night = read(id); night.run_id == run_id) return night;
  throw InputError(
      fmt::format("{}: no night in it is of the run {}; add it with: headroom history "
                  "add RUN --store {}",
                  directory_.string(), run_id, directory_.string()));
}

std::vector<Night> HistoryStore::nights_before(const Night& night, std::size_t count) const {
  const auto ids = night_ids();
  std::vector<Night> nights;
  for (auto id = ids.rbegin(); id != ids.rend() && nights.size() < count; ++id)
    if (*id < night.night_id && series_of(*id) == series_of(night.night_id))
      nights.push_back(read(*id));
  std::reverse(nights.begin(), nights.end());
  return nights;
}

std::vector<Acceptance> HistoryStore::acceptances() const {
  std::vector<Acceptance> found;
  std::size_t line = 0;
  for (const std::string& text : whole_lines(accepted_file()))
    found.push_back(
        acceptance_from_json(text, fmt::format("{}:{}", accepted_file().string(), ++line)));
  // The lines of merged stores are interleaved by time; within one second the order of the file
  // decides.
  std::stable_sort(found.begin(), found.end(), [](const Acceptance& a, const Acceptance& b) {
    return a.accepted < b.accepted;
  });
  return found;
}

std::vector<Acceptance> HistoryStore::acceptances_for(const Night& night) const {
  std::vector<Acceptance> found = acceptances();
  std::erase_if(found, [&](const Acceptance& acceptance) {
    return acceptance.by != kByHand && acceptance.night_id > night.night_id;
  });
  return found;
}

HistoryStore::Merged HistoryStore::merge(const HistoryStore& other) {
  if (other.night_ids().empty())
    throw InputError(
        fmt::format("{}: no history, there is no night in it; name a directory that "
                    "headroom history add has filled",
                    other.directory_.string()));
  other.acceptances();  // throws before anything is copied from a broken store
  const WriteLock lock(directory_);
  Merged merged;
  const auto known_lines = whole_lines(accepted_file());
  const std::set<std::string> known(known_lines.begin(), known_lines.end());
  std::vector<std::string> lines;
  for (const std::string& line : whole_lines(other.accepted_file()))
    if (!known.contains(line)) lines.push_back(line);
  append_lines(accepted_file(), lines);
  merged.acceptances = lines.size();
  for (const std::string& id : other.night_ids()) {
    if (fs::exists(night_file(id))) continue;
    write_file_durably(night_file(id), to_json(other.read(id)));
    ++merged.nights;
  }
  return merged;
}

}  // namespace headroom
