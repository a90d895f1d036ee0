// A device runs lowered Programs in its own memory. host computes with oneDNN, meta computes
// nothing, cuda is a module loaded on demand. virtual is a card for programs of frameworks only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/device/device_memory.h"
#include "harness/device/traits.h"
#include "harness/program/program.h"

namespace headroom {

// Addresses of one op's operands, in the op's order; null where an operand is absent.
struct OpBuffers {
  std::span<std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;
};

// A lowered Program made executable: its primitives are built, but no device memory is allocated.
class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;
  virtual void run(std::size_t op_index, const OpBuffers& buffers) = 0;
};

// Memory of the whole device as the driver reports it, whichever process uses it.
struct DeviceUsage {
  Bytes free = 0;
  Bytes total = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceMemory& memory() = 0;
  // Creates memory for offloaded values and staged batches: memory of the host machine that the
  // device accesses directly; it does not count against the device's capacity. Each object keeps
  // its own accounts and serves one thread. Throws NotSupported on devices that cannot copy there
  // yet.
  virtual std::unique_ptr<DeviceMemory> make_host_memory() {
    throw NotSupported(
        "this device does not copy to memory of the host yet: offload on host or meta, and stage "
        "batches there");
  }
  virtual std::unique_ptr<CompiledProgram> compile(const Program& lowered) = 0;
  // Whether values have contents: false on meta.
  virtual bool computes() const = 0;
  // Convert between plain row-major `host` and the value's own layout. No-ops on meta.
  virtual void write(const Value& value, std::byte* device, std::span<const std::byte> host) = 0;
  virtual void read(const Value& value, const std::byte* device, std::span<std::byte> host) = 0;
  // Like write, from memory made by make_host_memory(), and concurrently with computation where the
  // device supports it: neither side may be accessed before finish_staging() returns.
  virtual void stage(const Value& value, std::byte* device, std::span<const std::byte> host) {
    write(value, device, host);
  }
  virtual void finish_staging() {}
  virtual void synchronize() = 0;
  // Absent on devices without a driver.
  virtual std::optional<DeviceUsage> usage() const { return std::nullopt; }
};

// "host", "host(capacity=4GiB)", "meta(card=v100-16gb)", "cuda".
struct DeviceKind {
  static constexpr std::string_view kKind = "device";
  std::string name;
  std::string summary;
  std::string default_rules;  // lowering rules a cell gets when it names none
  DeviceTraits traits = {};
  // Says why this machine cannot run the device and what it would need; empty when it can.
  std::function<std::string()> unavailable;
  std::function<std::unique_ptr<Device>(const Spec&)> create;
  // Releases what the driver holds for this process when no Device is left, so that another process
  // can use it. Empty if there is nothing to release.
  std::function<void()> let_go = {};
};

// Creates the device that `spec` names.
std::unique_ptr<Device> make_device(const Spec& spec);

}  // namespace headroom
