#include "harness/watch/process_tree.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace headroom {
namespace {

struct Stat {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t started = 0;
  std::string command;
};

// The name may contain spaces and brackets: it ends at the last closing bracket.
std::optional<Stat> read_stat(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line, '\0')) return std::nullopt;
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat stat;
  stat.command = line.substr(open + 1, close - open - 1);
  std::istringstream rest(line.substr(close + 1));
  rest >> stat.state >> stat.parent;
  constexpr int kFieldsBetween = 17;  // ppid is field 4, starttime field 22
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> skipped;
  rest >> stat.started;
  if (!rest) return std::nullopt;
  return stat;
}

std::map<pid_t, Stat> read_all() {
  std::map<pid_t, Stat> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure != std::errc() || end != name.data() + name.size()) continue;
    if (auto stat = read_stat(pid)) all.emplace(pid, std::move(*stat));
  }
  return all;
}

// "Key:   12 kB" lines of /proc/PID/`file`.
std::map<std::string, Bytes> read_kibibytes(pid_t pid, std::string_view file) {
  std::map<std::string, Bytes> values;
  std::ifstream stream(fmt::format("/proc/{}/{}", pid, file));
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string key;
    Bytes kibibytes = 0;
    std::string unit;
    if (words >> key >> kibibytes >> unit && unit == "kB") values[key] = kibibytes * kKiB;
  }
  return values;
}

}  // namespace

std::vector<ProcessUsage> ProcessTree::read(Proportional proportional) {
  const std::map<pid_t, Stat> all = read_all();
  std::map<pid_t, std::uint64_t> members;
  const auto belongs = [&](pid_t pid, const Stat& stat) {
    if (pid == root_) return of_tree_ == Root::included;
    if (stat.parent == root_ || members.contains(stat.parent)) return true;
    const auto before = members_.find(pid);
    return before != members_.end() && before->second == stat.started;
  };
  // A child may have a lower pid than its parent, so this repeats until no process is added.
  std::size_t joined = 0;
  do {
    joined = 0;
    for (const auto& [pid, stat] : all)
      if (!members.contains(pid) && belongs(pid, stat))
        joined += members.emplace(pid, stat.started).second ? 1 : 0;
  } while (joined > 0);
  members_ = std::move(members);

  std::vector<ProcessUsage> usage;
  for (const auto& [pid, started] : members_) {
    const std::map<std::string, Bytes> status = read_kibibytes(pid, "status");
    const auto value = [&](const char* key) {
      const auto found = status.find(key);
      return found == status.end() ? Bytes{0} : found->second;
    };
    if (!status.contains("VmRSS:")) continue;
    ProcessUsage one;
    one.pid = pid;
    one.started = started;
    one.command = all.at(pid).command;
    one.resident = value("VmRSS:");
    one.high_water_mark = value("VmHWM:");
    one.swapped = value("VmSwap:");
    if (proportional == Proportional::read) {
      const std::map<std::string, Bytes> rollup = read_kibibytes(pid, "smaps_rollup");
      if (const auto pss = rollup.find("Pss:"); pss != rollup.end()) one.proportional = pss->second;
    }
    usage.push_back(std::move(one));
  }
  return usage;
}

}  // namespace headroom
