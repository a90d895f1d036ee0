// The cache of generated data sets between runs.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace headroom {

// $XDG_CACHE_HOME/headroom/<name>, else below ~/.cache. On first use `write` fills a temporary
// directory, which is then moved into place atomically: other processes see all of it or nothing.
// Throws InputError naming XDG_CACHE_HOME and data= when it cannot be created.
std::filesystem::path cached_directory(
    const std::string& name, const std::function<void(const std::filesystem::path&)>& write);

}  // namespace headroom
