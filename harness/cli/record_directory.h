// The directory that a command fills while it follows another program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

class RecordDirectory {
 public:
  // Makes `path`, or runs/TIME-COMMAND-PID if it is empty. Throws InputError if that cannot be made
  // or is not empty.
  RecordDirectory(std::filesystem::path path, const std::string& command);
  // If an error ends the command, removes the directories that it made and that are still empty.
  ~RecordDirectory();
  RecordDirectory(const RecordDirectory&) = delete;
  RecordDirectory& operator=(const RecordDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // the innermost first
};

}  // namespace headroom
