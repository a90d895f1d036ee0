#include "harness/device/cuda/mapped_pages.h"

#include "harness/base/error.h"

namespace headroom {
namespace {

// Used when releasing pages: every page is tried even if the driver refuses one.
template <typename Call>
void try_to(Call call) noexcept {
  try {
    call();
  } catch (const Error&) {
  }
}

}  // namespace

MappedPages::~MappedPages() {
  while (!pages_.empty()) unmap(pages_.begin()->first, page_);
}

void MappedPages::map(std::byte* at, Bytes bytes) {
  Bytes done = 0;
  try {
    for (; done < bytes; done += page_) {
      const PageDriver::Page page = driver_.create(page_);
      try {
        driver_.map(at + done, page_, page);
      } catch (...) {
        try_to([&] { driver_.destroy(page); });
        throw;
      }
      pages_.emplace(at + done, page);
    }
    driver_.allow_access(at, bytes);
  } catch (...) {
    unmap(at, done);
    throw;
  }
}

void MappedPages::unmap(std::byte* at, Bytes bytes) noexcept {
  if (bytes == 0) return;
  try_to([&] { driver_.wait(); });
  for (Bytes offset = 0; offset < bytes; offset += page_) {
    const auto found = pages_.find(at + offset);
    if (found == pages_.end()) continue;
    try_to([&] { driver_.unmap(found->first, page_); });
    try_to([&] { driver_.destroy(found->second); });
    pages_.erase(found);
  }
}

void MappedPages::move(std::byte* from, std::byte* to, Bytes bytes) {
  driver_.wait();
  for (Bytes offset = 0; offset < bytes; offset += page_) {
    const auto found = pages_.find(from + offset);
    if (found == pages_.end()) throw Error("a page is moved that is not mapped");
    const PageDriver::Page page = found->second;
    driver_.unmap(from + offset, page_);
    pages_.erase(found);
    try {
      driver_.map(to + offset, page_, page);
    } catch (...) {
      try_to([&] { driver_.destroy(page); });
      throw;
    }
    pages_.emplace(to + offset, page);
  }
  driver_.allow_access(to, bytes);
}

}  // namespace headroom
