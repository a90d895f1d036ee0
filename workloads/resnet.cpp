// Residual networks (He et al. 2015, "Deep Residual Learning for Image Recognition", table 1 and
// section 4.2), with the stride of a bottleneck on its 3×3 convolution as torchvision has it.
// Names of modules follow torchvision, so that weights can be compared one to one.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/workload/workload.h"
#include "workloads/choice.h"
#include "workloads/data/image_batches.h"
#include "workloads/data/image_records.h"
#include "workloads/preset.h"

namespace headroom {
namespace {

enum class Mode : std::uint8_t { train, evaluate };
enum class LastBatch : std::uint8_t { drop, keep };
enum class Block : std::uint8_t { basic, bottleneck };

struct Architecture {
  Block block;
  std::vector<int> blocks_per_stage;
};

const std::map<std::int64_t, Architecture>& architectures() {
  static const std::map<std::int64_t, Architecture> table = {
      {18, {Block::basic, {2, 2, 2, 2}}},
      {34, {Block::basic, {3, 4, 6, 3}}},
      {50, {Block::bottleneck, {3, 4, 6, 3}}},
      {101, {Block::bottleneck, {3, 4, 23, 3}}},
      {152, {Block::bottleneck, {3, 8, 36, 3}}}};
  return table;
}

struct Options {
  std::int64_t depth, image, width, batch, classes;
  std::string stem;
  double residual_scale;

  Options of_batch(std::int64_t size) const {
    Options other = *this;
    other.batch = size;
    return other;
  }
};

// paper: section 3.4, with the most commonly trained depth.
const Presets& resnet_presets() {
  static const Presets table = {{"tiny", {{"depth", "18"}, {"width", "8"}, {"batch", "4"}}},
                                {"small", {{"depth", "18"}, {"batch", "32"}}},
                                {"paper",
                                 {{"depth", "50"},
                                  {"stem", "imagenet"},
                                  {"image", "224"},
                                  {"classes", "1000"},
                                  {"batch", "256"}}}};
  return table;
}

// Builds one forward pass; training and evaluation differ in how BatchNorm works.
class Network {
 public:
  Network(Program& program, const Options& options, Mode mode)
      : builder_(program, mode == Mode::train ? Phase::forward : Phase::evaluate),
        options_(options),
        mode_(mode) {}

  // Returns the logits [batch, classes].
  ValueId logits(ValueId images) {
    const Architecture& architecture = architectures().at(options_.depth);
    ValueId x = stem(images);
    std::int64_t channels = options_.width;
    for (std::size_t stage = 0; stage < architecture.blocks_per_stage.size(); ++stage) {
      for (int block = 0; block < architecture.blocks_per_stage[stage]; ++block) {
        const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        x = residual(fmt::format("layer{}.{}", stage + 1, block), x, channels, stride,
                     architecture.block);
      }
      channels *= 2;
    }
    x = builder_.emit_one("global_average_pool", "avgpool", {x});
    const std::int64_t features = builder_.program().value(x).shape[1];
    const ValueId weight =
        builder_.persistent("fc.weight", {options_.classes, features}, Role::weight,
                            {Fill::normal, 1.0 / std::sqrt(static_cast<double>(features))});
    const ValueId bias =
        builder_.persistent("fc.bias", {options_.classes}, Role::weight, {Fill::constant, 0});
    return builder_.emit_one("linear", "fc", {x, weight, bias});
  }

  ProgramBuilder& builder() { return builder_; }

 private:
  ValueId stem(ValueId images) {
    if (options_.stem == "cifar")
      return conv_norm_relu("conv1", "bn1", images, options_.width, 3, 1);
    const ValueId x = conv_norm_relu("conv1", "bn1", images, options_.width, 7, 2);
    return builder_.emit("max_pool", "maxpool", {x},
                         {{"kernel", std::vector<std::int64_t>{3, 3}},
                          {"strides", std::vector<std::int64_t>{2, 2}},
                          {"padding", std::vector<std::int64_t>{1, 1, 1, 1}}})[0];
  }

  ValueId residual(const std::string& name, ValueId x, std::int64_t channels, std::int64_t stride,
                   Block block) {
    const std::int64_t out_channels = block == Block::basic ? channels : 4 * channels;
    ValueId y;
    if (block == Block::basic) {
      y = conv_norm_relu(name + ".conv1", name + ".bn1", x, channels, 3, stride);
      y = conv_norm(name + ".conv2", name + ".bn2", y, channels, 3, 1, options_.residual_scale);
    } else {
      y = conv_norm_relu(name + ".conv1", name + ".bn1", x, channels, 1, 1);
      y = conv_norm_relu(name + ".conv2", name + ".bn2", y, channels, 3, stride);
      y = conv_norm(name + ".conv3", name + ".bn3", y, out_channels, 1, 1, options_.residual_scale);
    }
    const bool same = stride == 1 && builder_.program().value(x).shape[1] == out_channels;
    const ValueId shortcut = same ? x
                                  : conv_norm(name + ".downsample.0", name + ".downsample.1", x,
                                              out_channels, 1, stride);
    const ValueId sum = builder_.emit_one("add", name + ".add", {y, shortcut});
    return builder_.emit_one("relu", name + ".relu", {sum});
  }

  ValueId conv_norm_relu(const std::string& conv, const std::string& norm, ValueId x,
                         std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    const ValueId y = conv_norm(conv, norm, x, channels, kernel, stride);
    return builder_.emit_one("relu", norm + ".relu", {y});
  }

  ValueId conv_norm(const std::string& conv, const std::string& norm, ValueId x,
                    std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                    double initial_scale = 1) {
    const std::int64_t in_channels = builder_.program().value(x).shape[1];
    // He et al. 2015, "Delving Deep into Rectifiers", equation 14 (fan out).
    const double deviation = std::sqrt(2.0 / static_cast<double>(channels * kernel * kernel));
    const ValueId weight =
        builder_.persistent(conv + ".weight", {channels, in_channels, kernel, kernel}, Role::weight,
                            {Fill::normal, deviation});
    const std::int64_t pad = kernel / 2;
    const ValueId y =
        builder_.emit_one("convolution", conv, {x, weight},
                          {{"strides", std::vector<std::int64_t>{stride, stride}},
                           {"padding", std::vector<std::int64_t>{pad, pad, pad, pad}}});
    return batch_norm(norm, y, initial_scale);
  }

  ValueId batch_norm(const std::string& name, ValueId x, double initial_scale) {
    const Shape shape = builder_.program().value(x).shape;
    const Shape per_channel = {shape[1]};
    const ValueId scale = builder_.persistent(name + ".scale", per_channel, Role::weight,
                                              {Fill::constant, initial_scale});
    const ValueId shift =
        builder_.persistent(name + ".shift", per_channel, Role::weight, {Fill::constant, 0});
    const ValueId running_mean = builder_.persistent(name + ".running_mean", per_channel,
                                                     Role::statistic, {Fill::constant, 0});
    const ValueId running_variance = builder_.persistent(name + ".running_variance", per_channel,
                                                         Role::statistic, {Fill::constant, 1});
    const Attributes epsilon = {{"epsilon", 1e-5}};
    if (mode_ == Mode::evaluate)
      return builder_.emit_one("batch_norm_inference", name,
                               {x, scale, shift, running_mean, running_variance}, epsilon);
    const auto outputs = builder_.emit("batch_norm", name, {x, scale, shift}, epsilon);
    builder_.emit("update_statistics", name + ".statistics",
                  {running_mean, running_variance, outputs[1], outputs[2]},
                  {{"momentum", 0.1}, {"count", shape[0] * shape[2] * shape[3]}},
                  {running_mean, running_variance});
    return outputs[0];
  }

  ProgramBuilder builder_;
  const Options& options_;
  Mode mode_;
};

class ResNet : public Workload {
 public:
  explicit ResNet(const Spec& spec)
      : options_{.depth = spec.integer("depth", 18),
                 .image = spec.integer("image", 32),
                 .width = spec.integer("width", 64),
                 .batch = spec.integer("batch", 32),
                 .classes = spec.integer("classes", 10),
                 .stem = spec.text("stem", "cifar"),
                 // 0: Goyal et al. 2017, "Accurate, Large Minibatch SGD", section 5.1.
                 .residual_scale = spec.number("residual_scale", 1)},
        data_(spec.text("data", "")),
        labels_(spec.text("labels", "as_read")),
        held_out_batches_(spec.integer("held_out_batches", 0)),
        evaluate_every_(spec.integer("evaluate_every", 0)),
        epoch_(spec.integer("epoch", 0)),
        last_batch_(chosen<LastBatch>(spec, "last_batch", "drop",
                                      {{"drop", LastBatch::drop}, {"keep", LastBatch::keep}})) {
    if (!architectures().contains(options_.depth))
      throw InputError(fmt::format("{}: depth {} does not exist; take 18, 34, 50, 101 or 152",
                                   spec.to_string(), options_.depth));
    if (options_.stem != "cifar" && options_.stem != "imagenet")
      throw InputError(fmt::format("{}: stem '{}' does not exist; take cifar or imagenet",
                                   spec.to_string(), options_.stem));
    if (labels_ != "as_read" && labels_ != "shuffled")
      throw InputError(fmt::format("{}: labels '{}' does not exist; take as_read or shuffled",
                                   spec.to_string(), labels_));
    require_at_least(spec, {{"width", options_.width, 1},
                            {"batch", options_.batch, 1},
                            {"classes", options_.classes, 1},
                            {"evaluate_every", evaluate_every_, 0},
                            {"epoch", epoch_, spec.has("epoch") ? options_.batch : 0}});
    constexpr std::int64_t kMostBatches = 10'000'000;  // the cycle of an epoch's batches is stored
    if (last_batch_ == LastBatch::keep && epoch_ / options_.batch > kMostBatches)
      throw InputError(fmt::format("{}: an epoch of more than {} batches; make it shorter",
                                   spec.to_string(), kMostBatches));
    if (last_batch_ == LastBatch::keep && epoch_ == 0)
      throw InputError(fmt::format(
          "{}: only epoch=, the number of images, says where an epoch ends; add epoch=50000",
          spec.to_string()));
    if (options_.image < 32)
      throw InputError(fmt::format("{}: image {} is too small for five halvings; take 32 or more",
                                   spec.to_string(), options_.image));
  }

  Program training_forward() const override { return forward(options_, Mode::train); }

  std::vector<std::vector<Program>> training_shapes() const override {
    std::vector<std::vector<Program>> shapes = {{training_forward()}};
    if (odd_batch() > 0) shapes.push_back({forward(options_.of_batch(odd_batch()), Mode::train)});
    return shapes;
  }

  std::vector<std::size_t> shape_cycle() const override {
    if (odd_batch() == 0) return {0};
    std::vector<std::size_t> epoch(static_cast<std::size_t>(epoch_ / options_.batch), 0);
    epoch.push_back(1);
    return epoch;
  }

  int evaluation_interval() const override { return static_cast<int>(evaluate_every_); }

  std::optional<Program> evaluation() const override { return forward(options_, Mode::evaluate); }

  std::int64_t batch_size() const override { return options_.batch; }
  std::vector<std::filesystem::path> data_files() const override {
    return image_dataset_files(data_directory());
  }
  int held_out_batches() const override { return static_cast<int>(held_out_batches_); }

  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    return make_image_batches(read_image_dataset(data_directory(), classes()), batch_options(seed));
  }
  std::unique_ptr<RecordSource> open_records(std::uint64_t seed) const override {
    return make_image_records(data_directory(), classes(), batch_options(seed));
  }
  std::string why_no_records() const override {
    return labels_ == "as_read" ? "" : "labels=shuffled permutes the labels of all records at once";
  }

 private:
  static Program forward(const Options& options, Mode mode) {
    Program program;
    program.name = mode == Mode::train ? "train" : "evaluate";
    Network network(program, options, mode);
    ProgramBuilder& builder = network.builder();
    const ValueId images =
        builder.input("images", {options.batch, 3, options.image, options.image}, DType::f32);
    const ValueId labels = builder.input("labels", {options.batch}, DType::s32);
    const ValueId logits = network.logits(images);
    if (mode == Mode::train)
      program.loss = builder.emit("softmax_cross_entropy", "loss", {logits, labels})[0];
    program.results = {mode == Mode::train
                           ? program.loss
                           : builder.emit_one("count_correct", "correct", {logits, labels})};
    return program;
  }

  // The size of an incomplete batch at the end of an epoch; 0: there is none, or it is dropped.
  std::int64_t odd_batch() const {
    return last_batch_ == LastBatch::keep ? epoch_ % options_.batch : 0;
  }

  ImageBatchOptions batch_options(std::uint64_t seed) const {
    return {.batch = options_.batch,
            .image_size = options_.image,
            .seed = seed,
            .epoch = epoch_,
            .labels = labels_ == "shuffled" ? Labels::shuffled : Labels::as_read};
  }
  int classes() const { return static_cast<int>(options_.classes); }

  std::filesystem::path data_directory() const {
    return data_.empty() ? generated_image_directory() : std::filesystem::path(data_);
  }

  Options options_;
  std::string data_;
  std::string labels_;
  std::int64_t held_out_batches_;
  std::int64_t evaluate_every_;
  std::int64_t epoch_;  // number of images; 0: no end of epoch
  LastBatch last_batch_;
};

const bool resnet_is_registered = Registry<WorkloadKind>::instance().add(
    {.name = "resnet",
     .summary = "Residual network on images: depth 18, 34, 50, 101 or 152, stem cifar or imagenet; "
                "preset tiny, small or paper",
     .parameters = {"batch", "classes", "data", "depth", "epoch", "evaluate_every",
                    "held_out_batches", "image", "labels", "last_batch", "preset", "residual_scale",
                    "stem", "width"},
     .examples = {"resnet(depth=18,width=8,batch=4)",
                  "resnet(batch=2,classes=256,depth=50,image=64,stem=imagenet,width=8)",
                  "resnet(batch=4,epoch=6,evaluate_every=2,last_batch=keep,preset=tiny)"},
     .create = [](const Spec& spec) {
       return std::make_unique<ResNet>(with_preset(spec, resnet_presets()));
     }});

}  // namespace
}  // namespace headroom
