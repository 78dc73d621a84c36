#include "engine/weights/checkpoint.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "engine/weights/concat.h"
#include "engine/weights/safetensors_file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tessera::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const std::string kGolden = "tests/golden/model/";

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// A safetensors file taken apart, so that a test can break one thing and put it together again.
struct Parts {
  ordered_json header;
  std::string data;

  static Parts Of(const std::string& file) {
    uint64_t size = 0;
    std::memcpy(&size, file.data(), 8);
    return {ordered_json::parse(file.substr(8, size)), file.substr(8 + size)};
  }
  std::string File() const { return Framed(header.dump()) + data; }
  static std::string Framed(const std::string& header) {
    const uint64_t size = header.size();
    return std::string(reinterpret_cast<const char*>(&size), 8) + header;
  }
};

class BrokenCheckpoint : public ::testing::Test {
 protected:
  BrokenCheckpoint() {
    dir_ = fs::path(::testing::TempDir()) /
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(dir_);
  }
  ~BrokenCheckpoint() override { fs::remove_all(dir_); }

  void Copy(const std::string& name) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    for (const auto& entry : fs::directory_iterator(kGolden + name)) {
      WriteFile(dir_ / entry.path().filename(), ReadFile(entry.path()));
    }
  }
  void EditWeights(const std::function<void(Parts&)>& edit) {
    Parts parts = Parts::Of(ReadFile(dir_ / "model.safetensors"));
    edit(parts);
    WriteFile(dir_ / "model.safetensors", parts.File());
  }
  // config.json as text: it has literals that are not JSON.
  void EditConfig(const std::string& from, const std::string& to) {
    std::string text = ReadFile(dir_ / "config.json");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    WriteFile(dir_ / "config.json", text.replace(at, from.size(), to));
  }
  void ExpectRefused(const std::vector<std::string>& words) {
    auto opened = Checkpoint::Open(dir_.string());
    ASSERT_FALSE(opened.ok());
    const std::string message(opened.status().message());
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << word << " in: " << message;
    }
  }
  fs::path dir_;
};

TEST(Checkpoint, OpensAllGoldenCheckpointsAndUsesEveryTensor) {
  for (const char* name : {"dense_hybrid", "long_chunks", "nano_moe", "puzzle_bf16", "puzzle_nvfp4",
                           "puzzle_w4a16", "super_latent"}) {
    auto opened = Checkpoint::Open(kGolden + name);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE((*opened)->unused_tensors().empty()) << name;
    EXPECT_TRUE((*opened)->Warnings().empty()) << name;
  }
}

TEST(Checkpoint, ReadsTheNumbersOfEachLayer) {
  auto opened = Checkpoint::Open(kGolden + "puzzle_w4a16");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Checkpoint& checkpoint = **opened;
  const ModelConfig& config = checkpoint.config();
  ASSERT_EQ(config.layers.size(), 12u);
  EXPECT_EQ(config.layers[6].moe.expert_width, 96u);
  EXPECT_EQ(config.layers[6].moe.experts_per_token, 3u);
  EXPECT_EQ(config.layers[0].mamba.state, 48u);
  const WeightMatrix up = checkpoint.ExpertMatrix(6, 7, ExpertRole::kUp);
  EXPECT_EQ(up.format, WeightFormat::kInt4);
  EXPECT_EQ(up.group_size, 32u);
  EXPECT_EQ(up.rows, 96u);
  EXPECT_EQ(up.cols, 64u);
  const WeightMatrix in = checkpoint.Matrix(0, MatrixRole::kInProj);
  EXPECT_EQ(in.format, WeightFormat::kInt8);
  EXPECT_EQ(in.group_size, in.cols);
  EXPECT_EQ(checkpoint.Matrix(3, MatrixRole::kQProj).format, WeightFormat::kBf16);
}

TEST_F(BrokenCheckpoint, IsRefusedByTheNameOfAMissingTensor) {
  Copy("dense_hybrid");
  EditWeights([](Parts& p) {
    ordered_json moved = p.header["backbone.layers.3.mixer.k_proj.weight"];
    p.header.erase("backbone.layers.3.mixer.k_proj.weight");
    p.header["something.else"] = moved;
  });
  ExpectRefused({"backbone.layers.3.mixer.k_proj.weight", "missing"});
}

TEST_F(BrokenCheckpoint, IsRefusedForAWrongShapeOrType) {
  Copy("dense_hybrid");
  EditWeights([](Parts& p) {
    p.header["backbone.layers.0.mixer.in_proj.weight"]["shape"] = {64, 392};
  });
  ExpectRefused({"backbone.layers.0.mixer.in_proj.weight", "[64, 392]", "[392, 64]"});
  Copy("dense_hybrid");
  EditWeights(
      [](Parts& p) { p.header["backbone.layers.0.mixer.in_proj.weight"]["dtype"] = "I16"; });
  ExpectRefused({"backbone.layers.0.mixer.in_proj.weight", "I16", "BF16"});
  Copy("dense_hybrid");
  EditWeights([](Parts& p) { p.header["lm_head.weight"]["dtype"] = "Q9"; });
  ExpectRefused({"lm_head.weight", "Q9"});
}

TEST_F(BrokenCheckpoint, IsRefusedWhenTruncatedOrTooLong) {
  Copy("dense_hybrid");
  const std::string whole = ReadFile(dir_ / "model.safetensors");
  for (size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() - 1}) {
    WriteFile(dir_ / "model.safetensors", whole.substr(0, size));
    ExpectRefused({"model.safetensors"});
  }
  ExpectRefused({"lm_head.weight", "truncated"});
  WriteFile(dir_ / "model.safetensors", whole + "x");
  ExpectRefused({"1 bytes after the last tensor"});
}

TEST_F(BrokenCheckpoint, IsRefusedForOverlapsAndGaps) {
  Copy("dense_hybrid");
  // A_log, D and dt_bias are 32 bytes each; the second now lies on the first.
  EditWeights([](Parts& p) {
    p.header["backbone.layers.0.mixer.D"]["data_offsets"] =
        p.header["backbone.layers.0.mixer.A_log"]["data_offsets"];
  });
  ExpectRefused({"backbone.layers.0.mixer.D", "overlaps"});
  Copy("dense_hybrid");
  EditWeights([](Parts& p) { p.header.erase("backbone.layers.0.mixer.D"); });
  ExpectRefused({"gap"});
}

TEST_F(BrokenCheckpoint, IsRefusedForOffsetsThatOverflow) {
  Copy("dense_hybrid");
  EditWeights([](Parts& p) {
    p.header["lm_head.weight"]["data_offsets"] = {18446744073709510656ull, 18446744073709551615ull};
  });
  ExpectRefused({"lm_head.weight"});
  Copy("dense_hybrid");
  EditWeights([](Parts& p) {
    p.header["lm_head.weight"]["shape"] = {9223372036854775807ull, 9223372036854775807ull};
  });
  ExpectRefused({"lm_head.weight", "2^64"});
}

TEST_F(BrokenCheckpoint, IsRefusedWhenAQuantisedTripleIsIncomplete) {
  for (const char* part : {"weight_packed", "weight_scale", "weight_shape"}) {
    Copy("puzzle_w4a16");
    const std::string name = Concat("backbone.layers.1.mixer.experts.2.up_proj.", part);
    EditWeights([&](Parts& p) {
      ordered_json moved = p.header[name];
      p.header.erase(name);
      p.header["moved"] = moved;
    });
    ExpectRefused({name, "missing", "group_0"});
  }
}

TEST_F(BrokenCheckpoint, IsRefusedForAGroupSizeThatDoesNotDivide) {
  Copy("puzzle_w4a16");
  EditConfig("\"group_size\": 32", "\"group_size\": 24");
  ExpectRefused({"weight_scale", "24", "does not divide"});
}

TEST_F(BrokenCheckpoint, IsRefusedForAShardThatIsNotThereOrNotBesideTheIndex) {
  Copy("super_latent");
  fs::remove(dir_ / "model-00002-of-00003.safetensors");
  ExpectRefused({"model-00002-of-00003.safetensors", "not there"});
  Copy("super_latent");
  std::string index = ReadFile(dir_ / "model.safetensors.index.json");
  const std::string shard = "model-00001-of-00003.safetensors";
  WriteFile(dir_ / "model.safetensors.index.json",
            index.replace(index.find(shard), shard.size(), "../../etc/passwd"));
  ExpectRefused({"must be the name of a file beside the index"});
}

TEST_F(BrokenCheckpoint, IsRefusedForHeadersThatAreHostile) {
  Copy("dense_hybrid");
  const auto write = [&](const std::string& bytes) {
    WriteFile(dir_ / "model.safetensors", bytes);
  };
  write(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}");
  ExpectRefused({"limit"});
  write(std::string("\xff\xff\0\0\0\0\0\0", 8) + "{}");
  ExpectRefused({"truncated"});
  write(Parts::Framed(std::string(1 << 20, '[')));
  ExpectRefused({"does not begin with {"});
  write(Parts::Framed("{\"a\":" + std::string(1 << 20, '[')));
  ExpectRefused({"model.safetensors"});
  const std::string one = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  write(Parts::Framed("{" + one + "," + one + "}"));
  ExpectRefused({"\"a\" is there twice"});
}

TEST_F(BrokenCheckpoint, IsRefusedForAnUnknownArchitecture) {
  Copy("dense_hybrid");
  EditConfig("NemotronHForCausalLM", "LlamaForCausalLM");
  ExpectRefused({"architectures[0]", "LlamaForCausalLM", "NemotronHPuzzleForCausalLM"});
}

TEST_F(BrokenCheckpoint, ListsTensorsThatNothingUsesAndSaysWhenTheDraftHeadIsAbsent) {
  Copy("dense_hybrid");
  EditWeights([](Parts& p) {
    const uint64_t end = p.data.size();
    p.header["odd.tensor"] = {{"dtype", "U8"}, {"shape", {1}}, {"data_offsets", {end, end + 1}}};
    p.data += 'x';
  });
  EditConfig("\"num_hidden_layers\"", "\"num_nextn_predict_layers\": 1, \"num_hidden_layers\"");
  auto opened = Checkpoint::Open(dir_.string());
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->unused_tensors(), std::vector<std::string>{"odd.tensor"});
  EXPECT_EQ((*opened)->Warnings().size(), 2u);
}

TEST_F(BrokenCheckpoint, NeverCrashesTheReaderWhateverBytesOfTheHeaderChange) {
  Copy("nano_moe");
  const std::string whole = ReadFile(dir_ / "model.safetensors");
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  std::mt19937 random(20);
  for (int round = 0; round < 1000; ++round) {
    std::string text = whole.substr(8, header);
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      text[random() % text.size()] =
          static_cast<char>(random() % 2 ? random() : "0123{}[],:\""[random() % 11]);
    }
    auto tensors = ParseSafetensorsHeader(text, whole.size() - 8 - header, "fuzz");
    if (!tensors.ok()) continue;
    for (const StoredTensor& t : *tensors) ASSERT_LE(t.begin + t.bytes, whole.size() - 8 - header);
  }
}

TEST(ParseModelConfig, NeverCrashesWhateverBytesChange) {
  const std::string whole = ReadFile(kGolden + "puzzle_w4a16/config.json");
  std::mt19937 random(21);
  for (int round = 0; round < 500; ++round) {
    std::string text = whole;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      text[random() % text.size()] =
          static_cast<char>(random() % 2 ? random() : "0129-eIN{}[],:\""[random() % 15]);
    }
    auto config = ParseModelConfig(text, "");
    if (!config.ok()) {
      EXPECT_FALSE(config.status().message().empty());
    }
  }
}

TEST(ParseModelConfig, ReadsTheSameLayersFromEverySpelling) {
  const std::string whole = ReadFile(kGolden + "dense_hybrid/config.json");
  const std::string pattern = "\"hybrid_override_pattern\": \"M-M*-M-\"";
  const auto with = [&](const std::string& list) {
    std::string text = whole;
    auto config = ParseModelConfig(text.replace(text.find(pattern), pattern.size(), list), "");
    EXPECT_TRUE(config.ok()) << config.status();
    std::string kinds;
    for (const LayerConfig& layer : config->layers) kinds += LayerKindName(layer.kind)[1];
    return kinds;
  };
  const std::string expected = with(pattern);
  EXPECT_EQ(expected, "alatlal");
  EXPECT_EQ(with("\"hybrid_override_pattern\": \"M-|M*|-M-/*E\""), expected);
  EXPECT_EQ(with(R"("layers_block_type": ["mamba","mlp","mamba","attention","mlp","mamba","mlp"])"),
            expected);
  EXPECT_EQ(
      with(
          R"("layer_types": ["linear_attention","mlp","mamba","full_attention","mlp","mamba","mlp"])"),
      expected);
}

}  // namespace
}  // namespace tessera::engine
