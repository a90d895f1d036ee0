#include "harness/cli/record_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <exception>
#include <utility>

#include "harness/base/error.h"

namespace headroom {

namespace fs = std::filesystem;

RecordDirectory::RecordDirectory(fs::path path, const std::string& command)
    : path_(std::move(path)) {
  if (path_.empty())
    path_ = fs::path("runs") / fmt::format("{:%Y%m%dT%H%M%SZ}-{}-{}",
                                           fmt::gmtime(std::time(nullptr)), command, ::getpid());
  std::error_code error;
  for (fs::path place = path_; !place.empty() && !fs::exists(place, error);
       place = place.parent_path())
    made_.push_back(place);
  fs::create_directories(path_, error);
  if (error)
    throw InputError(fmt::format("{}: cannot be created: {}; choose another place with --out DIR",
                                 path_.string(), error.message()));
  if (!fs::is_empty(path_))
    throw InputError(
        fmt::format("{}: is not empty; choose another place with --out DIR", path_.string()));
}

RecordDirectory::~RecordDirectory() {
  if (std::uncaught_exceptions() == 0) return;
  std::error_code not_empty;
  for (const fs::path& directory : made_) fs::remove(directory, not_empty);
}

}  // namespace headroom
