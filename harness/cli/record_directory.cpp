#include "harness/cli/record_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

#include "harness/base/error.h"

namespace headroom {

namespace fs = std::filesystem;

fs::path make_record_directory(fs::path path, const std::string& command) {
  if (path.empty())
    path = fs::path("runs") / fmt::format("{:%Y%m%dT%H%M%SZ}-{}-{}",
                                          fmt::gmtime(std::time(nullptr)), command, ::getpid());
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be made: {}; choose another place with --out DIR",
                                 path.string(), error.message()));
  if (!fs::is_empty(path))
    throw InputError(
        fmt::format("{}: is not empty; choose another place with --out DIR", path.string()));
  return path;
}

}  // namespace headroom
