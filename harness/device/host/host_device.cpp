// The host as a device: computes with oneDNN in memory allocated from the system in segments, so
// that every strategy meets a real capacity and real page faults.
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/device/host/host_kernels.h"
#include "harness/device/host/host_memory.h"

namespace headroom {
namespace {

class HostDevice : public Device {
 public:
  explicit HostDevice(Bytes capacity) : memory_(capacity) {}

  DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<DeviceMemory> make_host_memory() override {
    return std::make_unique<HostMemory>(physical_memory());
  }
  std::unique_ptr<CompiledProgram> compile(const Program& lowered) override {
    return compile_for_host(lowered);
  }
  bool computes() const override { return true; }
  void write(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    write_value(value, device, host);
  }
  void read(const Value& value, const std::byte* device, std::span<std::byte> host) override {
    read_value(value, device, host);
  }
  void synchronize() override {}

 private:
  HostMemory memory_;
};

std::unique_ptr<Device> create_host(const Spec& spec) {
  spec.require_known({"capacity"});
  const Bytes capacity = spec.bytes("capacity", default_host_capacity());
  if (capacity > physical_memory())
    throw NotSupported(spec.to_string() + ": this machine has " + format_bytes(physical_memory()) +
                       " of memory; ask for less, or run it on a larger machine");
  return std::make_unique<HostDevice>(capacity);
}

const bool host_registered = Registry<DeviceKind>::instance().add(
    {.name = "host",
     .summary =
         "Computes on the CPU with oneDNN, in real memory with a capacity: host(capacity=4GiB)",
     .default_rules = "onednn",
     .unavailable = [] { return std::string(); },
     .create = create_host});

}  // namespace
}  // namespace headroom
