// The template engine against Python's jinja2, set up as transformers does, and against hostile
// templates.

#include "tokenizer/chat_template/chat_template.h"

#include <chrono>
#include <fstream>
#include <iterator>

#include "gtest/gtest.h"
#include "tokenizer/chat_template/chat_prompt.h"
#include "tokenizer/chat_template/chat_template_set.h"

namespace tessera::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string Render(const std::string& source, const Json& context) {
  const auto compiled = ChatTemplate::Compile(source, "test");
  if (!compiled.ok()) return TemplateErrorOf(compiled.status())->type + "!";
  const auto rendered = (*compiled)->Render(context, {}, {});
  if (!rendered.ok()) {
    const auto error = TemplateErrorOf(rendered.status());
    return error->type + ": " + error->message;
  }
  return rendered->text;
}

TEST(ChatTemplate, RendersTheNemotronStyleConversationsAsPythonDoes) {
  const auto compiled =
      ChatTemplate::Compile(ReadFile("tests/golden/jinja/nemotron_style.jinja"), "default");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::ifstream file("tests/golden/jinja/nemotron_style.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    const Json entry = Json::parse(line);
    if (entry.contains("_meta")) continue;
    ++count;
    const auto rendered = (*compiled)->Render(entry["context"], {}, {});
    if (entry.contains("error")) {
      EXPECT_FALSE(rendered.ok()) << entry["id"];
      continue;
    }
    ASSERT_TRUE(rendered.ok()) << entry["id"] << rendered.status();
    EXPECT_EQ(rendered->text, entry["expected"].get<std::string>()) << entry["id"];
  }
  EXPECT_GE(count, 15);
}

TEST(ChatTemplate, RendersTheDemoPrompts) {
  const auto compiled =
      ChatTemplate::Compile(ReadFile("deploy/demo_model/chat_template.jinja"), "default");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  std::ifstream file("deploy/demo_model/demo_prompts.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const Json entry = Json::parse(line);
    Json context = {{"messages", entry["messages"]},
                    {"tools", entry["tools"]},
                    {"add_generation_prompt", true}};
    context.update(entry["chat_template_kwargs"]);
    const auto rendered = (*compiled)->Render(context, {}, {});
    ASSERT_TRUE(rendered.ok()) << entry["id"] << rendered.status();
    EXPECT_EQ(rendered->text, entry["prompt"].get<std::string>()) << entry["id"];
  }
  EXPECT_EQ(count, 40);
}

TEST(ChatTemplate, SpansTellTheTemplatesTextFromTheCallers) {
  const auto compiled =
      ChatTemplate::Compile("<|u|>{{ m | trim }}<|e|>{{ m.split(' ')[0] ~ '!' }}", "test");
  const auto rendered = (*compiled)->Render({{"m", " a b "}}, {}, {});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->text, "<|u|>a b<|e|>!");
  std::string marked;
  for (const TextSpan& span : rendered->spans) {
    marked += (span.from_context ? "[" : "(") +
              rendered->text.substr(span.begin, span.end - span.begin) +
              (span.from_context ? "]" : ")");
  }
  EXPECT_EQ(marked, "(<|u|>)[a b](<|e|>!)");
}

TEST(ChatTemplate, PrintsAsPythonPrints) {
  EXPECT_EQ(Render("{{ [1, 1.0, true, none, 'a\"b', {'k': [2]}] }}", Json::object()),
            "[1, 1.0, True, None, 'a\"b', {'k': [2]}]");
  EXPECT_EQ(Render("{{ x }} {{ y }} {{ z }}",
                   Json::parse(R"({"x":1e2,"y":18446744073709551615,"z":-0.5})")),
            "100.0 18446744073709551615 -0.5");
  EXPECT_EQ(Render("{{ d | tojson }}{{ d | tojson(indent=2) }}",
                   {{"d", {{"b", "\xC3\xA9\n"}, {"a", Json::array()}}}}),
            "{\"b\": \"\xC3\xA9\\n\", \"a\": []}{\n  \"b\": \"\xC3\xA9\\n\",\n  \"a\": []\n}");
  EXPECT_EQ(
      Render("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 70 }}", Json::object()),
      "3 -4 2 3.5 1180591620717411303424");
}

TEST(ChatTemplate, ScopesAndLoopsFollowPython) {
  EXPECT_EQ(
      Render("{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
             Json::object()),
      "231");
  EXPECT_EQ(Render("{% for k, v in d.items() if v %}{{ loop.index }}{{ k }}{{ loop.last }}{% else "
                   "%}none{% endfor %}",
                   {{"d", {{"a", 1}, {"b", 0}, {"c", 2}}}}),
            "1aFalse2cTrue");
  EXPECT_EQ(Render("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% if i == 3 %}{% break "
                   "%}{% endif %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
                   Json::object()),
            "3");
  EXPECT_EQ(
      Render(
          "{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(2, b=3) }}{{ m() }}",
          Json::object()),
      "1x23x");
  EXPECT_EQ(Render("{{ 'abcdef'[1:-1] }}{{ 'abc'[::-1] }}{{ [1,2,3][-1] }}", Json::object()),
            "bcdecba3");
  EXPECT_EQ(
      Render("{{ 'a' ~ ' b ' | trim ~ 'c' }}{{ 1 < 2 < 3 }}{{ 'x' if false }}", Json::object()),
      "abcTrue");
}

TEST(ChatTemplate, UndefinedIsEmptyUntilItIsUsed) {
  EXPECT_EQ(
      Render("[{{ nope }}{{ nope | default('d') }}{{ d.nope is defined }}{{ nope | length }}]",
             {{"d", Json::object()}}),
      "[dFalse0]");
  EXPECT_EQ(Render("{{ nope.more }}", Json::object()), "UndefinedError: 'nope' is undefined");
  EXPECT_EQ(Render("{{ d.nope + 1 }}", {{"d", Json::object()}}),
            "UndefinedError: 'dict object' has no attribute 'nope'");
  EXPECT_EQ(Render("{{ raise_exception('no ' ~ x) }}", {{"x", 1}}), "TemplateError: no 1");
}

TEST(ChatTemplate, WhatIsMissingIsRefusedWhenItIsCompiledWithItsPlace) {
  const auto compiled = ChatTemplate::Compile("line one\n  {{ x | frobnicate }}", "test");
  const auto error = TemplateErrorOf(compiled.status());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->line, 2);
  EXPECT_NE(error->message.find("frobnicate"), std::string::npos);
  for (const char* source : {"{{ x | random }}", "{% block a %}{% endblock %}", "{{ f(*a) }}",
                             "{{ x is weird }}", "{% if %}", "{{ 1 + }}", "{% endfor %}"}) {
    EXPECT_FALSE(ChatTemplate::Compile(source, "test").ok()) << source;
  }
}

TEST(ChatTemplate, CallersAndRecursiveLoopsSeeTheScopesAroundThem) {
  EXPECT_EQ(
      Render("{% macro m() %}{% set v = 'macro' %}[{{ caller(1) }}]{% endmacro %}"
             "{% for v in ['loop'] %}{% call(n) m() %}{{ v }}{{ n }}{% endcall %}{% endfor %}",
             Json::object()),
      "[loop1]");
  EXPECT_EQ(Render("{% for n in t recursive %}{{ loop.depth }}{{ n.t }}{{ loop(n.c) if n.c }}"
                   "{% endfor %}",
                   Json::parse(R"({"t":[{"t":"a","c":[{"t":"b"}]},{"t":"c"}]})")),
            "1a2b1c");
  EXPECT_EQ(
      Render("{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
             Json::object()),
      "1(2,){'x': 3}");
}

TEST(ChatTemplate, FiltersOverSequencesWorkAsInPython) {
  const Json context = Json::parse(R"({"m":[{"r":"u","n":2},{"r":"a","n":1},{"r":"u","n":3}]})");
  EXPECT_EQ(Render("{{ m | selectattr('r', 'equalto', 'u') | map(attribute='n') | list }}"
                   "{{ m | sort(attribute='n') | map(attribute='r') | join }}"
                   "{{ m | sum('n') }}{{ (m | max(attribute='n')).r }}"
                   "{{ [3, 1, 2] | sort(reverse=true) }}{{ [1, 'a'] | map('string') | list }}",
                   context),
            "[2, 3]auu6u[3, 2, 1]['1', 'a']");
  EXPECT_EQ(Render("{{ [1, 'a'] | sort }}", context),
            "TypeError: '<' not supported between instances of 'str' and 'int'");
}

TEST(ChatTemplate, GeneratorsAndViewsAreNoLists) {
  const Json context = Json::parse(R"({"l":[1,2],"d":{"a":1,"pop":2}})");
  EXPECT_EQ(
      Render("{{ 'T' if l | select('gt', 5) else 'F' }}{{ d.items() }}{{ range(2) }}", context),
      "Tdict_items([('a', 1), ('pop', 2)])range(0, 2)");
  EXPECT_EQ(Render("{% set g = l | map('string') %}{{ g | join }}{{ g | join }}", context), "12");
  EXPECT_EQ(Render("{{ l | map('string') | length }}", context),
            "TypeError: object of type 'generator' has no len()");
  EXPECT_EQ(Render("[{{ d.keys()[0] }}{{ d.pop }}]{{ d['pop'] }}", context), "[]2");
  EXPECT_EQ(Render("{{ l.append(3) }}", context),
            "SecurityError: access to attribute 'append' of 'list' object is unsafe.");
}

TEST(ChatTemplate, HostileTemplatesEndInANamedErrorSoon) {
  const std::string nested_list =
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}{{ ns.x }}";
  const char* templates[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(99) %}{% set ns.x = ns.x ~ "
      "ns.x %}{% endfor %}",
      "{{ 'a' * 99999999999 }}",
      "{{ 9 ** 9999999 }}",
      "{% for a in range(99999) %}{% for b in range(9999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' "
      "}}{% endfor %}{% endfor %}",
      "{{ range(999999999) }}",
      nested_list.c_str(),
      "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('a', "
      "'aaaaaaaaaaaaaaaa') %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
  };
  RenderLimits limits;
  limits.steps_max = 1'000'000;
  limits.output_bytes_max = 1 << 20;
  limits.value_bytes_max = 16 << 20;
  for (const char* source : templates) {
    const auto compiled = ChatTemplate::Compile(source, "test");
    ASSERT_TRUE(compiled.ok()) << source << compiled.status();
    const auto begin = std::chrono::steady_clock::now();
    const auto rendered = (*compiled)->Render(Json::object(), limits, {});
    ASSERT_FALSE(rendered.ok()) << source;
    const auto error = TemplateErrorOf(rendered.status());
    ASSERT_TRUE(error.has_value()) << source;
    EXPECT_TRUE(error->type == "LimitError" || error->type == "OverflowError")
        << source << error->type;
    // Generous: sanitizers and a busy machine are slower than the 100 ms that users get.
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5)) << source;
  }
  EXPECT_FALSE(ChatTemplate::Compile("{{ " + std::string(100000, '('), "test").ok());
  EXPECT_FALSE(ChatTemplate::Compile("{{ " + std::string(100000, '-') + "1 }}", "test").ok());
}

TEST(ChatPrompt, BadMessagesNameTheirField) {
  const auto field = [](const ChatPromptRequest& request) {
    const auto payload = BuildChatContext(request).status().GetPayload(kFieldPayloadUrl);
    return payload.has_value() ? std::string(*payload) : "none";
  };
  ChatPromptRequest request;
  EXPECT_EQ(field(request), "messages");
  request.messages = {{.role = "user", .content = "Hi"}, {.content = "x"}};
  EXPECT_EQ(field(request), "messages[1].role");
  request.messages[1] = {.role = "user",
                         .content = std::vector<ChatContentPart>{{"text", "a"}, {"image_url", ""}}};
  EXPECT_EQ(field(request), "messages[1].content[1].type");
  request.messages[1] = {
      .role = "assistant",
      .tool_calls = {ChatToolCall{.id = "id", .name = "f", .arguments = std::string("[1]")}}};
  EXPECT_EQ(field(request), "messages[1].tool_calls[0].function.arguments");
  request.messages = {{.role = "tool", .content = "x"}};
  EXPECT_EQ(field(request), "messages[0].role");
}

TEST(ChatTemplateSet, ACallersTemplateIsTakenOnlyWhereAllowed) {
  const auto closed = ChatTemplateSet::Create({{"default", "x"}}, false);
  EXPECT_EQ((*closed)->CallerTemplate("y").status().code(), absl::StatusCode::kPermissionDenied);
  const auto open = ChatTemplateSet::Create({{"default", "x"}, {"tool_use", "t"}}, true);
  EXPECT_EQ((*(*open)->Select(true))->name(), "tool_use");
  EXPECT_EQ((*(*open)->Select(false))->name(), "default");
  const auto first = (*open)->CallerTemplate("{{ y }}");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, *(*open)->CallerTemplate("{{ y }}"));
  for (size_t i = 0; i < ChatTemplateSet::kCallerTemplatesMax; ++i) {
    ASSERT_TRUE((*open)->CallerTemplate(std::string(i + 1, 'z')).ok());
  }
  EXPECT_NE(*first, *(*open)->CallerTemplate("{{ y }}"));
}

}  // namespace
}  // namespace tessera::tokenizer
