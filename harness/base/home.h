// Locations of the files the program needs (bench/, reports/) and of the files it caches.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// $HEADROOM_HOME, else the source tree this program was built from, else share/headroom beside the
// installed program. Throws InputError naming the locations tried.
std::filesystem::path headroom_home();

// Directory for data that can be regenerated: $XDG_CACHE_HOME/headroom, else ~/.cache/headroom,
// else a place in the system's temporary directory.
std::filesystem::path cache_directory();

// Path of the Python interpreter in the environment that scripts/setup --with NAME creates. The
// file need not exist.
std::filesystem::path environment_python(const std::string& name);

}  // namespace headroom
