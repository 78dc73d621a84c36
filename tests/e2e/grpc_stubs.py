"""Python messages and calls for Tessera's protos, made on the spot with protoc and grpcio.

Debian has no generator of Python stubs that fits its grpcio, and none is needed: a call is a path and two
functions. `load()` compiles the protos into a temporary folder and imports them.
"""

import atexit
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

import grpc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROTOS = ["tessera/engine/v1/engine.proto", "tessera/tokenizer/v1/tokenizer.proto", "tessera/parser/v1/parser.proto"]


def load():
    """The modules engine, tokenizer and parser with the messages of each package."""
    folder = tempfile.mkdtemp(prefix="tessera-protos-")
    atexit.register(shutil.rmtree, folder, True)
    subprocess.run(["protoc", "-I", os.path.join(ROOT, "proto"), "--python_out", folder, *PROTOS],
                   cwd=os.path.join(ROOT, "proto"), check=True)
    sys.path.insert(0, folder)
    return [importlib.import_module(p[:-len(".proto")].replace("/", ".") + "_pb2") for p in PROTOS]


def method(channel, module, service, name):
    """A callable for one RPC, found in the descriptors of `module`."""
    descriptor = module.DESCRIPTOR.services_by_name[service].methods_by_name[name]
    path = "/%s/%s" % (descriptor.containing_service.full_name, name)
    request = getattr(module, descriptor.input_type.name)
    response = getattr(module, descriptor.output_type.name)
    # The Python API of this protobuf does not say which methods stream, so their names do.
    streams = name in ("Generate", "ChatStream", "CompleteStream", "GetTokenizer")
    make = channel.unary_stream if streams else channel.unary_unary
    return make(path, request_serializer=request.SerializeToString, response_deserializer=response.FromString)


def connect(address):
    return grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
