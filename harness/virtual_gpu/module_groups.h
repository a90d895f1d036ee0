// Groups the modules of a program into few rows that account for most of its memory.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/virtual_gpu/outcome.h"

namespace headroom::virtual_gpu {

// Returns rows in descending order of their bytes, of which each stands for one module, for modules
// of one pattern, as in "layers.*.up  (12 alike)", or for all modules below a path, as in "encoder
// (60 modules)". A row is divided as long as the first `most` rows hold at least nine tenths of all
// bytes. Their sum is that of the modules.
std::vector<Share> module_groups(const std::vector<ModuleShare>& modules, std::size_t most);

}  // namespace headroom::virtual_gpu
