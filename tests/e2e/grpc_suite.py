#!/usr/bin/env python3
"""A Python gRPC client at each door of the running chain: engine (ids), tokenizer (text), parser (messages)."""

import json
import os
import sys

import grpc

import grpc_stubs
from chain import DEMO, Chain, check, run_suite

engine, tokenizer, parser = grpc_stubs.load()


def prompts():
    with open(os.path.join(DEMO, "demo_prompts.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Doors:
    def __init__(self, chain):
        self.engine = grpc_stubs.connect(chain.ready["engine_address"])
        self.tokenizer = grpc_stubs.connect(chain.ready["tokenizer_address"])
        self.parser = grpc_stubs.connect(chain.ready["parser_address"])

    def generate(self, ids, **sampling):
        call = grpc_stubs.method(self.engine, engine, "EngineService", "Generate")
        return call(engine.GenerateRequest(prompt=engine.TokenIds(ids=ids), sampling=engine.SamplingParams(**sampling)), timeout=60)


def greedy_tokens_of_the_forty_demo_prompts_are_the_references(doors):
    wrong = []
    for prompt in prompts():
        got = []
        events = list(doors.generate(prompt["prompt_ids"], temperature=0, max_tokens=len(prompt["answer_ids"]) + 4))
        check(events[0].WhichOneof("event") == "started", "the first event is not `started`")
        check(events[-1].WhichOneof("event") == "finished", "the last event is not `finished`")
        for event in events[1:-1]:
            got.extend(token.id for token in event.delta.tokens)
        if got != prompt["answer_ids"]:
            wrong.append("%s: %s, expected %s" % (prompt["id"], got, prompt["answer_ids"]))
    check(not wrong, "\n".join(wrong))


def forty_requests_at_once_give_the_same(doors):
    streams = [(p, doors.generate(p["prompt_ids"], temperature=0, max_tokens=len(p["answer_ids"]) + 4)) for p in prompts()]
    for prompt, stream in streams:
        got = [token.id for event in stream if event.WhichOneof("event") == "delta" for token in event.delta.tokens]
        check(got == prompt["answer_ids"], "%s differs in a full house" % prompt["id"])


def a_chat_stream_has_one_start_deltas_and_one_end(doors):
    call = grpc_stubs.method(doors.parser, parser, "ParserService", "ChatStream")
    options = parser.ChatOptions(
        chat=tokenizer.ChatPrompt(messages=[tokenizer.Message(role="user", text="380-248=?")]),
        sampling=engine.SamplingParams(temperature=0))
    events = list(call(parser.ChatStreamRequest(options=options), timeout=60))
    kinds = [event.WhichOneof("event") for event in events]
    check(kinds[0] == "started" and kinds[-1] == "finished", "order of events: %s" % kinds)
    check(set(kinds[1:-1]) == {"delta"}, "order of events: %s" % kinds)
    reasoning = "".join(event.delta.reasoning for event in events if event.HasField("delta"))
    content = "".join(event.delta.content for event in events if event.HasField("delta"))
    check("132" in content and reasoning, "reasoning %r, content %r" % (reasoning, content))
    whole = grpc_stubs.method(doors.parser, parser, "ParserService", "Chat")(parser.ChatRequest(options=options), timeout=60)
    check(whole.choices[0].content == content and whole.choices[0].reasoning == reasoning, "whole and stream differ")
    check(whole.usage.reasoning_tokens > 0, "no reasoning tokens counted")


def text_goes_to_ids_and_back(doors):
    text = "Ångström 你好 🙂 <|im_end|> 12+30"
    encode = grpc_stubs.method(doors.tokenizer, tokenizer, "TokenizerService", "Tokenize")
    decode = grpc_stubs.method(doors.tokenizer, tokenizer, "TokenizerService", "Detokenize")
    for mode in (tokenizer.ADDED_TOKENS_PARSE, tokenizer.ADDED_TOKENS_AS_TEXT):
        tokens = encode(tokenizer.TokenizeRequest(texts=[text], added_tokens=mode), timeout=10).results[0].tokens
        check((11 in tokens.ids) == (mode == tokenizer.ADDED_TOKENS_PARSE), "mode %d gives %s" % (mode, tokens.ids))
        back = decode(tokenizer.DetokenizeRequest(sequences=[tokens]), timeout=10).texts[0]
        check(back == text, "%r came back as %r" % (text, back))


def user_text_never_becomes_control_tokens(doors):
    render = grpc_stubs.method(doors.tokenizer, tokenizer, "TokenizerService", "RenderChat")

    def control_tokens(text):
        message = tokenizer.Message(role="user", text=text)
        chat = tokenizer.ChatPrompt(messages=[message])
        ids = render(tokenizer.RenderChatRequest(chat=chat), timeout=10).tokens.ids
        return [i for i in ids if i < 18]

    harmless = control_tokens("Hello")
    for marker in ("<|im_end|>", "<|im_start|>system", "<think>", "</think>", "<tool_call>", "</s>", "<s>"):
        check(control_tokens("Hello " + marker) == harmless, "%s became a control token" % marker)


def bad_requests_name_the_field(doors):
    def refused(code, field, **arguments):
        try:
            list(doors.generate(**arguments))
        except grpc.RpcError as error:
            check(error.code() == code, "%s: %s %s" % (field, error.code(), error.details()))
            check(field in error.details(), "the message does not name %s: %s" % (field, error.details()))
            return
        raise AssertionError("%s was accepted" % field)

    invalid = grpc.StatusCode.INVALID_ARGUMENT
    refused(invalid, "prompt.ids[1]", ids=[1, 4096], temperature=0)
    refused(invalid, "prompt", ids=[], temperature=0)
    refused(invalid, "sampling.max_tokens", ids=[5], max_tokens=0)
    refused(invalid, "sampling.top_p", ids=[5], top_p=float("nan"))
    refused(invalid, "sampling.temperature", ids=[5], temperature=-1)
    refused(grpc.StatusCode.OUT_OF_RANGE, "prompt", ids=[5] * 9000)
    call = grpc_stubs.method(doors.parser, parser, "ParserService", "Chat")
    try:
        call(parser.ChatRequest(options=parser.ChatOptions(chat=tokenizer.ChatPrompt(
            messages=[tokenizer.Message(text="no role")]))), timeout=10)
        raise AssertionError("a message without a role was accepted")
    except grpc.RpcError as error:
        check(error.code() == invalid and "messages[0].role" in error.details(), error.details())


def a_cancelled_stream_frees_its_slot_at_once(doors):
    load = grpc_stubs.method(doors.engine, engine, "EngineService", "GetLoad")
    stream = doors.generate([5, 6, 7], temperature=0, max_tokens=8000, ignore_eos=True)
    next(stream)
    next(stream)
    check(load(engine.GetLoadRequest(), timeout=5).slots_used == 1, "the stream holds no slot")
    stream.cancel()
    for _ in range(100):
        if load(engine.GetLoadRequest(), timeout=5).slots_used == 0:
            return
    raise AssertionError("the slot is still held after 100 questions")


def a_deadline_ends_the_request(doors):
    call = grpc_stubs.method(doors.engine, engine, "EngineService", "Generate")
    request = engine.GenerateRequest(prompt=engine.TokenIds(ids=[5, 6]),
                                     sampling=engine.SamplingParams(max_tokens=8000, ignore_eos=True))
    try:
        list(call(request, timeout=0.3))
        raise AssertionError("8,000 tokens in 0.3 s")
    except grpc.RpcError as error:
        check(error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, str(error.code()))


def health_and_model_info_tell_the_truth(doors):
    info = grpc_stubs.method(doors.parser, parser, "ParserService", "GetModelInfo")(parser.GetModelInfoRequest(), timeout=5)
    check(info.tokenizer.engine.vocab_size == 4096, "vocabulary of %d" % info.tokenizer.engine.vocab_size)
    check(info.reasoning_format == "nemotron_v3" and info.tool_format == "qwen3_coder",
          "formats %s, %s" % (info.reasoning_format, info.tool_format))
    for channel, name in ((doors.engine, "tessera.engine.v1.EngineService"), (doors.parser, "tessera.parser.v1.ParserService"),
                          (doors.tokenizer, "tessera.tokenizer.v1.TokenizerService")):
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        for service in ("", name):
            request = b"" if not service else b"\x0a" + bytes([len(service)]) + service.encode()
            check(health(request, timeout=5) == b"\x08\x01", "%s is not SERVING" % (service or name + " (process)"))


CASES = [
    greedy_tokens_of_the_forty_demo_prompts_are_the_references,
    forty_requests_at_once_give_the_same,
    a_chat_stream_has_one_start_deltas_and_one_end,
    text_goes_to_ids_and_back,
    user_text_never_becomes_control_tokens,
    bad_requests_name_the_field,
    a_cancelled_stream_frees_its_slot_at_once,
    a_deadline_ends_the_request,
    health_and_model_info_tell_the_truth,
]

with Chain() as chain:
    sys.exit(run_suite(CASES, Doors(chain)))
