// Where the history lives: nights/<night_id>.json, written whole or not at all, and accepted.jsonl,
// one synced line an acceptance. Nothing is ever changed, so that any two stores can be merged:
// copy one over the other, or headroom history merge.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/nights/acceptance.h"
#include "harness/nights/night.h"

namespace headroom {

class HistoryStore {
 public:
  explicit HistoryStore(std::filesystem::path directory) : directory_(std::move(directory)) {}
  const std::filesystem::path& directory() const { return directory_; }

  // Accepts what is self-evident, then keeps the night. False when it was there already: what a
  // kill had left undone is done all the same. Throws InputError when it cannot be written.
  bool add(const Night& night);
  void accept(const std::vector<Acceptance>& acceptances);

  // Ascending, so by start. Empty where there is no store.
  std::vector<std::string> night_ids() const;
  Night read(const std::string& night_id) const;  // throws InputError naming the file
  // The one that began last, or that of this run. Throws InputError when there is none.
  Night last_night() const;
  Night night_of_run(const std::string& run_id) const;
  // The nights of the same suite and machine that began before, the last `count` of them, in order.
  std::vector<Night> nights_before(const Night& night, std::size_t count) const;
  // In the order in which they were accepted. A line that a kill tore is left out.
  std::vector<Acceptance> acceptances() const;
  // Those that a night is held to: what a later one did better is not held against it.
  std::vector<Acceptance> acceptances_for(const Night& night) const;

  struct Merged {
    std::size_t nights = 0;
    std::size_t acceptances = 0;
  };
  // What `other` has and this one has not.
  Merged merge(const HistoryStore& other);

 private:
  std::filesystem::path night_file(const std::string& night_id) const;
  std::filesystem::path accepted_file() const { return directory_ / "accepted.jsonl"; }

  std::filesystem::path directory_;
};

}  // namespace headroom
