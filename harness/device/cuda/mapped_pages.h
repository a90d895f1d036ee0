// Tracks which physical page backs which GPU address, for CudaMemory's virtual memory. It drives an
// interface page by page rather than CUDA itself, so that it can be tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "harness/base/units.h"

namespace headroom {

// All functions throw DeviceError when the driver refuses the call, OutOfMemory when it has no
// memory left.
class PageDriver {
 public:
  using Page = std::uint64_t;  // the driver's handle of physical memory
  virtual ~PageDriver() = default;
  virtual Page create(Bytes size) = 0;
  virtual void destroy(Page page) = 0;
  virtual void map(std::byte* at, Bytes size, Page page) = 0;
  virtual void unmap(std::byte* at, Bytes size) = 0;
  virtual void allow_access(std::byte* at, Bytes bytes) = 0;
  // Returns when no queued work can still use a page. Unlike freeing, unmapping does not wait.
  virtual void wait() = 0;
};

// Makes and maps one handle of physical memory for each unit, because the driver unmaps only whole
// mappings and strategies unmap single units. Callers pass whole units, and to unmap and move only
// what they mapped; DeviceMemory has checked that.
class MappedPages {
 public:
  // `driver` must outlive this.
  explicit MappedPages(PageDriver& driver) : driver_(driver) {}
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  // Maps all of the units, or maps none and throws.
  void map(std::byte* at, Bytes bytes, Bytes unit);
  // Never throws, because destructors of strategies call it. A driver that refuses here has failed
  // before, and the next synchronisation reports that error.
  void unmap(std::byte* at, Bytes bytes) noexcept;
  // The pages keep their contents.
  void move(std::byte* from, std::byte* to, Bytes bytes);

  std::size_t count() const { return units_.size(); }

 private:
  PageDriver& driver_;
  struct Unit {
    PageDriver::Page page;
    Bytes bytes;
  };
  std::map<std::byte*, Unit> units_;
};

}  // namespace headroom
