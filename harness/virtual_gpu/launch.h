// Starts a user's program on a virtual GPU: stand-ins take the place of CUDA's libraries, and a
// hook in its Python records what the framework reports about its memory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/device/meta/cards.h"

namespace headroom::virtual_gpu {

// The card as CUDA describes it to the program.
struct CardDescription {
  std::string name;
  Bytes memory = 0;   // without the context of the first process
  Bytes context = 0;  // of each further process on the card
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0;
  Bytes shared_per_multiprocessor = 0, shared_per_block_optin = 0;
  int threads_per_multiprocessor = 0, blocks_per_multiprocessor = 0;
  Bytes l2_cache = 0;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
};

// Describes `card` with `memory` bytes, which may be fewer than it has.
CardDescription description_of(const Card& card, Bytes memory, Bytes context = 0);

struct Launch {
  CardDescription card;
  int devices = 1;
  int world = 0;  // number of ranks that the process, as rank 0, pretends to belong to; 0: none
  int until_step = 0;             // 0: the program runs to its end
  double mask_share = 0;          // of elements that a mask of unknown values selects
  std::filesystem::path records;  // an existing directory for the records of all processes
  std::filesystem::path cudnn;    // the user's libcudnn; "" if there is none
  std::filesystem::path nvrtc;    // the user's NVRTC, which compiles kernels of cuDNN's; likewise
};

// Returns the process's environment as "NAME=value". Throws InputError if stand-ins are missing.
std::vector<std::string> environment_for(const Launch& launch);

// The same for a program on the real GPU, which keeps its own libraries.
std::vector<std::string> environment_for_capture(const std::filesystem::path& records,
                                                 int until_step);

// One of Headroom's allocators in place of PyTorch's own.
struct Serving {
  std::string allocator;  // "" = PyTorch's own: only the figures of the run are recorded
  // If set, the library serves the machine's own memory, up to this limit, and not a virtual GPU's.
  std::optional<Bytes> host_capacity;
};

// Returns what to add to the environment of environment_for or environment_for_capture. Throws
// InputError if the library is missing.
std::vector<std::string> environment_for_serving(const Serving& serving);

// The environment of a framework that computes on the machine's own processor. Its wheel may be
// built for CUDA although CUDA's libraries are not installed: the stand-ins take their place, and
// no card is visible.
std::vector<std::string> environment_on_host(const std::filesystem::path& records,
                                             const Serving& serving);

// The directory of sitecustomize.py, which Python runs when it starts.
std::filesystem::path hook_directory();

// Returns libcudnn.so.9 of the environment that runs `program` (argv[0], looked up on PATH when it
// has no slash), or else of the active one. It is searched for in site-packages and in the
// directories that their .pth files name. "" if there is none.
std::filesystem::path find_cudnn(const std::string& program);

// Likewise libnvrtc.so.13 or .12.
std::filesystem::path find_nvrtc(const std::string& program);

// Whether this machine has a GPU, according to the kernel's driver.
bool has_real_gpu();

}  // namespace headroom::virtual_gpu
