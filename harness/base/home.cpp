#include "harness/base/home.h"

#include <fmt/format.h>

#include <cstdlib>

#include "harness/base/build_info.h"
#include "harness/base/error.h"
#include "harness/base/scratch_directory.h"
#include "harness/base/subprocess.h"

namespace headroom {
namespace {

bool is_home(const std::filesystem::path& directory) {
  return std::filesystem::is_directory(directory / "bench" / "suites");
}

}  // namespace

std::filesystem::path headroom_home() {
  if (const char* named = std::getenv("HEADROOM_HOME"); named != nullptr && *named != '\0') {
    if (is_home(named)) return named;
    throw InputError(
        fmt::format("HEADROOM_HOME={}: there is no bench/suites in it; name the "
                    "source tree of Headroom, or unset it",
                    named));
  }
  const std::filesystem::path installed =
      this_executable().parent_path().parent_path() / "share" / "headroom";
  // An installed program uses the files installed beside it. A program run from its build directory
  // has none beside it and uses the source tree.
  for (const std::filesystem::path& candidate : {installed, std::filesystem::path(kSourceRoot)})
    if (is_home(candidate)) return candidate;
  throw InputError(
      fmt::format("neither {} nor {} holds bench/suites; set HEADROOM_HOME to the "
                  "source tree of Headroom",
                  installed.string(), kSourceRoot));
}

std::filesystem::path cache_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::filesystem::path(cache) / "headroom";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".cache" / "headroom";
  return temporary_directory() / "headroom";
}

std::filesystem::path environment_python(const std::string& name) {
  return cache_directory() / "environments" / name / "bin" / "python";
}

}  // namespace headroom
