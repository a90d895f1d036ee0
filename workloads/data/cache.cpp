#include "workloads/data/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include "harness/base/error.h"
#include "harness/base/home.h"

namespace headroom {

namespace fs = std::filesystem;
fs::path cached_directory(const std::string& name,
                          const std::function<void(const fs::path&)>& write) {
  const fs::path directory = cache_directory() / name;
  if (fs::exists(directory)) return directory;
  const fs::path draft = directory.string() + fmt::format(".{}", ::getpid());
  std::error_code error;
  fs::create_directories(draft, error);
  if (error)
    throw InputError(
        fmt::format("{}: cannot be created ({}); set XDG_CACHE_HOME to a writable "
                    "directory, or name your own data with data=",
                    draft.string(), error.message()));
  try {
    write(draft);
  } catch (...) {
    fs::remove_all(draft, error);
    throw;
  }
  fs::rename(draft, directory, error);
  if (error) fs::remove_all(draft);  // another process was first
  return directory;
}

}  // namespace headroom
