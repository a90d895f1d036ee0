// SHA-256 hashes. They identify data files in the provenance and the plan that a run resumes, and
// they seed every random order (a hash of the seed and a name needs no generator state).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace headroom {

// The hash as 64 hexadecimal digits.
std::string sha256(std::string_view bytes);
// Throws InputError naming the file when it cannot be read.
std::string sha256_of_file(const std::filesystem::path& file);

// The first 53 bits of the hash: every JSON reader keeps a number of this size exactly.
std::uint64_t hashed_number(std::string_view bytes);

}  // namespace headroom
