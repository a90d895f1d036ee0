#include "harness/base/sha256.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "harness/base/error.h"

namespace headroom {
namespace {

class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw Error("libcrypto offers no SHA-256");
  }
  void add(const char* data, std::size_t size) { EVP_DigestUpdate(context_.get(), data, size); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &size);
    return fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + size, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256(std::string_view bytes) {
  Digest digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

std::string sha256_of_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  Digest digest;
  std::vector<char> chunk(1 << 20);
  while (stream.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) ||
         stream.gcount() > 0)
    digest.add(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  if (!stream.eof())
    throw InputError(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
  return digest.hex();
}

std::uint64_t hashed_number(std::string_view bytes) {
  return std::stoull(sha256(bytes).substr(0, 16), nullptr, 16) >> 11;
}

}  // namespace headroom
