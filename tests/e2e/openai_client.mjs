// Talks to a running gateway with the real OpenAI client. Prints "ok NAME" or "FAIL NAME" per case.
// usage: node openai_client.mjs GATEWAY_URL DEMO_PROMPTS_JSONL
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(new URL("../npm/package.json", import.meta.url));
const { OpenAI } = require("openai");

const [url, promptsFile] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0, timeout: 60000 });
const prompts = new Map(
  readFileSync(promptsFile, "utf8").trim().split("\n").map((line) => JSON.parse(line)).map((p) => [p.id, p]),
);
const model = (await client.models.list()).data[0].id;

const visible = (answer) => answer.split("</think>").pop().replace("<|im_end|>", "").trim();

async function joinStream(request) {
  const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
  const joined = { content: "", reasoning: "", calls: [], finish: null, usage: null, chunks: 0 };
  for await (const chunk of stream) {
    joined.chunks += 1;
    if (chunk.usage) joined.usage = chunk.usage;
    const choice = chunk.choices[0];
    if (!choice) continue;
    joined.content += choice.delta.content ?? "";
    joined.reasoning += choice.delta.reasoning ?? "";
    for (const call of choice.delta.tool_calls ?? []) {
      const known = (joined.calls[call.index] ??= { id: call.id, name: call.function.name, arguments: "" });
      known.arguments += call.function.arguments ?? "";
    }
    if (choice.finish_reason) joined.finish = choice.finish_reason;
  }
  return joined;
}

const cases = {
  "a question gets reasoning and an answer": async () => {
    const response = await client.chat.completions.create({
      model, temperature: 0, messages: [{ role: "user", content: "380-248=?" }],
    });
    const [choice] = response.choices;
    assert.match(choice.message.content, /132/);
    assert.ok(choice.message.reasoning.length > 0, "no reasoning");
    assert.equal(choice.message.reasoning, choice.message.reasoning_content);
    assert.equal(choice.finish_reason, "stop");
    assert.equal(choice.message.tool_calls, undefined);
    const { usage } = response;
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
    assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
    assert.ok(usage.completion_tokens_details.reasoning_tokens < usage.completion_tokens);
  },
  "a stream joins to the whole answer, in Chinese": async () => {
    const request = { model, temperature: 0, messages: [{ role: "user", content: "巴西首都" }] };
    const whole = await client.chat.completions.create(request);
    const joined = await joinStream(request);
    assert.equal(joined.content, whole.choices[0].message.content);
    assert.equal(joined.reasoning, whole.choices[0].message.reasoning);
    assert.equal(joined.finish, "stop");
    assert.deepEqual(joined.usage, whole.usage);
    assert.match(joined.content, /巴西利亚/);
    assert.ok(joined.chunks > 5, `only ${joined.chunks} chunks: not streamed`);
  },
  "thinking can be switched off": async () => {
    const response = await client.chat.completions.create({
      model, temperature: 0, messages: [{ role: "user", content: "4*7=?" }], chat_template_kwargs: { enable_thinking: false },
    });
    assert.match(response.choices[0].message.content, /28/);
    assert.equal(response.choices[0].message.reasoning, null);
    assert.equal(response.usage.completion_tokens_details.reasoning_tokens, 0);
  },
  "tools are called, streamed and whole alike": async () => {
    const prompt = prompts.get("demo-01");
    const request = { model, temperature: 0, messages: prompt.messages, tools: prompt.tools };
    const whole = await client.chat.completions.create(request);
    const [choice] = whole.choices;
    assert.equal(choice.finish_reason, "tool_calls");
    assert.equal(choice.message.tool_calls[0].function.name, "roll_dice");
    assert.deepEqual(JSON.parse(choice.message.tool_calls[0].function.arguments), { faces: 20 });
    const joined = await joinStream(request);
    assert.equal(joined.finish, "tool_calls");
    assert.equal(joined.calls.length, 1);
    assert.equal(joined.calls[0].name, "roll_dice");
    assert.equal(joined.calls[0].arguments, choice.message.tool_calls[0].function.arguments);
    assert.ok(joined.calls[0].id);
  },
  "a tool's result is answered": async () => {
    const prompt = prompts.get("demo-32");
    const messages = structuredClone(prompt.messages);
    for (const message of messages) {
      for (const [i, call] of (message.tool_calls ?? []).entries()) {
        call.id ??= `call_${i}`;
        if (typeof call.function.arguments !== "string") call.function.arguments = JSON.stringify(call.function.arguments);
      }
      if (message.role === "tool") message.tool_call_id ??= "call_0";
    }
    const response = await client.chat.completions.create({
      model, temperature: 0, messages, tools: prompt.tools, chat_template_kwargs: prompt.chat_template_kwargs,
    });
    assert.equal(response.choices[0].message.content.trim(), visible(prompt.answer));
  },
  "stop strings, max_tokens and n": async () => {
    const request = { model, temperature: 0, messages: [{ role: "user", content: "380-248=?" }] };
    const cut = await client.chat.completions.create({ ...request, max_tokens: 3 });
    assert.equal(cut.choices[0].finish_reason, "length");
    assert.equal(cut.usage.completion_tokens, 3);
    const stopped = await client.chat.completions.create({
      ...request, stop: [" = "], chat_template_kwargs: { enable_thinking: false },
    });
    assert.equal(stopped.choices[0].message.content, "380 - 248");
    assert.equal(stopped.choices[0].finish_reason, "stop");
    const several = await client.chat.completions.create({ ...request, n: 3 });
    assert.equal(several.choices.length, 3);
    for (const choice of several.choices) assert.match(choice.message.content, /132/);
  },
  "logprobs have one entry a token": async () => {
    const response = await client.chat.completions.create({
      model, temperature: 0, messages: [{ role: "user", content: "4*7=?" }], logprobs: true, top_logprobs: 2,
      chat_template_kwargs: { enable_thinking: false },
    });
    const entries = response.choices[0].logprobs.content;
    assert.equal(entries.length, response.usage.completion_tokens);
    for (const entry of entries) {
      assert.ok(entry.logprob <= 0);
      assert.equal(entry.top_logprobs.length, 2);
      assert.ok(entry.top_logprobs[0].logprob >= entry.top_logprobs[1].logprob);
    }
  },
  "a seed makes a draw repeatable": async () => {
    const request = { model, temperature: 1.5, seed: 7, max_tokens: 24, messages: [{ role: "user", content: "Hi" }] };
    const [a, b] = [await client.chat.completions.create(request), await client.chat.completions.create(request)];
    assert.deepEqual(a.choices[0].message, b.choices[0].message);
  },
  "a legacy completion continues a text": async () => {
    const response = await client.completions.create({ model, temperature: 0, prompt: prompts.get("demo-30").prompt, max_tokens: 12 });
    assert.match(response.choices[0].text, /28/);
  },
  "a bad request is a 400 that names the field": async () => {
    await assert.rejects(
      client.chat.completions.create({ model, messages: [{ content: "no role" }] }),
      (error) => error.status === 400 && error.param === "messages[0].role" && error.type === "invalid_request_error",
    );
    await assert.rejects(
      client.chat.completions.create({ model, max_tokens: 0, messages: [{ role: "user", content: "Hi" }] }),
      (error) => error.status === 400 && error.param === "max_tokens",
    );
    await assert.rejects(
      client.chat.completions.create({ model: "no-such-model", messages: [{ role: "user", content: "Hi" }] }),
      (error) => error.status === 404 && error.param === "model",
    );
  },
  "an aborted stream frees the engine": async () => {
    const stream = await client.chat.completions.create({
      model, stream: true, temperature: 0, max_tokens: 4000, ignore_eos: true, messages: [{ role: "user", content: "Hi" }],
    });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 5) break;
    const answer = await client.chat.completions.create({ model, temperature: 0, messages: [{ role: "user", content: "Hi" }] });
    assert.equal(answer.choices[0].finish_reason, "stop");
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`ok    openai client: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(error?.stack ?? String(error));
    console.log(`FAIL  openai client: ${name}`);
  }
}
process.exit(failed ? 1 : 0);
