// What a program leaves behind on the virtual GPU: the records of the stand-ins, and what the
// framework reported about its memory.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom::virtual_gpu {

// A device in the records of the stand-ins, with the memory of all processes that used it.
struct DeviceUse {
  Bytes peak = 0;               // the most that they held together
  std::uint64_t processes = 0;  // how many of them held it
  std::uint64_t refusals = 0;   // requests refused because the card was full
  Bytes refused = 0;            // bytes of the last refused request
};

// Bytes of one role, or of one line, at the framework's allocated peak.
struct Share {
  std::string name;
  Bytes bytes = 0;
};

// Bytes of one module, such as "layers.3.attention", at the same moment.
struct ModuleShare {
  std::string name;
  std::string pattern;  // the name with * for numbers; modules that share one are shown as one
  Bytes bytes = 0;
  std::map<std::string, Bytes> roles;
};

struct OutOfMemoryEvent {
  int device = 0;
  Bytes requested = 0;
  std::string line;  // line of the user's program; "" if unknown
};

// One device according to the framework's own counters.
struct FrameworkUse {
  int device = 0;
  std::string kind = "cuda";  // or "cpu": the machine's own memory
  Bytes peak_requested = 0;   // 0 if the framework does not report it
  Bytes peak_allocated = 0;
  Bytes peak_reserved = 0;           // 0 if the framework does not report it
  std::string phase;                 // phase in which allocated bytes peaked
  std::vector<Share> roles;          // their sum is the allocated peak
  std::vector<Share> lines;          // the same bytes by line of the program
  std::vector<ModuleShare> modules;  // the same bytes by module, all of them
  std::map<std::string, Bytes> phase_peaks;
  // Only for a real GPU: its name and memory, and the bytes that the driver counted beside the
  // allocator's when the program ended.
  std::string card;
  Bytes card_memory = 0, beside_allocator = 0;
  // Only where Headroom served an allocator: why a result under its name does not count.
  std::string not_engaged;
};

struct Framework {
  std::string name;  // "PyTorch 2.15.0+cu132"
  long pid = 0;
  int steps = 0;                 // number of steps counted
  bool stopped_at_step = false;  // because of --until-step
  std::string error;             // the message the program ended with
  bool ended_out_of_memory = false;
  bool error_was_lost = false;  // the program's exit status does not tell of the error
  std::vector<OutOfMemoryEvent> out_of_memory;
  std::vector<FrameworkUse> devices;
  std::string snapshot;                  // file name; "" if there is none
  std::vector<std::string> differences;  // differences from a run on a real card, as sentences
  // Only of runs that were started for figures alone:
  std::vector<double> step_us;  // time of each optimizer step after the first
  Bytes peak_resident = 0;      // as the kernel counts the process
};

struct Outcome {
  std::map<int, DeviceUse> devices;                      // the devices that were used
  std::vector<Framework> frameworks;                     // one per process that used a device
  std::map<std::string, std::uint64_t> sizes_not_known;  // number of calls, by function
  std::map<std::string, std::uint64_t> sizes_estimated;
  std::vector<std::string> not_supported;
  std::uint64_t kernel_launches = 0;
  Bytes managed = 0;  // the sum of the most managed memory that each process held
  // Processes that used a device and left no record of a framework, as after a crash.
  std::size_t untold_processes = 0;

  Bytes peak() const;               // peak of the device that held most
  std::uint64_t processes() const;  // how many held memory of that device then
  bool out_of_memory() const;       // whether a process ended out of memory
  // Whether --until-step ended all training of the program. Its exit status says nothing then, as
  // Ray and notebooks take this end for an error.
  bool was_stopped() const;
};

// Reads the directory that Launch::records named. Throws Error for a damaged file.
Outcome read_outcome(const std::filesystem::path& records);

}  // namespace headroom::virtual_gpu
