// This process's record (record.h), and functions that note calls in it.
#pragma once

#include <vector>

#include "harness/virtual_gpu/stand_ins/record.h"

namespace headroom::virtual_gpu {

// Returns the record of this process. It is mapped into a file below HEADROOM_GPU_RECORDS or, if
// that is not set or cannot be written, into anonymous memory, so that the program runs anyway. A
// forked child has its own record.
Record& record();

// A process of this run that holds memory of a device.
struct Holder {
  int pid = 0;
  unsigned long long bytes = 0;
};

// Returns the holders by the records of the run's processes. Ended processes hold nothing.
std::vector<Holder> holders_of(int device);

// Notes that `function` answered 0 bytes because only NVIDIA's library knows the size.
void note_size_not_known(const char* function);

// Notes that `function` answered a size estimated by a rule of Headroom.
void note_size_estimated(const char* function);

// Ends the process, because the virtual GPU does not provide `function`.
[[noreturn]] void stop_at_unsupported(const char* library, const char* function);

}  // namespace headroom::virtual_gpu
