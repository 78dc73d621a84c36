#ifndef TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_CASES_H_
#define TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_CASES_H_

// What the tests of the output machine share: run a text cut in some way, show the result as text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "services/parser/formats/output_parser.h"

namespace tessera::parser {

// A tool from its name and the JSON of its schema's properties.
Tool ToolWith(std::string_view name, std::string_view properties_json);

struct OutputCase {
  ParserOptions options;
  std::string text;
  EngineFinish finish = EngineFinish::kStop;
};

// One run, the text cut at `cuts` (ascending offsets); counters too, if asked for.
std::vector<ParserEvent> RunCut(const OutputCase& c, const std::vector<size_t>& cuts,
                                ParserCounters* counters = nullptr);

// Cuts in every byte, or pseudo-randomly.
std::vector<size_t> EveryByte(std::string_view text);
std::vector<size_t> RandomCuts(std::string_view text, uint64_t seed);

// The sum of the events as one text, for comparison and for failure messages:
//   "R:reasoning|C:content|name{arguments}!|finish", "!" behind a malformed call.
std::string Show(const std::vector<ParserEvent>& events);

// Every event, text that follows text of the same kind joined: what any two splits must agree on.
std::string ShowEvents(const std::vector<ParserEvent>& events);

// "" if the events keep the contract of a stream: begin, fragments, end of each call in order; text
// events not empty and whole UTF-8; one finish, last. Else what is wrong.
std::string CheckStream(const std::vector<ParserEvent>& events);

// Runs whole, byte by byte and in `splits` random ways, and checks that all give the same events
// and counters. Returns what they say (Show), or "SPLIT …" or "WHOLE …" and what is wrong.
std::string ShowAllSplits(const OutputCase& c, int splits = 20);

}  // namespace tessera::parser

#endif  // TESSERA_SERVICES_PARSER_FORMATS_OUTPUT_CASES_H_
