// Text as tokens: the learnt vocabulary spells the text again, invalid files are refused, and
// batches hide the tokens that they claim to hide.
#include "workloads/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>

#include "harness/base/error.h"
#include "tests/unit/reference/reference.h"
#include "workloads/data/masked_text_batches.h"

namespace headroom::text_dataset_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string spelled(const EncodedText& text) {
  std::string result;
  for (const std::int32_t token : text.tokens)
    result += text.vocabulary[static_cast<std::size_t>(token)];
  return result;
}

// Words made of few letters, so that pairs repeat.
std::string random_text(std::mt19937_64& random, int length) {
  const std::string alphabet = "ab cd\n Ea.\t,ab\\\xC3";
  std::string text;
  for (int i = 0; i < length; ++i) text += alphabet[random() % alphabet.size()];
  return text;
}

TEST(BytePairs, spell_the_text_they_were_learnt_from) {
  std::mt19937_64 random(testing::test_seed());
  for (const std::size_t size : {30, 60, 1000}) {
    const std::vector<std::string> documents = {random_text(random, 500), random_text(random, 300)};
    const EncodedText text = encode(documents, size);
    EXPECT_LE(text.vocabulary.size(), size);
    EXPECT_EQ(spelled(text), normalise(documents[0]) + "[SEP]" + normalise(documents[1]) + "[SEP]");
  }
}

TEST(BytePairs, merge_the_commonest_neighbours_first_and_ties_by_the_lower_tokens) {
  const EncodedText text = encode({"abab ab ba"}, 9);
  // 4 special tokens; " ", "a", "b"; then "ab" (twice in abab, once in ab), then " ab".
  EXPECT_THAT(text.vocabulary, ::testing::ElementsAre("[PAD]", "[CLS]", "[SEP]", "[MASK]", " ", "a",
                                                      "b", "ab", " ab"));
}

TEST(BytePairs, take_fewer_tokens_the_more_they_may_learn) {
  std::mt19937_64 random(testing::test_seed());
  const std::vector<std::string> documents = {random_text(random, 2000)};
  EXPECT_GT(encode(documents, 20).tokens.size(), encode(documents, 60).tokens.size());
}

TEST(BytePairs, refuse_a_vocabulary_that_does_not_hold_the_bytes) {
  EXPECT_THAT([] { encode({"abc"}, 7); }, ThrowsMessage<InputError>(HasSubstr("take 8 or more")));
}

class TokenSet : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("headroom-tokens-" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  void expect_refused(const std::string& vocabulary, const std::string& tokens,
                      const std::string& file, const std::string& why) {
    write("vocabulary.txt", vocabulary);
    write("tokens.bin", tokens);
    EXPECT_THAT([&] { read_token_set(directory_); },
                ThrowsMessage<InputError>(AllOf(HasSubstr(file), HasSubstr(why))));
  }

  std::filesystem::path directory_;
};

TEST_F(TokenSet, reads_back_what_it_wrote_unprintable_bytes_included) {
  std::mt19937_64 random(testing::test_seed());
  const EncodedText text = encode({random_text(random, 1000) + "\x7F\x01é\\x20"}, 200);
  write_token_set(text, directory_);
  const EncodedText again = read_token_set(directory_);
  EXPECT_EQ(again.vocabulary, text.vocabulary);
  EXPECT_EQ(again.tokens, text.tokens);
}

TEST_F(TokenSet, refuses_files_that_are_malformed_and_names_them) {
  const std::string good = "[PAD]\n[CLS]\n[SEP]\n[MASK]\na\n";
  const std::string one("\4\0\0\0", 4);
  expect_refused("[PAD]\n[CLS]\n[MASK]\n[SEP]\na\n", one, "vocabulary.txt", "must begin with");
  expect_refused("[PAD]\n[CLS]\n[SEP]\n[MASK]\n", one, "vocabulary.txt", "hold more tokens");
  expect_refused(good + "b", one, "vocabulary.txt", "cut short");
  expect_refused(good + "\\y20\n", one, "vocabulary.txt:6", "backslash");
  expect_refused(good + "\\x2\n", one, "vocabulary.txt:6", "backslash");
  expect_refused(good, "", "tokens.bin", "0 bytes");
  expect_refused(good, one + "\1", "tokens.bin", "5 bytes");
  expect_refused(good, one + std::string("\5\0\0\0", 4), "tokens.bin", "number 1 is token 5");
}

TEST_F(TokenSet, takes_each_text_of_a_directory_once) {
  write("b.txt", "b");
  write("a.txt", "a");
  std::filesystem::create_symlink("b.txt", directory_ / "link");
  std::filesystem::create_directory(directory_ / "folder");
  const auto root = std::filesystem::canonical(directory_);
  EXPECT_THAT(text_files(directory_), ::testing::ElementsAre(root / "a.txt", root / "b.txt"));
}

TEST_F(TokenSet, says_how_to_name_other_text_where_there_is_none) {
  EXPECT_THAT([&] { text_files(directory_); }, ThrowsMessage<InputError>(HasSubstr("data=")));
  EXPECT_THAT([&] { text_files(directory_ / "none"); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("none"), HasSubstr("data="))));
}

// Keeps generated sets below the test's own directory.
class TokenCache : public TokenSet {
 protected:
  void SetUp() override {
    TokenSet::SetUp();
    if (const char* kept = std::getenv("XDG_CACHE_HOME")) kept_ = kept;
    ::setenv("XDG_CACHE_HOME", (directory_ / "cache").c_str(), 1);
    write("text", "to be or not to be");
  }
  void TearDown() override {
    if (kept_)
      ::setenv("XDG_CACHE_HOME", kept_->c_str(), 1);
    else
      ::unsetenv("XDG_CACHE_HOME");
    TokenSet::TearDown();
  }
  std::size_t sets() const {
    const auto root = directory_ / "cache" / "headroom";
    if (!std::filesystem::exists(root)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(root), {}));
  }

 private:
  std::optional<std::string> kept_;
};

TEST_F(TokenCache, keeps_one_set_for_each_text_and_size) {
  const auto texts = text_files(directory_ / "text");
  const auto first = token_set_directory(texts, 20);
  EXPECT_EQ(token_set_directory(texts, 20), first);
  EXPECT_EQ(spelled(read_token_set(first)), " to be or not to be[SEP]");
  EXPECT_NE(token_set_directory(texts, 21), first);
  write("text", "that is the question");
  EXPECT_NE(token_set_directory(texts, 20), first);
  EXPECT_EQ(sets(), 3U);
}

TEST_F(TokenCache, keeps_nothing_of_a_text_that_does_not_fit_the_vocabulary) {
  EXPECT_THROW(token_set_directory(text_files(directory_ / "text"), 5), InputError);
  EXPECT_EQ(sets(), 0U);
}

// One batch of every input, as numbers.
struct Batch {
  static constexpr std::int64_t kBatch = 256, kSequence = 40;
  std::vector<std::int32_t> tokens, positions, segments, mask, rows, labels, key;

  explicit Batch(std::uint64_t seed, TextLabels shuffling = TextLabels::as_read) {
    std::mt19937_64 random(testing::test_seed());
    const EncodedText text = encode({random_text(random, 3000)}, 60);
    const auto source = make_masked_text_batches(
        text, {.batch = kBatch, .sequence = kSequence, .seed = seed, .labels = shuffling});
    for (auto* each : {&tokens, &positions, &segments, &mask}) each->resize(kBatch * kSequence);
    for (auto* each : {&rows, &labels}) each->resize(kBatch * predictions_of(kSequence));
    key.resize(2);
    std::vector<std::span<std::byte>> inputs;
    for (auto* each : {&tokens, &positions, &segments, &mask, &rows, &labels, &key})
      inputs.push_back(std::as_writable_bytes(std::span(*each)));
    source->next_training_batch(inputs);
  }
};

TEST(MaskedText, asks_for_15_percent_of_the_tokens_and_masks_most_of_them) {
  const Batch batch(testing::test_seed());
  int asked = 0, masked = 0, kept = 0;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    if (batch.labels[i] < 0) continue;
    ++asked;
    const std::int32_t shown = batch.tokens[static_cast<std::size_t>(batch.rows[i])];
    masked += shown == kMaskToken ? 1 : 0;
    kept += shown == batch.labels[i] ? 1 : 0;
    EXPECT_GE(batch.labels[i], kFirstTextToken);
  }
  const int real = std::accumulate(batch.mask.begin(), batch.mask.end(), 0);
  EXPECT_NEAR(asked, 0.15 * real, 0.02 * real);
  // Binomial with some 1500 trials: ten standard deviations and more.
  EXPECT_NEAR(masked, 0.8 * asked, 0.12 * asked);
  EXPECT_NEAR(kept, 0.1 * asked, 0.1 * asked);
}

TEST(MaskedText, pads_some_sequences_and_marks_what_is_padding) {
  const Batch batch(testing::test_seed());
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    EXPECT_EQ(batch.mask[i] != 0, batch.tokens[i] != kPadToken);
  const int real = std::accumulate(batch.mask.begin(), batch.mask.end(), 0);
  // Without padding there would be 256 whole ones.
  EXPECT_LT(real, Batch::kBatch * Batch::kSequence);
  EXPECT_GT(real, Batch::kBatch * Batch::kSequence / 2);
}

TEST(MaskedText, gives_the_same_batch_for_the_same_seed_only) {
  const std::uint64_t seed = testing::test_seed();
  EXPECT_EQ(Batch(seed).tokens, Batch(seed).tokens);
  EXPECT_EQ(Batch(seed).key, Batch(seed).key);
  EXPECT_NE(Batch(seed).tokens, Batch(seed + 1).tokens);
  EXPECT_NE(Batch(seed).key, Batch(seed + 1).key);
}

TEST(MaskedText, only_permutes_the_targets_when_shuffled) {
  const std::uint64_t seed = testing::test_seed();
  Batch real(seed), shuffled(seed, TextLabels::shuffled);
  EXPECT_EQ(real.tokens, shuffled.tokens);
  EXPECT_NE(real.labels, shuffled.labels);
  std::ranges::sort(real.labels);
  std::ranges::sort(shuffled.labels);
  EXPECT_EQ(real.labels, shuffled.labels);
}

TEST(MaskedText, refuses_less_text_than_one_sequence_takes) {
  EXPECT_THAT([] { make_masked_text_batches(encode({"a b"}, 60), {.batch = 1, .sequence = 50}); },
              ThrowsMessage<InputError>(HasSubstr("one sequence takes 50")));
}

}  // namespace
}  // namespace headroom::text_dataset_test
