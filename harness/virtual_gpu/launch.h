// Starts somebody else's program so that it finds a GPU that is not there: the stand-ins in place
// of CUDA's libraries, and a hook in its Python that notes what the framework says of its memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/device/meta/cards.h"

namespace headroom::virtual_gpu {

// What the program is told of the card; numbers as CUDA reports them.
struct CardDescription {
  std::string name;
  Bytes memory = 0;
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  Bytes shared_per_multiprocessor = 0, shared_per_block_optin = 0;
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  Bytes l2_cache = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
};

// `memory` of it: less than the card has where something else is to be left room.
CardDescription description_of(const Card& card, Bytes memory);

struct Launch {
  CardDescription card;
  int devices = 1;
  int world = 0;       // ranks that the process pretends there are, itself rank 0; 0: none
  int until_step = 0;  // 0: the program runs to its end
  std::filesystem::path records;  // an existing directory, which receives what processes leave
  std::filesystem::path cudnn;    // the user's libcudnn, "" = none
};

// "NAME=value", for the program's process. Throws InputError when the stand-ins are not there.
std::vector<std::string> environment_for(const Launch& launch);

// The same for a program on the real GPU, which keeps its own libraries.
std::vector<std::string> environment_for_capture(const std::filesystem::path& records,
                                                 int until_step);

// The directory of the Python start-up file.
std::filesystem::path hook_directory();

// libcudnn.so.9 of the environment that runs `program` (argv[0], looked up on PATH when it has no
// slash), or of the active one: of its site-packages and of what their .pth files name. "" = none.
std::filesystem::path find_cudnn(const std::string& program);

// True when this machine has a GPU of its own, as the kernel's driver shows it.
bool has_real_gpu();

}  // namespace headroom::virtual_gpu
