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
  while (!units_.empty()) unmap(units_.begin()->first, units_.begin()->second.bytes);
}

void MappedPages::map(std::byte* at, Bytes bytes, Bytes unit) {
  Bytes done = 0;
  try {
    for (; done < bytes; done += unit) {
      const PageDriver::Page page = driver_.create(unit);
      try {
        driver_.map(at + done, unit, page);
      } catch (...) {
        try_to([&] { driver_.destroy(page); });
        throw;
      }
      units_.emplace(at + done, Unit{page, unit});
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
  const auto first = units_.lower_bound(at), last = units_.lower_bound(at + bytes);
  for (auto unit = first; unit != last; ++unit) {
    try_to([&] { driver_.unmap(unit->first, unit->second.bytes); });
    try_to([&] { driver_.destroy(unit->second.page); });
  }
  units_.erase(first, last);
}

void MappedPages::move(std::byte* from, std::byte* to, Bytes bytes) {
  driver_.wait();
  for (Bytes offset = 0; offset < bytes;) {
    const auto found = units_.find(from + offset);
    if (found == units_.end()) throw Error("the page to be moved is not mapped");
    const Unit unit = found->second;
    driver_.unmap(from + offset, unit.bytes);
    units_.erase(found);
    try {
      driver_.map(to + offset, unit.bytes, unit.page);
    } catch (...) {
      try_to([&] { driver_.destroy(unit.page); });
      throw;
    }
    units_.emplace(to + offset, unit);
    offset += unit.bytes;
  }
  driver_.allow_access(to, bytes);
}

}  // namespace headroom
