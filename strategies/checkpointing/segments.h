// Segments of equally many modules. For the files of this folder.
#pragma once

#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// Recomputes each segment of `length` modules but the last.
Program recompute_segments(Program differentiated, std::size_t length);

}  // namespace headroom::checkpointing
