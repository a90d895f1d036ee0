#include "workloads/data/cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

fs::path cache_root() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return cache;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache";
  return fs::temp_directory_path();
}

}  // namespace

fs::path cached_directory(const std::string& name,
                          const std::function<void(const fs::path&)>& write) {
  const fs::path directory = cache_root() / "headroom" / name;
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
