#ifndef TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_
#define TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_

// `tessera tokenize` and `tessera detokenize`: a model's tokenizer on JSON lines, alone.

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tokenizer/bpe/tokenizer.h"

namespace tessera::cli {

// Adds both commands to `app`. When one has run, `exit_status` is 0 only if no line failed, and 2
// if the model's tokenizer could not be loaded. `app` and `exit_status` must live until the parse
// of the command line is over.
void AddTokenizeCommands(CLI::App& app, int& exit_status);

// One line: {"text", "add_special_tokens"? (false), "special_tokens"? ("parse" or "text"),
// "added_tokens"? ("parse" or "text")} becomes {"ids": [...]}, with `offsets` {"ids", "offsets":
// [[begin, end], ...]}, bytes of the text, null where the file normalizes this text into another.
// "text" means that a string which spells such a token is read as plain text; "added_tokens":
// "text" covers the special ones too. Other fields are ignored.
// Errors: kInvalidArgument naming the field, kResourceExhausted for a text over kTextBytesMax.
absl::StatusOr<nlohmann::ordered_json> TokenizeLine(const tokenizer::Tokenizer& tokenizer,
                                                    bool offsets,
                                                    const nlohmann::ordered_json& line);

// One line: {"ids", "skip_special_tokens"? (false)} becomes {"text"}, or with `stream`
// {"deltas": [text that the id made certain, or null for none, ...], "rest": text at the end}.
// Unknown ids give nothing, broken UTF-8 gives U+FFFD. Other fields are ignored.
// Errors: kInvalidArgument naming the field.
absl::StatusOr<nlohmann::ordered_json> DetokenizeLine(const tokenizer::Tokenizer& tokenizer,
                                                      bool stream,
                                                      const nlohmann::ordered_json& line);

}  // namespace tessera::cli

#endif  // TESSERA_SERVICES_CLI_COMMANDS_TOKENIZE_TOKENIZE_COMMAND_H_
