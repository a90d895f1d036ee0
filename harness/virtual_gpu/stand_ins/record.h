// The record of a process on a virtual GPU: one file per process, mapped into its memory, so that
// the figures survive however the process ends. The stand-ins write it, and the launcher reads it.
#pragma once

#include <atomic>
#include <cstdint>

namespace headroom::virtual_gpu {

inline constexpr std::uint64_t kRecordMagic = 0x32554750'56445248;  // "HRDVPGU2"
inline constexpr int kMaxDevices = 64;
inline constexpr int kMaxNames = 64;
inline constexpr int kNameBytes = 96;

struct DeviceRecord {
  std::atomic<std::uint64_t> used_bytes;     // device memory that this process holds now
  std::atomic<std::uint64_t> allocations;    // requests served
  std::atomic<std::uint64_t> refusals;       // requests refused because the card was full
  std::atomic<std::uint64_t> refused_bytes;  // size of the last refused request
  // The most that all processes of the run held when this one took memory, and how many held it.
  std::atomic<std::uint64_t> peak_bytes;
  std::atomic<std::uint64_t> processes_at_peak;
};

// A list of function names that grows and never shrinks.
struct NameList {
  std::atomic<std::uint32_t> count;  // may exceed kMaxNames; further names are not stored
  char names[kMaxNames][kNameBytes];
  std::atomic<std::uint64_t> calls[kMaxNames];
};

struct Record {
  std::uint64_t magic;
  std::int64_t pid;
  std::atomic<std::uint64_t> kernel_launches;
  std::atomic<std::uint64_t> managed_bytes;       // managed memory that this process holds now
  std::atomic<std::uint64_t> managed_peak_bytes;  // the most that it held
  DeviceRecord devices[kMaxDevices];
  // Functions whose answer, a size, is known only to NVIDIA's library. They answered 0 bytes.
  NameList sizes_not_known;
  // Functions whose answer was estimated by a rule of Headroom.
  NameList sizes_estimated;
  // Functions that were called although the virtual GPU lacks them, which stopped the process.
  NameList not_supported;
};

}  // namespace headroom::virtual_gpu
