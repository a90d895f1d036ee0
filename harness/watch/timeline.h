// The samples of a watch as a file of JSON lines. It stays small however long watching goes on.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/watch/watch.h"

namespace headroom {

// When the file has `most_lines` lines, each two become one, and from then on a line stands for
// twice as many samples: it is the one of them that held the most memory, with the highest GPU
// memory of all.
class Timeline {
 public:
  static constexpr std::size_t kMostLines = 20'000;

  explicit Timeline(std::filesystem::path file, std::size_t most_lines = kMostLines);
  void add(const WatchSample& sample);
  void finish();  // writes what is left

  std::size_t samples_per_line() const { return samples_per_line_; }
  bool is_whole() const { return file_.good(); }  // false: it could not be written

 private:
  void halve();

  std::filesystem::path path_;
  std::size_t most_lines_;
  std::ofstream file_;
  std::string line_;  // of the samples since the last line that was written
  std::size_t lines_ = 0, samples_ = 0, samples_per_line_ = 1;
};

}  // namespace headroom
