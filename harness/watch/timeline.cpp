#include "harness/watch/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "harness/watch/watch_json.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// PSS is not read for every sample. A sample that has it says more than one that has not.
std::pair<bool, Bytes> rank(const Json& sample) {
  const Json& proportional = sample["proportional_bytes"];
  const bool has_proportional = !proportional.is_null();
  return {has_proportional, has_proportional ? proportional : sample["resident_bytes"]};
}

// One line for two, of which either may be empty.
std::string together(const std::string& first, const std::string& second) {
  if (first.empty() || second.empty()) return first + second;
  Json more = Json::parse(first), less = Json::parse(second);
  if (rank(more) < rank(less)) std::swap(more, less);
  for (const char* key : {"gpu_used_bytes", "gpu_tree_bytes"})
    more[key] = std::max(more[key], less[key]);  // null is less than a number
  return more.dump();
}

}  // namespace

Timeline::Timeline(fs::path file, std::size_t most_lines)
    : path_(std::move(file)), most_lines_(most_lines), file_(path_) {}

void Timeline::add(const WatchSample& sample) {
  line_ = together(line_, to_json(sample));
  if (++samples_ == samples_per_line_) finish();
}

void Timeline::finish() {
  if (line_.empty()) return;
  file_ << std::exchange(line_, {}) << std::endl;
  samples_ = 0;
  if (++lines_ >= most_lines_ && file_) halve();
}

void Timeline::halve() {
  const fs::path halved = path_.string() + ".new";
  std::ifstream all(path_);
  std::ofstream kept(halved);
  lines_ = 0;
  for (std::string first, second; std::getline(all, first); second.clear(), ++lines_) {
    std::getline(all, second);
    kept << together(first, second) << '\n';
  }
  kept.close();
  const bool complete = kept && all.eof();
  std::error_code failed;
  if (complete) fs::rename(halved, path_, failed);
  if (!complete || failed) {
    fs::remove(halved, failed);
    file_.setstate(std::ios::failbit);
    return;
  }
  file_.close();
  file_.open(path_, std::ios::app);
  samples_per_line_ *= 2;
}

}  // namespace headroom
