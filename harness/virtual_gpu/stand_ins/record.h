// What a process with a virtual GPU leaves behind: one file per process, mapped into it, so that
// the figures survive however the process ends. Shared by the stand-in libraries, which write it,
// and the launcher, which reads it.
#pragma once

#include <atomic>
#include <cstdint>

namespace headroom::virtual_gpu {

inline constexpr std::uint64_t kRecordMagic = 0x31554750'56445248;  // "HRDVPGU1"
inline constexpr int kMaxDevices = 64;
inline constexpr int kMaxNames = 64;
inline constexpr int kNameBytes = 96;

struct DeviceRecord {
  std::atomic<std::uint64_t> used_bytes;         // device memory held now
  std::atomic<std::uint64_t> peak_bytes;         // the most held at any time
  std::atomic<std::uint64_t> allocations;        // requests served
  std::atomic<std::uint64_t> refusals;           // requests refused because the card was full
  std::atomic<std::uint64_t> refused_bytes;      // size of the last refused request
  std::atomic<std::uint64_t> used_when_refused;  // bytes held at that time
};

// A list of function names that grows and never shrinks.
struct NameList {
  std::atomic<std::uint32_t> count;  // may exceed kMaxNames: the rest was not written down
  char names[kMaxNames][kNameBytes];
  std::atomic<std::uint64_t> calls[kMaxNames];
};

struct Record {
  std::uint64_t magic;
  std::int64_t pid;
  std::atomic<std::uint64_t> kernel_launches;
  DeviceRecord devices[kMaxDevices];
  // Functions whose answer (a workspace size) only NVIDIA's library knows; they answered 0 bytes.
  NameList sizes_not_known;
  // Functions whose answer follows from a rule of Headroom's, not from the library itself.
  NameList sizes_estimated;
  // Functions that were called and that the virtual GPU does not have; the process was stopped.
  NameList not_supported;
};

}  // namespace headroom::virtual_gpu
