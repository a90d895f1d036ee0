// Where the files live that a program needs beside itself: bench/ and reports/, and what it keeps.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// $HEADROOM_HOME, else the source tree this program was built from, else share/headroom beside
// the installed program. Throws InputError that names what was looked at.
std::filesystem::path headroom_home();

// $XDG_CACHE_HOME/headroom, else ~/.cache/headroom, else in the system's place for temporary
// files: what can be made again.
std::filesystem::path cache_directory();

// The interpreter of the environment that scripts/setup --with NAME makes; it need not be there.
std::filesystem::path environment_python(const std::string& name);

}  // namespace headroom
