// A directory for what passes between programs: it goes with its contents when its user is done.
#pragma once

#include <filesystem>

namespace headroom {

// The system's place for temporary files. Throws InputError when there is none.
std::filesystem::path temporary_directory();

class ScratchDirectory {
 public:
  ScratchDirectory();  // throws InputError when there is no room for one
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom
