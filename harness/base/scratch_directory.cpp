#include "harness/base/scratch_directory.h"

#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <cstdlib>
#include <string>
#include <system_error>

#include "harness/base/error.h"

namespace headroom {

namespace fs = std::filesystem;

fs::path temporary_directory() {
  std::error_code error;
  fs::path path = fs::temp_directory_path(error);
  if (!error) return path;
  const char* named = std::getenv("TMPDIR");
  throw InputError(fmt::format(
      "TMPDIR={}: there is no such directory; set TMPDIR to one that can be written, or unset it",
      named == nullptr ? "" : named));
}

ScratchDirectory::ScratchDirectory() {
  std::string name = (temporary_directory() / "headroom-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw InputError(
        fmt::format("{}: no directory can be made there; set TMPDIR to one that can be written",
                    temporary_directory().string()));
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace headroom
