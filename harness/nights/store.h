// The files of the history: nights/<night_id>.json, each written atomically, and accepted.jsonl,
// with one synced line per acceptance. Nothing is ever changed, so any two stores can be merged:
// copy one over the other, or use headroom history merge.
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

  // Accepts new and better values, then stores the night. Returns false when the night was already
  // stored, after completing what a kill may have interrupted. Throws InputError when writing
  // fails.
  bool add(const Night& night);
  void accept(const std::vector<Acceptance>& acceptances);

  // In ascending order, which is the order of start. Empty when there is no store.
  std::vector<std::string> night_ids() const;
  Night read(const std::string& night_id) const;  // throws InputError naming the file
  // The night that began last, and the night of a run. Both throw InputError when there is none.
  Night last_night() const;
  Night night_of_run(const std::string& run_id) const;
  // The last `count` nights of the same suite and machine that began before `night`, in order.
  std::vector<Night> nights_before(const Night& night, std::size_t count) const;
  // In the order in which they were accepted. Incomplete lines, left by a kill, are skipped.
  std::vector<Acceptance> acceptances() const;
  // The acceptances that apply to a night: improvements of later nights do not.
  std::vector<Acceptance> acceptances_for(const Night& night) const;

  struct Merged {
    std::size_t nights = 0;
    std::size_t acceptances = 0;
  };
  // Adds what `other` has and this store lacks.
  Merged merge(const HistoryStore& other);

 private:
  std::filesystem::path night_file(const std::string& night_id) const;
  std::filesystem::path accepted_file() const { return directory_ / "accepted.jsonl"; }

  std::filesystem::path directory_;
};

}  // namespace headroom
