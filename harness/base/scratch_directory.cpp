#include "harness/base/scratch_directory.h"

#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <string>
#include <system_error>

#include "harness/base/error.h"

namespace headroom {

namespace fs = std::filesystem;

ScratchDirectory::ScratchDirectory() {
  std::string name = (fs::temp_directory_path() / "headroom-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw InputError(
        fmt::format("{}: no directory can be made there; set TMPDIR to one that "
                    "can be written",
                    fs::temp_directory_path().string()));
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace headroom
