// Where a run lives: run.json, samples.jsonl (one synced line a sample), traces/, verdicts.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

class RunDirectory {
 public:
  // Makes <root>/<UTC stamp>-<suite>. Throws InputError when it cannot be written.
  static RunDirectory create(const std::filesystem::path& root, const std::string& suite);
  // To go on with a run: cuts off a last line that was torn when the run was killed.
  static RunDirectory reopen(const std::filesystem::path& path);
  ~RunDirectory();
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const RunInfo& info) const;
  // On disk when this returns. Throws InputError when there is no room, where what was recorded
  // before stays whole, and when somebody deleted the file.
  void append(const Sample& sample);
  // Takes the last samples back.
  void drop_last(std::size_t samples);

 private:
  RunDirectory(std::filesystem::path path, int flags);

  std::filesystem::path path_;
  int samples_ = -1;
};

// A run as it lies on disk.
struct RecordedRun {
  RunInfo info;
  std::vector<Sample> samples;  // in order of recording
  bool torn_last_line = false;  // the process was killed while it wrote; that sample is not here
};

// Throws InputError naming file and line for anything that is missing, foreign or broken.
RecordedRun read_run(const std::filesystem::path& path);

}  // namespace headroom
