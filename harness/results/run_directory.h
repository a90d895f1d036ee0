// The directory of a run: run.json, samples.jsonl (one synced line per sample), traces/,
// verdicts.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

class RunDirectory {
 public:
  // Creates <root>/<UTC stamp>-<suite>. Throws InputError when it cannot be written.
  static RunDirectory create(const std::filesystem::path& root, const std::string& suite);
  // Reopens a run to continue it. Cuts off a last line that was torn when the run was killed.
  static RunDirectory reopen(const std::filesystem::path& path);
  ~RunDirectory();
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const RunInfo& info) const;
  // Appends a sample; it is on disk on return. Throws InputError if the disk is full, which leaves
  // earlier samples intact, or if the file was deleted.
  void append(const Sample& sample);
  // Removes the last `samples` samples.
  void drop_last(std::size_t samples);

 private:
  RunDirectory(std::filesystem::path path, int flags);

  std::filesystem::path path_;
  int samples_ = -1;
};

// A run as read from disk.
struct RecordedRun {
  RunInfo info;
  std::vector<Sample> samples;  // in order of recording
  bool torn_last_line = false;  // the process was killed while writing; that sample is missing
};

// Throws InputError naming file and line for anything missing, foreign or damaged.
RecordedRun read_run(const std::filesystem::path& path);

}  // namespace headroom
