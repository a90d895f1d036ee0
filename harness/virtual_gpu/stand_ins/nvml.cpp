// Stands in for NVML (libnvidia-ml): it describes the card, and answers "not supported" for
// sensors, as cards without them do.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

namespace {

constexpr int kNvmlInvalid = 2, kNvmlNotSupported = 3, kNvmlNotFound = 6, kNvmlTooSmall = 7;

int index_of(void* device) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

unsigned long long used_of(int device) {
  unsigned long long bytes = 0;
  for (const Holder& holder : holders_of(device)) bytes += holder.bytes;
  return std::min<unsigned long long>(bytes, card().memory_bytes);
}

int text(char* out, unsigned size, const char* value) {
  return std::snprintf(out, size, "%s", value) < static_cast<int>(size) ? kSuccess : kNvmlTooSmall;
}

}  // namespace

HEADROOM_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "600.00");
  return kSuccess;
}
HEADROOM_EXPORT int nvmlSystemGetNVMLVersion(char* text, unsigned size) {
  return nvmlSystemGetDriverVersion(text, size);
}
HEADROOM_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = card().driver_version;
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(card().devices);
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= static_cast<unsigned>(card().devices)) return kNvmlInvalid;
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index + 1));
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = reinterpret_cast<void*>(std::uintptr_t{1});
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size);
HEADROOM_EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  char known[64];
  for (int i = 0; i < card().devices; ++i) {
    nvmlDeviceGetHandleByIndex_v2(static_cast<unsigned>(i), device);
    if (nvmlDeviceGetUUID(*device, known, sizeof known) == kSuccess && !std::strcmp(known, uuid))
      return kSuccess;
  }
  return kNvmlNotFound;
}
struct MemoryInfo {
  unsigned long long total, free, used;
};
HEADROOM_EXPORT int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* out) {
  const unsigned long long used = used_of(index_of(device));
  *out = {card().memory_bytes, card().memory_bytes - used, used};
  return kSuccess;
}
struct MemoryInfo2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
HEADROOM_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryInfo2* out) {
  const unsigned long long used = used_of(index_of(device));
  *out = {out->version, card().memory_bytes, 0, card().memory_bytes - used, used};
  return kSuccess;
}
struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned instance, compute_instance;
};
HEADROOM_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                                            ProcessInfo* out) {
  const std::vector<Holder> holders = holders_of(index_of(device));
  const unsigned room = *count;
  *count = static_cast<unsigned>(holders.size());
  if (room < holders.size()) return kNvmlTooSmall;
  for (const Holder& holder : holders)
    *out++ = {static_cast<unsigned>(holder.pid), holder.bytes, ~0u, ~0u};
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count,
                                                            ProcessInfo* out) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}
// PyTorch lists the processes on the device in its out-of-memory message through this first
// version, whose entries are smaller. It reports none.
HEADROOM_EXPORT int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetName(void*, char* name, unsigned size) {
  return text(name, size, card().name.c_str());
}
HEADROOM_EXPORT int nvmlDeviceGetUUID(void* device, char* uuid, unsigned size) {
  char out[48];
  const int byte = index_of(device) + 1;  // the same as in the driver's stand-in
  std::string digits;
  for (int i = 0; i < 16; ++i) {
    std::snprintf(out, sizeof out, "%02x", byte);
    digits += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(out);
  }
  return text(uuid, size, ("GPU-" + digits).c_str());
}
HEADROOM_EXPORT int nvmlDeviceGetIndex(void* device, unsigned* index) {
  *index = static_cast<unsigned>(index_of(device));
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetMinorNumber(void* device, unsigned* index) {
  return nvmlDeviceGetIndex(device, index);
}
HEADROOM_EXPORT int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = card().compute_major;
  *minor = card().compute_minor;
  return kSuccess;
}
// Clocks: 0 graphics, 1 multiprocessors, 2 memory, 3 video.
HEADROOM_EXPORT int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* megahertz) {
  constexpr int kMemoryClock = 2;
  const int khz = clock == kMemoryClock ? card().memory_clock_khz : card().clock_khz;
  *megahertz = static_cast<unsigned>(khz / 1000);
  return kSuccess;
}
struct PciInfo {
  char old_bus_id[16];
  unsigned domain, bus, device, pci_device, pci_subsystem;
  char bus_id[32];
};
HEADROOM_EXPORT int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* out) {
  const unsigned bus = 4u + static_cast<unsigned>(index_of(device));
  *out = {{}, 0, bus, 0, 0, 0, {}};
  std::snprintf(out->old_bus_id, sizeof out->old_bus_id, "0000:%02X:00.0", bus);
  std::snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", bus);
  return kSuccess;
}
struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  long long time, latency;
  int type, error;
  unsigned long long value;
};
HEADROOM_EXPORT int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  constexpr unsigned kLinkCount = 91;  // NVML_FI_DEV_NVLINK_LINK_COUNT
  constexpr int kUnsigned = 1;
  for (FieldValue& asked : std::span(values, static_cast<std::size_t>(count))) {
    asked.error = asked.field == kLinkCount ? kSuccess : kNvmlNotSupported;
    asked.type = kUnsigned;
    asked.value = 0;
  }
  return kSuccess;
}
// The answer of a card without NVLink or fabric.
HEADROOM_EXPORT int nvmlDeviceGetNvLinkState(void*, unsigned, int*) { return kNvmlNotSupported; }
HEADROOM_EXPORT int nvmlDeviceGetNvLinkCapability(void*, unsigned, int, unsigned*) {
  return kNvmlNotSupported;
}
HEADROOM_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 3;  // XLA's assumption for cards that do not report it
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* lanes) {
  *lanes = 16;
  return kSuccess;
}
struct FabricInfo {  // nvmlGpuFabricInfo_v2_t
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;  // 0: this card is attached to no fabric
  unsigned health;
};
// Drivers know this question of cards since Hopper. PyTorch 2.13 asks it for expandable segments,
// and needs an answer.
HEADROOM_EXPORT int nvmlDeviceGetGpuFabricInfoV(void*, FabricInfo* out) {
  if (card().compute_major < 9) return kNvmlNotSupported;
  *out = {out->version, {}, kSuccess, 0, 0, 0};
  return kSuccess;
}
HEADROOM_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) {
  return kNvmlNotSupported;
}
HEADROOM_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) {
  return kNvmlNotSupported;
}
HEADROOM_EXPORT int nvmlDeviceGetP2PStatus(void*, void*, int, int*) { return kNvmlNotSupported; }
HEADROOM_EXPORT const char* nvmlErrorString(int error) {
  return error == kSuccess ? "Success" : error == kNvmlNotSupported ? "Not Supported" : "Error";
}
