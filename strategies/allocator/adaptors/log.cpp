// log: writes every request as a line of the CSV that RMM's logging_resource_adaptor writes
// (Thread,Time,Action,Pointer,Size,Stream), so that RMM's replay and Headroom's can read it.
// Addresses are logical. Cost: a formatted line per request, so times of a logged run are
// meaningless.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <system_error>

#include "harness/base/registry.h"
#include "strategies/allocator/adaptors/forwarding_allocator.h"

namespace headroom {
namespace {

class Log final : public ForwardingAllocator {
 public:
  Log(const Spec& spec, std::unique_ptr<Allocator> inner, const DeviceMemory& memory)
      : ForwardingAllocator(std::move(inner), memory), file_(open(spec)) {
    file_ << std::unitbuf << "Thread,Time,Action,Pointer,Size,Stream\n";
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    try {
      Block block = inner().allocate(bytes, hint);
      block.stream = hint.stream;
      if (block.size != 0) write("allocate", block);
      return block;
    } catch (const OutOfMemory&) {
      write("allocate failure", {.requested = bytes, .stream = hint.stream});
      throw;
    }
  }

  void deallocate(const Block& block) override {
    if (block.size != 0) write("free", block);
    inner().deallocate(block);
  }

 private:
  static std::ofstream open(const Spec& spec) {
    const std::string path = spec.text("file", "");
    if (path.empty()) throw InputError("log: name the file, as in log(file=/tmp/log.csv)|caching");
    std::ofstream file(path);
    if (!file)
      throw InputError(
          fmt::format("log: cannot write {}: {}", path, std::generic_category().message(errno)));
    return file;
  }

  void write(const char* action, const Block& block) {
    const auto now = std::chrono::system_clock::now();
    const auto micros =
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
    const std::string pointer = block.address == 0 ? "(nil)" : fmt::format("{:#x}", block.address);
    file_ << fmt::format("{},{:%H:%M:%S}:{:06},{},{},{},{:x}\n", ::getpid(),
                         fmt::localtime(std::chrono::system_clock::to_time_t(now)),
                         micros % 1'000'000, action, pointer, block.requested, block.stream);
  }

  std::ofstream file_;  // writes each line at once: a program may be killed
};

const bool log_is_registered = Registry<AllocatorAdaptor>::instance().add(
    {.name = "log",
     .summary = "Writes every request to file= in the CSV format of RMM's logging adaptor",
     .parameters = {"file"},
     .examples = {"log(file=/dev/null)|bfc"},
     .create = create_adaptor<Log>});

}  // namespace
}  // namespace headroom
