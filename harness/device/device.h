// A device runs lowered Programs in its own memory. host computes with oneDNN, meta computes
// nothing, cuda is a module loaded on demand.
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

// A lowered Program made executable: primitives built, nothing allocated on the device.
class CompiledProgram {
 public:
  virtual ~CompiledProgram() = default;
  virtual void run(std::size_t op_index, const OpBuffers& buffers) = 0;
};

// What the driver says of the whole device, used by any process.
struct DeviceUsage {
  Bytes free = 0;
  Bytes total = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceMemory& memory() = 0;
  // Where offloaded values and staged batches wait: memory of the machine that the device is in,
  // which it reads and writes by itself; not counted against its capacity. Each keeps books of its
  // own and serves one thread. Throws NotSupported on devices that cannot copy there yet.
  virtual std::unique_ptr<DeviceMemory> make_host_memory() {
    throw NotSupported(
        "this device does not copy to memory of the host yet: offload on host or meta, and stage "
        "batches there");
  }
  virtual std::unique_ptr<CompiledProgram> compile(const Program& lowered) = 0;
  // Whether values have contents: false on meta.
  virtual bool computes() const = 0;
  // Plain row-major `host` ↔ the value's own layout. No-ops on meta.
  virtual void write(const Value& value, std::byte* device, std::span<const std::byte> host) = 0;
  virtual void read(const Value& value, const std::byte* device, std::span<std::byte> host) = 0;
  // As write, out of such memory, and beside what is being computed where the device can: neither
  // side may be touched before finish_staging() returns.
  virtual void stage(const Value& value, std::byte* device, std::span<const std::byte> host) {
    write(value, device, host);
  }
  virtual void finish_staging() {}
  virtual void synchronize() = 0;
  // Absent where there is no driver to ask.
  virtual std::optional<DeviceUsage> usage() const { return std::nullopt; }
};

// "host", "host(capacity=4GiB)", "meta(card=v100-16gb)", "cuda".
struct DeviceKind {
  static constexpr std::string_view kKind = "device";
  std::string name;
  std::string summary;
  std::string default_rules;  // lowering rules a cell gets when it names none
  DeviceTraits traits = {};
  // Why this machine cannot run it and what it would need; empty when it can.
  std::function<std::string()> unavailable;
  std::function<std::unique_ptr<Device>(const Spec&)> create;
};

}  // namespace headroom
