// A temporary directory for files passed between programs. The destructor removes it with its
// contents.
#pragma once

#include <filesystem>

namespace headroom {

// The system's temporary directory. Throws InputError when there is none.
std::filesystem::path temporary_directory();

class ScratchDirectory {
 public:
  ScratchDirectory();  // throws InputError when the directory cannot be created
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom
