#include "workloads/data/text_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <span>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/sha256.h"
#include "workloads/data/cache.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

const char* const kLicences = "/usr/share/common-licenses";

// On systems other than Debian, the texts that a packaged build includes.
fs::path default_texts() {
  std::error_code error;
  if (fs::is_directory(kLicences, error)) return kLicences;
  const fs::path packed = headroom_home() / "texts";
  return fs::is_directory(packed, error) ? packed : fs::path(kLicences);
}

std::string escape(std::string_view token) {
  std::string line;
  for (const char c : token) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && byte != '\\')
      line += c;
    else
      line += fmt::format("\\x{:02X}", byte);
  }
  return line;
}

std::string unescape(const std::string& line, const fs::path& file, std::size_t number) {
  std::string token;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      token += line[i];
      continue;
    }
    const std::string digits = line.substr(std::min(line.size(), i + 2), 2);
    if (i + 1 >= line.size() || line[i + 1] != 'x' || digits.size() != 2 ||
        digits.find_first_not_of("0123456789ABCDEF") != std::string::npos)
      throw InputError(fmt::format("{}:{}: a backslash must be followed by x and two digits",
                                   file.string(), number + 1));
    token += static_cast<char>(std::stoi(digits, nullptr, 16));
    i += 3;
  }
  return token;
}

void write(const fs::path& path, std::span<const char> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file)
    throw InputError(fmt::format("{}: writing failed; set XDG_CACHE_HOME to a directory with room",
                                 path.string()));
}

std::vector<std::string> read_vocabulary(const fs::path& path) {
  std::vector<std::string> vocabulary;
  const std::string text = read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos)
      throw InputError(fmt::format("{}: the last line is cut short", path.string()));
    vocabulary.push_back(unescape(text.substr(at, end - at), path, vocabulary.size()));
    at = end + 1;
  }
  const std::vector<std::string> first = {"[PAD]", "[CLS]", "[SEP]", "[MASK]"};
  if (vocabulary.size() <= first.size() ||
      !std::equal(first.begin(), first.end(), vocabulary.begin()))
    throw InputError(fmt::format(
        "{}: must begin with [PAD], [CLS], [SEP], [MASK] and hold more tokens", path.string()));
  return vocabulary;
}

}  // namespace

std::vector<fs::path> text_files(const fs::path& data) {
  const fs::path root = data.empty() ? default_texts() : data;
  std::error_code error;
  std::set<fs::path> files;  // canonical paths, because GPL and GPL-3 are one text
  if (fs::is_regular_file(root, error)) files.insert(fs::canonical(root));
  if (fs::is_directory(root, error))
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.is_regular_file(error)) files.insert(fs::canonical(entry.path()));
  if (files.empty())
    throw InputError(
        fmt::format("{}: holds no text; name a text file or a directory of text files "
                    "with data=",
                    root.string()));
  return {files.begin(), files.end()};
}

fs::path token_set_directory(const std::vector<fs::path>& texts, std::size_t size) {
  std::vector<std::string> documents;
  std::string identity = fmt::format("{}", size);
  for (const fs::path& path : texts) {
    documents.push_back(read_file(path));
    identity += '\n' + sha256(documents.back());
  }
  const std::string name = "byte-pairs-1-" + sha256(identity).substr(0, 16);
  return cached_directory(name, [&](const fs::path& directory) {
    write_token_set(encode(documents, size), directory);
  });
}

void write_token_set(const EncodedText& text, const fs::path& directory) {
  std::string lines;
  for (const std::string& token : text.vocabulary) lines += escape(token) + '\n';
  write(directory / "vocabulary.txt", lines);
  std::string numbers;
  for (const std::int32_t token : text.tokens)
    for (unsigned byte = 0; byte < 4; ++byte)
      numbers += static_cast<char>(static_cast<std::uint32_t>(token) >> 8U * byte & 0xFFU);
  write(directory / "tokens.bin", numbers);
}

EncodedText read_token_set(const fs::path& directory) {
  EncodedText text{.vocabulary = read_vocabulary(directory / "vocabulary.txt"), .tokens = {}};
  const fs::path path = directory / "tokens.bin";
  const std::string bytes = read_file(path);
  if (bytes.empty() || bytes.size() % 4 != 0)
    throw InputError(fmt::format("{}: {} bytes are not a whole number of 32-bit tokens",
                                 path.string(), bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t token = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
      token |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + byte]))
               << 8U * byte;
    if (token >= text.vocabulary.size())
      throw InputError(fmt::format("{}: number {} is token {}, but the vocabulary has {}",
                                   path.string(), at / 4, token, text.vocabulary.size()));
    text.tokens.push_back(static_cast<std::int32_t>(token));
  }
  return text;
}

}  // namespace headroom
