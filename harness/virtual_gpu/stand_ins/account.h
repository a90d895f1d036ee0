// This process's record (record.h), and functions that note calls in it.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/virtual_gpu/stand_ins/record.h"

namespace headroom::virtual_gpu {

// Returns the record of this process. It is mapped into a file below HEADROOM_GPU_RECORDS or, if
// that is not set or cannot be written, into anonymous memory, so that the program runs anyway. A
// forked child has its own record.
Record& record();

// A process of this run that holds memory of a card.
struct Holder {
  int pid = 0;
  std::uint64_t bytes = 0;
};

// Returns the holders by the records of the run's processes. Ended processes hold nothing.
std::vector<Holder> holders_of(int card);

// A lock that all processes of the run share. A process holds it while it takes memory of a card,
// so that two processes cannot take the same bytes.
class CardsLock {
 public:
  CardsLock();
  ~CardsLock();
  CardsLock(const CardsLock&) = delete;
  CardsLock& operator=(const CardsLock&) = delete;

 private:
  int file_ = -1;
};

// Notes that `function` answered 0 bytes because only NVIDIA's library knows the size.
void note_size_not_known(const char* function);

// Notes that `function` answered a size estimated by a rule of Headroom.
void note_size_estimated(const char* function);

// Ends the process, because the virtual GPU does not provide `function`.
[[noreturn]] void stop_at_unsupported(const char* library, const char* function);

// Notes that a program gives this memory to a library of NVIDIA's as its workspace.
void note_workspace(const void* address);

}  // namespace headroom::virtual_gpu
