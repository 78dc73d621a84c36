#include "services/common/request_id.h"

#include <set>

#include "gtest/gtest.h"

namespace tessera::services {
namespace {

TEST(RequestIds, AreUsableAndDifferAndRepeatForTheSameSeed) {
  RequestIds ids(7);
  RequestIds same(7);
  RequestIds other(8);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.Next();
    EXPECT_TRUE(IsUsableRequestId(id)) << id;
    EXPECT_EQ(id, same.Next());
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_TRUE(seen.insert(other.Next()).second);
  }
  EXPECT_EQ(seen.begin()->size(), 20u);
}

TEST(RequestIds, FromOutsideMustBeShortPrintableAscii) {
  EXPECT_TRUE(IsUsableRequestId("a"));
  EXPECT_TRUE(IsUsableRequestId(std::string(kRequestIdBytesMax, 'x')));
  EXPECT_FALSE(IsUsableRequestId(std::string(kRequestIdBytesMax + 1, 'x')));
  for (const char* id : {"", "a b", "a\nb", "\x7f", "\xc3\xa4", "\t"}) {
    EXPECT_FALSE(IsUsableRequestId(id)) << id;
  }
}

}  // namespace
}  // namespace tessera::services
