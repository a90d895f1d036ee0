#include "harness/virtual_gpu/stand_ins/cudnn/partial_sums.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#include "harness/virtual_gpu/stand_ins/card.h"

namespace headroom::virtual_gpu {
namespace {

using std::int64_t;

constexpr int kMultiprocessorsOfAGroup = 18;  // the most of a graphics processing cluster
constexpr int64_t kAlignment = 128, kCounter = 4, kHeadOfPartialSums = 32;
constexpr int64_t kMostParts = 128;
// A tile is split into fewer parts than this only where that saves more time than the levels of the
// tree take. From this number on, a part only needs Product::steps_of_part.
constexpr int64_t kFirstOfManyParts = 9;

// The versions of cuDNN that were compared.
constexpr std::size_t kFirstVersion = 91'000, kLastVersion = 92'899;

constexpr int kMeasuredMultiprocessors = 132;  // of the H200 that was measured
// The number of clusters that it holds at once, by the number of blocks in a cluster.
const std::map<int64_t, int64_t> kActiveClusters = {{1, 132}, {2, 66}, {3, 39}, {4, 30},
                                                    {5, 22},  {6, 17}, {7, 15}, {8, 15},
                                                    {12, 7},  {14, 7}, {16, 7}};

struct Tile {
  int64_t rows, columns;
};
// The tile of a block, by the value of the knob CUDNN_KNOB_TYPE_TILE_SIZE.
const std::map<int64_t, Tile> kTiles = {{0, {128, 128}}, {1, {128, 64}}, {3, {256, 128}},
                                        {4, {256, 64}},  {5, {64, 64}},  {6, {128, 256}},
                                        {7, {64, 128}},  {9, {64, 256}}};

// The product that an engine computes, in tiles of one cluster.
struct Product {
  int64_t tiles;
  int64_t steps;           // of one tile along K
  int64_t steps_of_part;   // the least of one of many parts
  int64_t steps_of_level;  // for which one level of the tree takes as long
  int64_t blocks;          // of a cluster
  int64_t elements;        // of a block's tile
};

int64_t ceil_divide(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t pixels(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin() + 2, sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t levels(int64_t parts) {
  int64_t count = 0;
  for (; parts > 1; parts = ceil_divide(parts, 2)) ++count;
  return count;
}

int64_t sums_in_tree(int64_t parts) {
  int64_t count = 0;
  while (parts > 1) count += parts = ceil_divide(parts, 2);
  return count;
}

// These numbers are inferred from the splits that the card chose. In bfloat16, for example, 50 to
// 52 steps explain the splits of the largest tiles, and no other numbers do.
int64_t steps_of_level(int type, int64_t elements) {
  const int size = elements <= 4096 ? 0 : elements <= 8192 ? 1 : 2;
  constexpr int64_t kSingle[] = {28, 16, 14}, kOfHalf[] = {12, 7, 7}, kOfBfloat16[] = {98, 66, 50};
  return type == kFloat ? kSingle[size] : type == kHalf ? kOfHalf[size] : kOfBfloat16[size];
}

Product product_of(const Convolution& convolution, Tile tile, int64_t cluster_rows,
                   int64_t cluster_columns) {
  const auto& [kind, type, images, filters, outputs, channels_last, is_plain, is_dilated] =
      convolution;
  const int64_t step = type == kFloat ? 32 : 64;
  const int64_t window = pixels(filters);
  int64_t rows = 0, columns = 0, steps = 0;  // rows and columns in tiles
  if (kind == kForward) {
    rows = ceil_divide(outputs[0] * pixels(outputs), tile.rows);
    columns = ceil_divide(filters[0], tile.columns);
    steps = ceil_divide(filters[1], step) * window;
  } else if (kind == kBackwardData) {
    rows = ceil_divide(images[0] * pixels(images), tile.rows);
    columns = ceil_divide(filters[1], tile.columns);
    steps = ceil_divide(filters[0], step) * window;
  } else {
    rows = ceil_divide(filters[0], tile.rows);
    columns = ceil_divide(filters[1], tile.columns) * window;
    steps = ceil_divide(outputs[0] * pixels(outputs), step);
  }
  const int64_t elements = tile.rows * tile.columns;
  return {ceil_divide(rows, cluster_rows) * ceil_divide(columns, cluster_columns),
          steps,
          type == kFloat ? 33 : 17,
          steps_of_level(type, elements),
          cluster_rows * cluster_columns,
          elements};
}

// Returns into how many parts each tile is split that is left after full waves of all clusters.
int64_t parts_of_tile(const Product& product, int64_t clusters) {
  const int64_t left = product.tiles % clusters;
  if (left == 0) return 1;
  const int64_t steps = product.steps;
  const int64_t most = std::min(clusters / left, kMostParts);
  if (product.tiles > clusters) {
    // Other tiles are computed meanwhile, which hides a tree that takes no longer than one tile.
    int64_t best = 1;
    for (int64_t parts = 2; parts <= most; ++parts)
      if (levels(parts) * product.steps_of_level <= steps &&
          ceil_divide(steps, parts) < ceil_divide(steps, best))
        best = parts;
    return best;
  }
  const int64_t most_by_steps = steps / product.steps_of_part;
  if (std::min(most, most_by_steps) >= kFirstOfManyParts)
    return most_by_steps < most ? most_by_steps : ceil_divide(steps, ceil_divide(steps, most));
  const auto time = [&](int64_t parts) {
    return static_cast<double>(steps) / static_cast<double>(parts) +
           static_cast<double>(levels(parts) * product.steps_of_level);
  };
  int64_t best = 1;
  for (int64_t parts = 2; parts <= std::min(most, kFirstOfManyParts - 1); ++parts)
    if (time(parts) < time(best)) best = parts;
  return best;
}

int64_t bytes(const Product& product, int64_t clusters, bool may_split) {
  const int64_t parts = may_split ? parts_of_tile(product, clusters) : 1;
  const int64_t left = product.tiles % clusters;
  int64_t result = 0;
  if (parts > 1)
    result +=
        left * product.blocks *
            (parts * product.elements * int64_t{sizeof(float)} + sums_in_tree(parts) * kCounter) +
        kHeadOfPartialSums;
  if (product.tiles > 2 * clusters) result += kCounter;  // clusters then fetch their next tile
  return result == 0 ? 0 : result + kAlignment - 1;
}

bool is_measured(const Convolution& convolution, const Engine& engine) {
  const auto& sizes = convolution.images;
  const int type = convolution.type;
  if (card().compute_major != 9 || card().multiprocessors != kMeasuredMultiprocessors) return false;
  if (engine.version < kFirstVersion || engine.version > kLastVersion) return false;
  if (sizes.size() != 4 || convolution.filters.size() != 4 || convolution.outputs.size() != 4)
    return false;
  if (sizes[1] != convolution.filters[1]) return false;  // in groups
  if (type != kFloat && type != kHalf && type != kBfloat16) return false;
  const auto engines = {62, 65, 67, 68, 71};
  return std::find(engines.begin(), engines.end(), engine.number) != engines.end();
}

}  // namespace

int64_t partial_sums_beyond_described(const Convolution& convolution, const Engine& engine) {
  if (!is_measured(convolution, engine)) return 0;
  const auto knob = [&](int name) {
    const auto found = engine.knobs.find(name);
    return found == engine.knobs.end() ? -1 : found->second;
  };
  const int64_t rows = knob(kClusterRows), columns = knob(kClusterColumns);
  const auto tile = kTiles.find(knob(kTileSize));
  const auto active = kActiveClusters.find(rows * columns);
  if (rows < 1 || columns < 1 || tile == kTiles.end() || active == kActiveClusters.end()) return 0;
  const Product product = product_of(convolution, tile->second, rows, columns);
  const bool may_split = knob(kWorkspaceKnob) == 0;
  return bytes(product, active->second, may_split) -
         bytes(product, kMultiprocessorsOfAGroup / (rows * columns), may_split);
}

}  // namespace headroom::virtual_gpu
