#include "workloads/data/byte_pairs.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "harness/base/error.h"

namespace headroom {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

bool is_letter(unsigned char c) { return std::isalnum(c) != 0 || c >= 0x80; }

// Splits text into words: a sequence of letters and digits, or one other character, with the blank
// before it.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    if (text[end] == ' ' && end + 1 < text.size()) ++end;
    if (is_letter(static_cast<unsigned char>(text[end])))
      while (end < text.size() && is_letter(static_cast<unsigned char>(text[end]))) ++end;
    else
      ++end;
    words.push_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

// The words by spelling, and the count of each pair of neighbouring tokens in them.
class Merging {
 public:
  explicit Merging(std::vector<Word>& words) : words_(words) {
    for (std::size_t w = 0; w < words_.size(); ++w) count_pairs(w, +1);
  }

  // Finds the most frequent pair that occurs at least twice.
  bool commonest(Pair& pair) const {
    if (queue_.empty() || queue_.begin()->first > -2) return false;
    pair = queue_.begin()->second;
    return true;
  }

  void merge(Pair pair, std::int32_t made) {
    const std::set<std::size_t> affected = where_[pair];
    for (const std::size_t w : affected) {
      count_pairs(w, -1);
      std::vector<std::int32_t> merged;
      const std::vector<std::int32_t>& tokens = words_[w].tokens;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const bool here = i + 1 < tokens.size() && Pair(tokens[i], tokens[i + 1]) == pair;
        merged.push_back(here ? made : tokens[i]);
        if (here) ++i;
      }
      words_[w].tokens = std::move(merged);
      count_pairs(w, +1);
    }
  }

 private:
  void count_pairs(std::size_t w, int sign) {
    const Word& word = words_[w];
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const Pair pair(word.tokens[i], word.tokens[i + 1]);
      std::int64_t& count = counts_[pair];
      queue_.erase({-count, pair});
      count += sign * word.count;
      if (count > 0) queue_.insert({-count, pair});
      if (sign > 0)
        where_[pair].insert(w);
      else
        where_[pair].erase(w);
    }
  }

  std::vector<Word>& words_;
  std::map<Pair, std::int64_t> counts_;
  std::map<Pair, std::set<std::size_t>> where_;    // words by pair
  std::set<std::pair<std::int64_t, Pair>> queue_;  // most frequent first
};

}  // namespace

std::string normalise(std::string_view document) {
  std::string text = " ";
  for (const char c : document) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) == 0)
      text += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    else if (text.back() != ' ')
      text += ' ';
  }
  if (text.back() == ' ') text.pop_back();
  return text;
}

EncodedText encode(const std::vector<std::string>& documents, std::size_t size) {
  EncodedText result{.vocabulary = {"[PAD]", "[CLS]", "[SEP]", "[MASK]"}, .tokens = {}};
  std::map<std::string, std::int64_t> counts;
  std::vector<std::vector<std::string>> spelled;
  std::set<char> bytes;
  for (const std::string& document : documents) {
    const std::string text = normalise(document);
    bytes.insert(text.begin(), text.end());
    spelled.push_back(words_of(text));
    for (const std::string& word : spelled.back()) ++counts[word];
  }
  std::map<char, std::int32_t> token_of;
  for (const char byte : bytes) {
    token_of[byte] = static_cast<std::int32_t>(result.vocabulary.size());
    result.vocabulary.emplace_back(1, byte);
  }
  if (result.vocabulary.size() > size)
    throw InputError(fmt::format("a vocabulary of {} is too small for this text; take {} or more",
                                 size, result.vocabulary.size()));

  std::map<std::string, std::size_t> index_of;
  std::vector<Word> words;
  for (const auto& [spelling, count] : counts) {
    index_of[spelling] = words.size();
    Word word{.tokens = {}, .count = count};
    for (const char byte : spelling) word.tokens.push_back(token_of[byte]);
    words.push_back(std::move(word));
  }
  Merging merging(words);
  for (Pair pair; result.vocabulary.size() < size && merging.commonest(pair);) {
    const auto made = static_cast<std::int32_t>(result.vocabulary.size());
    result.vocabulary.push_back(result.vocabulary[static_cast<std::size_t>(pair.first)] +
                                result.vocabulary[static_cast<std::size_t>(pair.second)]);
    merging.merge(pair, made);
  }
  for (const auto& document : spelled) {
    for (const std::string& spelling : document) {
      const std::vector<std::int32_t>& tokens = words[index_of.at(spelling)].tokens;
      result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end());
    }
    result.tokens.push_back(kSeparatorToken);
  }
  return result;
}

}  // namespace headroom
