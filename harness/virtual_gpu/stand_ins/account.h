// This process's record (see record.h) and the calls that only end up in it.
#pragma once

#include "harness/virtual_gpu/stand_ins/record.h"

namespace headroom::virtual_gpu {

// The record of this process. It is mapped into a file below HEADROOM_GPU_RECORDS; where that is
// not set or cannot be written, into memory of its own, so that the program runs all the same. A
// forked child gets a record of its own.
Record& record();

// Notes that `function` answered 0 bytes because only NVIDIA's library knows the size.
void note_size_not_known(const char* function);

// Notes that `function` answered a size that a rule of Headroom's estimates.
void note_size_estimated(const char* function);

// Ends the process: `function` is not part of the virtual GPU.
[[noreturn]] void stop_at_unsupported(const char* library, const char* function);

}  // namespace headroom::virtual_gpu
