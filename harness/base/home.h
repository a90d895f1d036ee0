// Where the files a program needs beside itself live: bench/ and reports/.
#pragma once

#include <filesystem>

namespace headroom {

// $HEADROOM_HOME, else the source tree this program was built from, else share/headroom beside
// the installed program. Throws InputError that names what was looked at.
std::filesystem::path headroom_home();

}  // namespace headroom
