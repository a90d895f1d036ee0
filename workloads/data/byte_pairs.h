// Byte-pair encoding (Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words
// with Subword Units"): the most frequent pair of neighbours is repeatedly merged into a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// The first tokens of every vocabulary, which do not stand for text.
inline constexpr std::int32_t kPadToken = 0;
inline constexpr std::int32_t kClassifyToken = 1;
inline constexpr std::int32_t kSeparatorToken = 2;
inline constexpr std::int32_t kMaskToken = 3;
inline constexpr std::int32_t kFirstTextToken = 4;

struct EncodedText {
  std::vector<std::string> vocabulary;  // by token; "[PAD]" and so on first
  std::vector<std::int32_t> tokens;     // of all documents, each ended by a separator
};

// Lowers ASCII letters, replaces each sequence of blanks by one blank, and puts one before the
// first word. The concatenated tokens of a document spell this text.
std::string normalise(std::string_view document);

// Learns at most `size` tokens from the documents and encodes the documents with them.
// Deterministic: ties go to the pair of lower tokens. Throws InputError when `size` is too small
// for the bytes that occur.
EncodedText encode(const std::vector<std::string>& documents, std::size_t size);

}  // namespace headroom
