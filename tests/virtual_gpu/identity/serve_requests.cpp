// Serves programs of requests with a strategy and prints each answer, to be compared with those of
// the allocator that the strategy imitates. The requests are lines on standard input:
//
//   program DEVICE TAKEN STRATEGY    a fresh device, TAKEN bytes of it used, and a fresh strategy
//   allocate ID BYTES STREAM         prints ADDRESS SIZE, or `refused 0`
//   free ID                          ignored if the block was refused
//   record ID STREAM                 one more stream uses the block
//   trim                             returns idle memory to the device
//
// Every request but `program` gets one line, which ends with the allocated bytes, the reserved
// bytes and the number of segments. All streams have finished their work before each request.
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

struct Server {
  std::unique_ptr<Device> device;
  std::unique_ptr<Allocator> strategy;
  std::map<std::string, Block> live;

  void begin(const std::string& device_text, Bytes taken, const std::string& strategy_text) {
    live.clear();
    strategy.reset();
    const Spec spec = Spec::parse(device_text);
    device = Registry<DeviceKind>::instance().find(spec.name()).create(spec);
    if (taken > 0) device->memory().allocate(taken);
    strategy = make_allocator(Spec::parse_composition(strategy_text), device->memory());
  }

  std::string allocate(const std::string& id, Bytes bytes, StreamId stream) {
    try {
      const Block& block = live[id] = strategy->allocate(bytes, {.stream = stream});
      return fmt::format("{} {} ", block.address, block.size);
    } catch (const OutOfMemory&) {
      live.erase(id);
      return "refused 0 ";
    }
  }

  void free(const std::string& id) {
    const auto block = live.extract(id);
    if (!block.empty()) strategy->deallocate(block.mapped());
  }

  void record(const std::string& id, StreamId stream) {
    if (live.contains(id)) strategy->record_stream(live[id], stream);
  }

  std::string figures() const {
    const AllocatorStatistics now = strategy->statistics();
    return fmt::format("{} {} {}\n", now.allocated, now.reserved, now.segments);
  }
};

void serve(std::istream& in, std::ostream& out) {
  Server server;
  std::string request, id, device, strategy;
  Bytes bytes = 0;
  unsigned stream = 0;
  while (in >> request) {
    if (request == "program") {
      in >> device >> bytes >> strategy;
      server.begin(device, bytes, strategy);
      continue;
    }
    server.strategy->synchronized();
    if (request == "allocate") {
      in >> id >> bytes >> stream;
      out << server.allocate(id, bytes, static_cast<StreamId>(stream));
    } else if (request == "free") {
      in >> id;
      server.free(id);
    } else if (request == "record") {
      in >> id >> stream;
      server.record(id, static_cast<StreamId>(stream));
    } else if (request == "trim") {
      server.strategy->trim();
    } else {
      throw InputError("unknown request '" + request + "'");
    }
    out << server.figures();
  }
}

}  // namespace
}  // namespace headroom

int main() {
  try {
    headroom::serve(std::cin, std::cout);
  } catch (const headroom::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
