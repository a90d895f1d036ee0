// What a program left behind on the virtual GPU: the ledger of the stand-ins and what the framework
// said of its own memory.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom::virtual_gpu {

// A device as the ledger of the stand-ins has it. Each process has the card for itself: where
// several used one, these are the figures of the one that held most.
struct DeviceUse {
  Bytes peak = 0;
  std::uint64_t refusals = 0;  // requests that the card had no room for
  Bytes refused = 0;           // size of the last of them
  Bytes used_when_refused = 0;
};

// Bytes of one kind at the moment of the framework's peak.
struct Share {
  std::string name;
  Bytes bytes = 0;
};

// Bytes of one module, as in "layers.3.attention", at the same moment.
struct ModuleShare {
  std::string name;
  Bytes bytes = 0;
  std::map<std::string, Bytes> roles;
};

struct OutOfMemoryEvent {
  int device = 0;
  Bytes requested = 0;
  std::string line;  // of the user's program, "" = not known
};

// What a framework's own counters say of one device.
struct FrameworkUse {
  int device = 0;
  Bytes peak_allocated = 0;
  Bytes peak_reserved = 0;           // 0: it does not tell
  std::string phase;                 // during which the allocated bytes peaked
  std::vector<Share> roles;          // together the bytes allocated at the peak
  std::vector<Share> lines;          // the same bytes by line of the program
  std::vector<ModuleShare> modules;  // the same bytes by module, all of them
  std::map<std::string, Bytes> phase_peaks;
  // Of a real GPU: its name and memory, and what the driver counted beside the allocator's when the
  // program ended.
  std::string card;
  Bytes card_memory = 0, beside_allocator = 0;
};

struct Framework {
  std::string name;  // "PyTorch 2.15.0+cu132"
  long pid = 0;
  int steps = 0;                 // that were counted
  bool stopped_at_step = false;  // as --until-step asked
  std::string error;             // the message the program ended with
  bool ended_out_of_memory = false;
  std::vector<OutOfMemoryEvent> out_of_memory;
  std::vector<FrameworkUse> devices;
  std::string snapshot;                  // file name, "" = none
  std::vector<std::string> differences;  // from the same program on a real card, in words
};

struct Outcome {
  std::map<int, DeviceUse> devices;                      // those that were used
  std::vector<Framework> frameworks;                     // one per process that used a device
  std::map<std::string, std::uint64_t> sizes_not_known;  // functions, calls
  std::map<std::string, std::uint64_t> sizes_estimated;
  std::vector<std::string> not_supported;
  std::uint64_t kernel_launches = 0;

  Bytes peak() const;          // of the device that held most
  bool out_of_memory() const;  // a process ended for want of memory
};

// Reads the directory that Launch::records named. Throws Error for a file that is damaged.
Outcome read_outcome(const std::filesystem::path& records);

}  // namespace headroom::virtual_gpu
