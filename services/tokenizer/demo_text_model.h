#ifndef TESSERA_SERVICES_TOKENIZER_DEMO_TEXT_MODEL_H_
#define TESSERA_SERVICES_TOKENIZER_DEMO_TEXT_MODEL_H_

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "services/tokenizer/text_model.h"

namespace tessera::services {

// The demo model's tokenizer and template, read once per test process.
inline std::shared_ptr<const TextModel> DemoTextModel() {
  static const absl::StatusOr<std::shared_ptr<const TextModel>> model =
      LoadTextModel("deploy/demo_model", /*callers_may_send_templates=*/true);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    std::abort();
  }
  return *model;
}

}  // namespace tessera::services

#endif  // TESSERA_SERVICES_TOKENIZER_DEMO_TEXT_MODEL_H_
