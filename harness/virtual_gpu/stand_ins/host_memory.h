// Memory of the machine that programs get from CUDA. None of it is charged against a card.
#pragma once

#include <cstddef>

namespace headroom::virtual_gpu {

// Page-locked memory. Returns nullptr when the machine has none left.
void* allocate_host(std::size_t bytes);
// Returns false if `address` was not returned by allocate_host().
bool release_host(void* address);
void register_host(void* address, std::size_t bytes);
void unregister_host(void* address);
bool is_page_locked(const void* address);

// Managed memory, which a real driver moves between the machine and its cards as there is room. It
// stays on the machine here, and its bytes are noted in the record.
void* allocate_managed(std::size_t bytes);
// Returns false if `address` was not returned by allocate_managed().
bool release_managed(void* address);
bool is_managed(const void* address);

}  // namespace headroom::virtual_gpu
