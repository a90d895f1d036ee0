// Which physical page lies behind which address of the GPU: the bookkeeping of CudaMemory's virtual
// memory, over a driver that is asked page by page. Apart from CUDA, so that it is tested where
// there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "harness/base/units.h"

namespace headroom {

// Everything throws DeviceError when the driver refuses.
class PageDriver {
 public:
  using Page = std::uint64_t;  // the driver's handle of physical memory
  virtual ~PageDriver() = default;
  virtual Page create(Bytes size) = 0;
  virtual void destroy(Page page) = 0;
  virtual void map(std::byte* at, Bytes size, Page page) = 0;
  virtual void unmap(std::byte* at, Bytes size) = 0;
  virtual void allow_access(std::byte* at, Bytes bytes) = 0;
  // Returns when nothing queued can still use a page. Unlike freeing, unmapping does not wait.
  virtual void wait() = 0;
};

// One physical page per mapped page: the driver takes a mapping back only whole, and strategies
// unmap any page. What is passed is whole pages, as DeviceMemory has checked.
class MappedPages {
 public:
  // `driver` must outlive this.
  MappedPages(PageDriver& driver, Bytes page) : driver_(driver), page_(page) {}
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  // All of the pages, or none of them and an exception.
  void map(std::byte* at, Bytes bytes);
  // Never throws, since destructors of strategies come here: a driver that refuses has failed
  // before, and whoever synchronises next says so.
  void unmap(std::byte* at, Bytes bytes) noexcept;
  // The pages keep what is in them.
  void move(std::byte* from, std::byte* to, Bytes bytes);

  std::size_t count() const { return pages_.size(); }

 private:
  PageDriver& driver_;
  Bytes page_;
  std::map<std::byte*, PageDriver::Page> pages_;
};

}  // namespace headroom
